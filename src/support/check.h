// Checks for our own bugs. A failed check is never the user's fault: the program ends with exit code 3.
#pragma once

#include <string_view>

namespace pt2onnx {

// Prints "internal error: file:line: what" to stderr and ends the process with code 3.
[[noreturn]] void CheckFailed(const char* file, int line, std::string_view what);

}  // namespace pt2onnx

#define PT2ONNX_CHECK(condition) \
  do {                           \
    if (!(condition)) ::pt2onnx::CheckFailed(__FILE__, __LINE__, #condition); \
  } while (0)
#define PT2ONNX_UNREACHABLE() ::pt2onnx::CheckFailed(__FILE__, __LINE__, "unreachable")
