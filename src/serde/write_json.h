// Pieces of model.json, appended to a text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "ir/graph.h"
#include "support/json.h"
#include "support/json_text.h"

namespace pt2onnx {

inline std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(out, text);
  return out;
}

// {"key": value}: a union of the format.
inline std::string Tagged(std::string_view key, std::string_view value) { return fmt::format("{{\"{}\": {}}}", key, value); }
// {"as_tensor": {"name": "x"}} and alike.
inline std::string TaggedName(std::string_view key, std::string_view name) { return fmt::format("{{\"{}\": {{\"name\": {}}}}}", key, Quoted(name)); }

// A float keeps its point: without one torch.export.load reads an int. What is not finite is a text.
std::string DoubleText(double x);
inline std::string_view BoolText(bool x) { return x ? "true" : "false"; }

// A piece of the program that was read, as it stood there.
void AppendJson(std::string& out, JsonValue value);

// "cuda:1" -> {"type": "cuda", "index": 1}
std::string DeviceText(std::string_view name);

// [a, b, c]
template <class Range, class F>
std::string ListText(const Range& range, F f) {
  std::string out = "[";
  bool first = true;
  for (const auto& item : range) {
    if (!first) out += ", ";
    first = false;
    out += f(item);
  }
  return out + "]";
}

}  // namespace pt2onnx
