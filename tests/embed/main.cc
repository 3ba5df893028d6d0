// What a user's program that embeds pt2onnx looks like; built against the installed library by the test `embed`.
#include <pt2onnx/pt2onnx.h>

#include <iostream>

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "no such file.pt2";
  const pt2onnx::Report report = pt2onnx::Convert(path, "model.onnx", {.opset = 21});
  std::cout << "pt2onnx " << pt2onnx::Version() << "\n" << report.Text();
  return report.ok() == (argc > 1) ? 0 : 1;
}
