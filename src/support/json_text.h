// Text as JSON writes it.
#pragma once

#include <string>
#include <string_view>

namespace pt2onnx {

// Appends "text" with its quotes. Bytes that are not UTF-8 (a file name may hold any) become U+FFFD, so that the result is always valid JSON.
void AppendJsonString(std::string& out, std::string_view text);

}  // namespace pt2onnx
