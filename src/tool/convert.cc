#include "pt2onnx/pt2onnx.h"
#include "tool/command.h"

namespace pt2onnx::tool {

Command ConvertCommand() {
  return {.name = "convert",
          .help = "write an ONNX model",
          .writes = true,
          .options = ModelOptions() + ProgramOptions() + CommonOptions(),
          .run = [](const Arguments& a) { return Convert(a.path, a.out_path, a.options); }};
}

}  // namespace pt2onnx::tool
