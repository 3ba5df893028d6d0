#include "pt2onnx/pt2onnx.h"
#include "tool/command.h"

namespace pt2onnx::tool {

Command FunctionalizeCommand() {
  return {.name = "functionalize",
          .help = "write a .pt2 without in-place operators",
          .writes = true,
          .options = ProgramOptions() + CommonOptions(),
          .run = [](const Arguments& a) { return Functionalize(a.path, a.out_path, a.options); }};
}

}  // namespace pt2onnx::tool
