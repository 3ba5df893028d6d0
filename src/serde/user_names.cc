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

// [version, tree] -> tree
JsonValue TreeOf(const JsonDoc& doc) {
  JsonValue tree;
  int count = 0;
  for (const JsonValue part : doc.root().Items())
    if (++count == 2) tree = part;
  return count == 2 ? tree : JsonValue();
}

// How the children of a structure are taken out of it: "['a']", "[0]", ".field".
std::vector<std::string> ChildSteps(JsonValue node, JsonValue namedtuple_fields) {
  std::vector<std::string> steps;
  const std::string_view type = node["type"].AsString().value_or("");
  const JsonValue context = node["context"];
  if (type == "collections.namedtuple") {
    for (const JsonValue name : namedtuple_fields[context.AsString().value_or("")]["field_names"].Items())
      steps.push_back("." + std::string(name.AsString().value_or("")));
  } else {
    // A JSON text in a string: the keys of a dict, [fields, fields that were None] of a data class.
    Result<JsonDoc> doc = JsonDoc::Parse(context.AsString().value_or("null"));
    JsonValue names = context.IsObject() ? context["dict_context"] : doc ? doc->root() : JsonValue();
    const bool dict = type.ends_with("dict") || type.ends_with("Dict");
    for (const JsonValue first : names.Items())
      if (!dict && first.IsArray()) {
        names = first;
        break;
      }
    for (const JsonValue name : names.Items()) {
      const auto text = name.AsString();
      const std::string key = text ? std::string(*text) : std::to_string(name.AsInt().value_or(0));
      steps.push_back(!dict ? "." + key : text ? "['" + key + "']" : "[" + key + "]");
    }
  }
  const auto children = static_cast<size_t>(node["children_spec"].Size());
  if (steps.size() != children) steps.clear();
  for (size_t i = steps.size(); i < children; ++i) steps.push_back("[" + std::to_string(i) + "]");
  return steps;
}

void AddPaths(std::vector<std::string>& paths, JsonValue node, const std::string& prefix, JsonValue namedtuple_fields) {
  if (node["type"].IsNull()) return paths.push_back(prefix);
  const std::vector<std::string> steps = ChildSteps(node, namedtuple_fields);
  size_t i = 0;
  for (const JsonValue child : node["children_spec"].Items()) AddPaths(paths, child, prefix + steps[i++], namedtuple_fields);
}

}  // namespace

std::vector<std::string> InputPaths(std::string_view in_spec, const std::vector<std::string_view>& forward_args, JsonValue namedtuple_fields) {
  std::vector<std::string> paths;
  Result<JsonDoc> doc = JsonDoc::Parse(in_spec);
  if (!doc) return paths;
  int half = 0;
  for (const JsonValue part : TreeOf(*doc)["children_spec"].Items()) {  // args, kwargs
    const std::vector<std::string> steps = ChildSteps(part, namedtuple_fields);
    size_t i = 0;
    for (const JsonValue child : part["children_spec"].Items()) {
      std::string root = half == 0 ? "args" + steps[i] : steps[i].size() > 4 ? steps[i].substr(2, steps[i].size() - 4) : steps[i];
      if (half == 0 && i < forward_args.size()) root = forward_args[i];
      AddPaths(paths, child, root, namedtuple_fields);
      ++i;
    }
    ++half;
  }
  return paths;
}

std::vector<std::string> OutputPaths(std::string_view out_spec, JsonValue namedtuple_fields) {
  std::vector<std::string> paths;
  if (Result<JsonDoc> doc = JsonDoc::Parse(out_spec)) AddPaths(paths, TreeOf(*doc), "", namedtuple_fields);
  return paths;
}

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
