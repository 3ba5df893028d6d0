#include <gtest/gtest.h>

#include "pt2onnx/pt2onnx.h"
#include "support/json_text.h"

namespace pt2onnx {
namespace {

Report Sample() {
  Report report;
  report.exit_code = 1;
  report.input = "model.pt2";
  report.problems.push_back({.code = "E0301",
                             .op = "aten::_fft_r2c",
                             .message = "no ONNX form at opset 18",
                             .file = "model.py",
                             .line = 41,
                             .source = "spec = torch.fft.rfft(x)",
                             .node = "%r = aten::_fft_r2c(%x)",
                             .module = "encoder.layers.0",
                             .help = "--opset 20 has DFT for this case",
                             .count = 12});
  report.problems.push_back({.severity = Report::Severity::kWarning, .code = "W0401", .message = "in \"training\" mode"});
  report.timings.push_back({"read", 1.25});
  report.statistics.push_back({"nodes", 7});
  report.output = "text\n";
  return report;
}

TEST(Report, TextPutsErrorsLast) {
  EXPECT_EQ(Sample().Text(),
            "model.pt2: warning[W0401]: in \"training\" mode\n"
            "model.pt2: error[E0301]: aten::_fft_r2c: no ONNX form at opset 18\n"
            "  --> model.py:41   spec = torch.fft.rfft(x)\n"
            "  node   %r = aten::_fft_r2c(%x)\n"
            "  module encoder.layers.0\n"
            "  help   --opset 20 has DFT for this case\n"
            "  (+ 11 more of this op)\n");
  EXPECT_EQ(Report().Text(), "");
}

TEST(Report, Json) {
  EXPECT_EQ(
      Sample().Json(),
      R"j({"exit_code": 1, "input": "model.pt2", "problems": [{"severity": "error", "code": "E0301", )j"
      R"j("op": "aten::_fft_r2c", "message": "no ONNX form at opset 18", "file": "model.py", "line": 41, "source": "spec = torch.fft.rfft(x)", )j"
      R"j("node": "%r = aten::_fft_r2c(%x)", "module": "encoder.layers.0", "help": "--opset 20 has DFT for this case", "count": 12}, )j"
      R"j({"severity": "warning", "code": "W0401", "message": "in \"training\" mode", "count": 1}], )j"
      R"j("timings": {"read": 1.250}, "statistics": {"nodes": 7}, "output": "text\n"})j");
}

TEST(JsonText, IsAlwaysValidJson) {
  std::string out;
  AppendJsonString(out, "a\"\\\n\x01 \xC3\xA9 \xFF \xED\xA0\x80 \xF0\x9F\x98\x80 \xC3");
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\u0001 \xC3\xA9 \\ufffd \\ufffd\\ufffd\\ufffd \xF0\x9F\x98\x80 \\ufffd\"");
}

}  // namespace
}  // namespace pt2onnx
