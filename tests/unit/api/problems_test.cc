#include "api/problems.h"

#include <gtest/gtest.h>

namespace pt2onnx {
namespace {

TEST(Problems, EqualOnesAreCounted) {
  Diagnostics diagnostics;
  const std::vector<Loc> locs = {{},
                                 {.node = "r", .stack_trace = "File \"m.py\", line 7, in forward\n    r = fft(x)", .module_stack = "k,,M;k,front,N"}};
  for (const char* message : {"no ONNX form", "no ONNX form", "another reason", "no ONNX form"}) {
    diagnostics.Report(diagnostics.Add({.code = "E0301", .message = message, .loc = 1, .op = "aten::fft", .text = "%r = aten::fft(%x)"}));
  }
  diagnostics.Add({.code = "E0301", .message = "reaches nothing"});
  diagnostics.Warn({.code = "W0101", .message = "careful"});
  Report report;
  AddProblems(diagnostics, locs, report);
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_EQ(report.Text(),
            "warning[W0101]: careful\n"
            "error[E0301]: aten::fft: no ONNX form\n  --> m.py:7   r = fft(x)\n  node   %r = aten::fft(%x)\n  module front\n  (+ 2 more of this op)\n"
            "error[E0301]: aten::fft: another reason\n  --> m.py:7   r = fft(x)\n  node   %r = aten::fft(%x)\n  module front\n");
}

}  // namespace
}  // namespace pt2onnx
