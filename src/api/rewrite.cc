#include "api/session.h"
#include "pt2onnx/pt2onnx.h"

namespace pt2onnx {
namespace {

Report NotYet(const std::string& path, std::string_view what) {
  Report report;
  report.input = path;
  AddError({"E0902", std::string(what) + " is not in this version yet", "use convert, or inspect --stage"}, report);
  return report;
}

}  // namespace

Report Functionalize(const std::string& path, const std::string&, const Options&) { return NotYet(path, "functionalize"); }
Report Decompose(const std::string& path, const std::string&, const Options&) { return NotYet(path, "decompose"); }
Report Explain(const std::string& path, const Options&) { return NotYet(path, "explain"); }

}  // namespace pt2onnx
