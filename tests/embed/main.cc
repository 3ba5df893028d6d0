// What a user's program that embeds pt2onnx looks like; built against the installed library by the test `embed`.
#include <pt2onnx/pt2onnx.h>

#include <cstdio>

int main() {
  pt2onnx::Options options;
  options.opset = 21;
  std::printf("pt2onnx %s, opset %d\n", std::string(pt2onnx::Version()).c_str(), static_cast<int>(options.opset));
  return 0;
}
