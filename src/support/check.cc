#include "support/check.h"

#include <cstdio>
#include <cstdlib>

namespace pt2onnx {

void CheckFailed(const char* file, int line, std::string_view what) {
  std::fprintf(stderr, "pt2onnx: internal error: %s:%d: %.*s\nThis is a bug in pt2onnx; please report it with the file that shows it.\n", file, line,
               static_cast<int>(what.size()), what.data());
  std::_Exit(3);
}

}  // namespace pt2onnx
