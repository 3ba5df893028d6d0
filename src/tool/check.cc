#include "pt2onnx/pt2onnx.h"
#include "tool/command.h"

namespace pt2onnx::tool {

Command CheckCommand() {
  return {.name = "check",
          .help = "list what has no ONNX form",
          .writes = false,
          .options = ModelOptions() + ProgramOptions() + CommonOptions(),
          .run = [](const Arguments& a) { return Check(a.path, a.options); }};
}

}  // namespace pt2onnx::tool
