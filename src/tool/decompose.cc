#include "pt2onnx/pt2onnx.h"
#include "tool/command.h"

namespace pt2onnx::tool {

Command DecomposeCommand() {
  return {.name = "decompose",
          .help = "write a .pt2 of Core ATen operators, without in-place ones",
          .writes = true,
          .options = ProgramOptions() + CommonOptions(),
          .run = [](const Arguments& a) { return Decompose(a.path, a.out_path, a.options); }};
}

}  // namespace pt2onnx::tool
