// auto_functionalized(op, args) is what run_decompositions makes of a custom op that writes its arguments: it returns the op's results and
// what the written arguments would have become. It is read as what it stands for, the call on clones:
//
//   %r, %x_new = auto_functionalized(my::mut, x=%x, k=2)    ->    %x_new = aten::clone(%x)   %r = my::mut(%x_new, 2)
//
// v2 clones the bases (_all_bases) and says for each written argument x how it lies in one of them: _x_base_index alone or with _x_alias: it is
// the base; with _x_slice_dim, _slice_start, _slice_end: a slice; with _x_size, _stride, _storage_offset: as_strided.
#include <fmt/core.h>

#include <array>

#include "ir/bind.h"
#include "ir/infer.h"
#include "serde/graph_reader.h"

namespace pt2onnx {
namespace {

constexpr std::string_view kBaseIndex = "_base_index";

// The name of the one tensor that an output defines; "" if it is something else.
std::string_view TensorName(JsonValue output) { return output["as_tensor"]["name"].AsString().value_or(""); }

}  // namespace

Value* GraphReader::RegenerateView(Value* base, std::string_view prefix, std::span<const Input> inputs) {
  const auto find = [&](std::string_view suffix) -> const Arg* {
    for (const Input& input : inputs)
      if (input.name.size() == prefix.size() + suffix.size() && input.name.starts_with(prefix) && input.name.ends_with(suffix)) return &input.arg;
    return nullptr;
  };
  const Arg *dim = find("_slice_dim"), *size = find("_size");
  if (!dim && !size) return base;
  std::vector<Input> call = {{.name = "self", .arg = base}};
  const auto add = [&](std::string_view name, std::string_view suffix) {
    if (const Arg* arg = find(suffix)) call.push_back({.name = name, .arg = *arg});
  };
  if (dim) {
    add("dim", "_slice_dim"), add("start", "_slice_start"), add("end", "_slice_end");
  } else {
    add("size", "_size"), add("stride", "_stride"), add("storage_offset", "_storage_offset");
  }
  const OpSchema* op = context_.FindOp(dim ? "aten::slice.Tensor" : "aten::as_strided");
  std::vector<Arg> args;
  if (!op || !Bind(*op, call, args)) return base;
  const std::vector<Type> types = InferTypes(context_, *op, args);
  Type type = types.empty() ? base->type : types[0];
  if (dim) {
    const size_t axis = static_cast<size_t>(ToSymExpr(args[1]).TryConst().value_or(0));
    type.strides = base->type.strides;
    if (axis < type.strides.size() && !IsNone(args[2])) type.offset = base->type.offset + ToSymExpr(args[2]) * type.strides[axis];
  } else {
    type.strides = std::get<Dims>(args[2]);
    if (!IsNone(args[3])) type.offset = ToSymExpr(args[3]);
  }
  Node* node = Emit(*op, args);
  Value* view = context_.NewValue(type);
  view->def = node;
  node->results = context_.arena.Copy(std::array<Value*, 1>{view});
  return view;
}

bool GraphReader::ReadAutoFunctionalized(JsonValue json, std::span<const Input> inputs) {
  const std::string_view* target = inputs.empty() ? nullptr : std::get_if<std::string_view>(&inputs[0].arg);
  const OpSchema* clone = context_.FindOp("aten::clone");
  if (!target || !clone) return false;

  // What is cloned, and which arguments of the call are clones.
  const ValueList* bases = nullptr;
  for (const Input& input : inputs)
    if (input.name == "_all_bases") bases = std::get_if<ValueList>(&input.arg);
  std::vector<Value*> cloned;
  std::vector<Input> call;
  struct Written {
    size_t place, base;
    std::string_view prefix;  // "_x"; empty: the base itself
  };
  std::vector<Written> written;
  if (bases) {
    cloned.assign(bases->begin(), bases->end());
    for (const Input& input : inputs.subspan(1)) {
      if (input.name.ends_with("_length") && input.name.starts_with('_')) return false;  // lists of written tensors
      if (input.name.ends_with(kBaseIndex)) {
        const std::string_view prefix = input.name.substr(0, input.name.size() - kBaseIndex.size());
        const int64_t* base = std::get_if<int64_t>(&input.arg);
        if (base && (*base < 0 || *base >= std::ssize(cloned))) return false;
        if (base) written.push_back({call.size(), static_cast<size_t>(*base), prefix});
        call.push_back({.name = prefix.substr(1)});
      }
    }
    const auto describes_view = [&](std::string_view name) {
      for (const Written& w : written)
        if (name.starts_with(w.prefix) && name.substr(w.prefix.size()).starts_with('_')) return true;
      return name == "_all_bases" || name.ends_with(kBaseIndex);
    };
    for (const Input& input : inputs.subspan(1))
      if (!describes_view(input.name)) call.push_back(input);
  } else {
    call.assign(inputs.begin() + 1, inputs.end());
    const OpSchema* op = FindOp(*target, call, json, 0);
    for (const ArgSchema& arg : op->args) {
      if (!arg.writes) continue;
      for (size_t i = 0; i < call.size(); ++i) {
        Value* const* value = call[i].name == arg.name ? std::get_if<Value*>(&call[i].arg) : nullptr;
        if (!value) continue;
        written.push_back({i, cloned.size(), {}});
        cloned.push_back(*value);
      }
    }
    if (cloned.empty()) return false;
  }

  // The last outputs are the clones, by their names.
  std::vector<JsonValue> outputs;
  for (const JsonValue output : json["outputs"].Items()) outputs.push_back(output);
  if (outputs.size() < cloned.size()) return false;
  const int64_t results = std::ssize(outputs) - std::ssize(cloned);
  for (size_t i = 0; i < cloned.size(); ++i) {
    const std::string_view name = TensorName(outputs[static_cast<size_t>(results) + i]);
    if (name.empty()) return false;
    std::vector<Arg> args;
    const std::array<Input, 1> self = {Input{.name = "self", .arg = cloned[i]}};
    if (!Bind(*clone, self, args)) return true;
    Node* node = Emit(*clone, args);
    cloned[i] = Define(name, node, 0);
    node->results = context_.arena.Copy(std::array<Value*, 1>{cloned[i]});
    if (failed()) return true;
  }
  for (const Written& w : written) call[w.place].arg = RegenerateView(cloned[w.base], w.prefix, inputs);

  // An op without results is recorded with one that is None.
  const bool none = results == 1 && outputs[0]["as_none"];
  const OpSchema* op = FindOp(*target, call, json, none ? 0 : results);
  std::vector<Arg> args;
  if (!Bind(*op, call, args)) return true;
  Node* node = Emit(*op, args);
  node->loc = ReadLoc(json);
  ReadResults(json["outputs"], none ? 0 : results, node);
  return true;
}

}  // namespace pt2onnx
