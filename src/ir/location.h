// What the recorded places of a node say: the line of the user's program that made it, and the module that it stands in.
//
//   File "/home/me/model.py", line 41, in forward          -> {model.py, 41, "y = self.conv(x)"}
//       y = self.conv(x)
//     File ".../site-packages/torch/nn/modules/conv.py", line 565, in forward
//       return self._conv_forward(input, self.weight, self.bias)
#pragma once

#include <cstdint>
#include <string_view>

namespace pt2onnx {

struct SourceLine {
  std::string_view file;  // without its folders; "" if nothing was recorded
  int64_t line = 0;
  std::string_view text;
};

// The innermost line that is not of PyTorch itself, else the innermost. The texts are parts of `stack_trace`.
SourceLine UserLine(std::string_view stack_trace);

// The path of the innermost module: "encoder.layers.0" of "L__self__,,M;L__self___encoder,encoder,E;...,encoder.layers.0,torch.nn.Linear".
std::string_view ModulePath(std::string_view module_stack);

// The class of the innermost module, without its package: "Linear". "" if nothing was recorded.
std::string_view ModuleClass(std::string_view module_stack);

// Where the entry of the module at a level ends, 0 being the outermost; npos if the stack is not that deep.
size_t EndOfModule(std::string_view module_stack, size_t level);

}  // namespace pt2onnx
