#include "serde/user_names.h"

#include "support/json.h"

namespace pt2onnx {
namespace {

int64_t CountLeaves(JsonValue node) {
  if (node["type"].IsNull()) return 1;
  int64_t count = 0;
  for (const JsonValue child : node["children_spec"].Items()) count += CountLeaves(child);
  return count;
}

void AddName(std::vector<std::string_view>& names, JsonValue child, std::string_view name) {
  const bool leaf = child["type"].IsNull();
  names.resize(names.size() + static_cast<size_t>(CountLeaves(child)));
  if (leaf) names.back() = name;
}

}  // namespace

std::vector<std::string_view> UserInputNames(Context& context, std::string_view in_spec, const std::vector<std::string_view>& forward_args) {
  std::vector<std::string_view> names;
  Result<JsonDoc> doc = JsonDoc::Parse(in_spec);
  if (!doc) return names;
  std::vector<JsonValue> parts;  // [version, tree]
  for (const JsonValue part : doc->root().Items()) parts.push_back(part);
  if (parts.size() != 2) return names;
  std::vector<JsonValue> halves;  // args, kwargs
  for (const JsonValue half : parts[1]["children_spec"].Items()) halves.push_back(half);
  if (halves.size() != 2) return names;

  size_t index = 0;
  for (const JsonValue child : halves[0]["children_spec"].Items()) {
    AddName(names, child, index < forward_args.size() ? forward_args[index] : std::string_view());
    ++index;
  }
  std::vector<std::string_view> keys;  // a JSON list in a string
  if (Result<JsonDoc> list = JsonDoc::Parse(halves[1]["context"].AsString().value_or("[]"))) {
    for (const JsonValue key : list->root().Items()) keys.push_back(context.Intern(key.AsString().value_or("")));
  }
  index = 0;
  for (const JsonValue child : halves[1]["children_spec"].Items()) {
    AddName(names, child, index < keys.size() ? keys[index] : std::string_view());
    ++index;
  }
  return names;
}

}  // namespace pt2onnx
