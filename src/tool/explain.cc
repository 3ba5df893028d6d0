#include "pt2onnx/pt2onnx.h"
#include "tool/command.h"

namespace pt2onnx::tool {

Command ExplainCommand() {
  return {.name = "explain",
          .help = "tell what becomes of each write of the program",
          .writes = false,
          .options = ProgramOptions() + CommonOptions(),
          .run = [](const Arguments& a) { return Explain(a.path, a.options); }};
}

}  // namespace pt2onnx::tool
