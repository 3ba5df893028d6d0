#include "pt2onnx/pt2onnx.h"
#include "tool/command.h"

namespace pt2onnx::tool {

Command InspectCommand() {
  return {.name = "inspect",
          .help = "print the program",
          .writes = false,
          .options = InspectOptions() + ModelOptions() + ProgramOptions() + CommonOptions(),
          .run = [](const Arguments& a) { return Inspect(a.path, a.options); }};
}

}  // namespace pt2onnx::tool
