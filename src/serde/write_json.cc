#include "serde/write_json.h"

#include <cmath>

namespace pt2onnx {

std::string DoubleText(double x) {
  if (std::isnan(x)) return "\"NaN\"";
  if (std::isinf(x)) return x > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  std::string text = fmt::format("{}", x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void AppendJson(std::string& out, JsonValue value) {
  auto separate = [&, first = true]() mutable {
    if (!first) out += ", ";
    first = false;
  };
  if (value.IsObject()) {
    out += '{';
    for (const auto [key, member] : value.Members()) {
      separate();
      AppendJsonString(out, key);
      out += ": ";
      AppendJson(out, member);
    }
    out += '}';
  } else if (value.IsArray()) {
    out += '[';
    for (const JsonValue item : value.Items()) {
      separate();
      AppendJson(out, item);
    }
    out += ']';
  } else if (value.IsString()) {
    AppendJsonString(out, *value.AsString());
  } else if (value.IsBool()) {
    out += BoolText(*value.AsBool());
  } else if (value.IsInt()) {
    const int64_t x = *value.AsInt();
    out += x == INT64_MAX ? fmt::format("{}", *value.AsUint()) : fmt::format("{}", x);
  } else if (value.IsDouble()) {
    out += DoubleText(*value.AsDouble());
  } else {
    out += "null";
  }
}

std::string DeviceText(std::string_view name) {
  const size_t colon = name.find(':');
  const std::string_view index = colon == std::string_view::npos ? "null" : name.substr(colon + 1);
  return fmt::format("{{\"type\": {}, \"index\": {}}}", Quoted(name.substr(0, colon)), index);
}

}  // namespace pt2onnx
