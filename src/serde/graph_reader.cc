#include "serde/graph_reader.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/bind.h"
#include "ir/sym_parse.h"

namespace pt2onnx {
namespace {

constexpr int kDeepest = 64;  // nested sub-graphs; real ones have three
constexpr int64_t kStrided = 7;

// Nodes that only compute with sizes: what they compute is recorded as an expression for each of their results.
bool ComputesSizes(std::string_view target) {
  for (const std::string_view prefix : {"_operator.", "math.", "torch.sym_", "torch._sym_", "torch.ops.aten.sym_"})
    if (target.starts_with(prefix)) return true;
  return false;
}

bool AllSymbolic(JsonValue outputs) {
  bool any = false;
  for (const JsonValue output : outputs.Items()) {
    const auto sole = output.Sole();
    if (!sole || !sole->key.starts_with("as_sym_")) return false;
    any = true;
  }
  return any;
}

}  // namespace

void ReadState::Fail(std::string_view code, std::string message, std::string help) {
  if (!error) error = Error{std::string(code), std::move(message), std::move(help)};
}

GraphReader::GraphReader(ReadState& state, JsonValue graph, std::string where, int depth)
    : state_(state), context_(state.context), json_(graph), where_(std::move(where)), depth_(depth) {}

void GraphReader::Fail(std::string_view code, std::string message, std::string help) {
  std::string place = where_;
  if (node_index_ >= 0) place += fmt::format(".nodes[{}]", node_index_);
  if (!node_name_.empty()) place += fmt::format(" ({})", node_name_);
  if (!argument_name_.empty()) place += fmt::format(", argument {}", argument_name_);
  state_.Fail(code, place + ": " + message, std::move(help));
}

Graph* GraphReader::Read() {
  graph_ = context_.NewGraph();
  if (depth_ > kDeepest) Fail("E0142", "sub-graphs are nested too deeply");
  for (const std::string_view field : {"inputs", "outputs", "nodes"})
    if (!json_[field].IsArray()) Fail("E0142", fmt::format("has no list \"{}\"", field), "the file is damaged, or not an exported program");
  if (failed()) return graph_;
  CollectNames();
  for (const JsonValue input : json_["inputs"].Items()) {
    if (failed()) return graph_;
    ReadInput(input);
  }
  graph_->nodes.reserve(static_cast<size_t>(json_["nodes"].Size()));
  for (const JsonValue node : json_["nodes"].Items()) {
    if (failed()) return graph_;
    ++node_index_;
    ReadNode(node);
  }
  node_index_ = -1;
  node_name_ = argument_name_ = {};
  for (const JsonValue output : json_["outputs"].Items()) {
    if (failed()) return graph_;
    ReadOutput(output);
  }
  return graph_;
}

void GraphReader::CollectNames() {
  struct Row {
    std::string_view field;
    Name::Map map;
  };
  constexpr Row kRows[] = {{"tensor_values", Name::kTensor},
                           {"sym_int_values", Name::kInt},
                           {"sym_float_values", Name::kFloat},
                           {"sym_bool_values", Name::kBool},
                           {"custom_obj_values", Name::kObject}};
  int64_t count = 0;
  for (const Row& row : kRows) count += json_[row.field].Size();
  names_.reserve(static_cast<size_t>(count));
  for (const Row& row : kRows)
    for (const auto [name, record] : json_[row.field].Members()) names_.try_emplace(name, Name{record, row.map});
}

GraphReader::Name* GraphReader::Find(std::string_view name) {
  const auto found = names_.find(name);
  if (found != names_.end()) return &found->second;
  Fail("E0143", fmt::format("%{} has no entry among the values of its graph", name));
  return nullptr;
}

SymExpr GraphReader::ParseExpr(std::string_view text) {
  const auto [place, fresh] = state_.exprs.try_emplace(text);
  if (!fresh) return place->second;
  Result<SymExpr> parsed = ParseSrepr(context_.syms, text);
  if (parsed) return place->second = *parsed;
  Fail("E0144", fmt::format("\"{}\" is no expression: {}", text, parsed.error().message));
  return 0;
}

SymExpr GraphReader::Expr(JsonValue record) {
  const auto sole = record.Sole();
  if (sole) {
    if (sole->key == "as_int") {
      if (const auto x = sole->value.AsInt()) return *x;
    } else if (sole->key == "as_expr") {
      if (const auto text = sole->value["expr_str"].AsString()) return ParseExpr(*text);
    } else if (sole->key == "as_float") {
      if (const auto x = sole->value.AsDouble()) return SymExpr::Float(*x);
    } else if (sole->key == "as_bool") {
      if (const auto x = sole->value.AsBool()) return SymExpr::Bool(*x);
    }
  }
  Fail("E0142", "a size is neither a number nor an expression");
  return 0;
}

Dims GraphReader::ReadDims(JsonValue list) {
  if (!list.IsArray()) Fail("E0142", "a tensor has no list of sizes or strides");
  SymExpr* out = static_cast<SymExpr*>(context_.arena.Allocate(sizeof(SymExpr) * static_cast<size_t>(list.Size() + 1), alignof(SymExpr)));
  size_t n = 0;
  for (const JsonValue dim : list.Items()) new (out + n++) SymExpr(Expr(dim));
  return {out, n};
}

Type GraphReader::TensorType(JsonValue meta) {
  Type type;
  type.kind = Kind::Tensor;
  const std::optional<int64_t> code = meta["dtype"].AsInt();
  const std::optional<DType> dtype = code ? DTypeFromPt2(*code) : std::nullopt;
  if (!code) Fail("E0142", "a tensor has no dtype");
  type.dtype = dtype.value_or(DType::Unknown);
  type.shape = ReadDims(meta["sizes"]);
  type.strides = ReadDims(meta["strides"]);
  if (!failed() && type.shape.size() != type.strides.size()) Fail("E0142", "a tensor has not as many strides as sizes");
  if (const JsonValue offset = meta["storage_offset"]; !offset.IsNull()) type.offset = Expr(offset);
  const bool strided = meta["layout"].IsNull() || meta["layout"].AsInt() == kStrided;
  if (!strided || !dtype) type.kind = Kind::Opaque;
  return type;
}

Type GraphReader::TypeOf(const Name& name) {
  if (name.map == Name::kTensor) return TensorType(name.record);
  Type type;
  if (name.map == Name::kObject) {
    type.kind = Kind::Opaque;
    return type;
  }
  type.kind = Kind::Sym;
  type.dtype = name.map == Name::kInt ? DType::I64 : name.map == Name::kFloat ? DType::F64 : DType::Bool;
  type.value = Expr(name.record);
  return type;
}

Value* GraphReader::Define(std::string_view text, Node* def, size_t result, bool object) {
  if (object) names_.try_emplace(text, Name{{}, Name::kObject});  // tokens are in no map
  Name* name = Find(text);
  if (!name) return nullptr;
  if (name->value) {
    Fail("E0143", fmt::format("%{} is defined twice", text));
    return nullptr;
  }
  Value* value = context_.NewValue(TypeOf(*name), text);
  value->def = def;
  value->result = static_cast<uint32_t>(result);
  return name->value = value;
}

void GraphReader::ReadInput(JsonValue argument) {
  GraphInput& input = graph_->inputs.emplace_back();
  const auto sole = argument.Sole();
  if (!sole) return Fail("E0142", "an input is no argument");
  const std::string_view tag = sole->key;
  if (const auto name = sole->value["name"].AsString()) {
    const bool tensor = tag == "as_tensor";
    input.value = Define(*name, nullptr, graph_->inputs.size() - 1, !tensor);
    if (!tensor) input.kind = tag == "as_token" ? InputKind::Token : InputKind::Opaque;
  } else if (const auto symbol = sole->value["as_name"].AsString()) {
    input.value = Define(*symbol, nullptr, graph_->inputs.size() - 1);
  } else {
    input.constant = ReadArgument(argument);
  }
}

void GraphReader::ReadOutput(JsonValue argument) {
  const Arg arg = ReadArgument(argument);
  if (const ValueList* list = std::get_if<ValueList>(&arg)) {
    for (Value* value : *list) graph_->outputs.push_back({value ? Arg(value) : Arg()});
  } else {
    graph_->outputs.push_back({arg});
  }
}

LocId GraphReader::ReadLoc(JsonValue json) {
  const JsonValue metadata = json["metadata"];
  Loc loc;
  loc.node = node_name_;
  loc.stack_trace = metadata["stack_trace"].AsString().value_or("");
  loc.module_stack = metadata["nn_module_stack"].AsString().value_or("");
  context_.locs.push_back(loc);
  return static_cast<LocId>(context_.locs.size() - 1);
}

namespace {

// What a node is called: its own name (2.11), else that of its first result, else its target.
std::string_view NodeName(JsonValue json, std::string_view target) {
  if (const auto name = json["name"].AsString()) return *name;
  for (const JsonValue output : json["outputs"].Items()) {
    if (const auto sole = output.Sole()) {
      if (const auto name = sole->value["name"].AsString()) return *name;
      if (const auto name = sole->value["as_name"].AsString()) return *name;
    }
    break;
  }
  return target;
}

}  // namespace

void GraphReader::ReadNode(JsonValue json) {
  node_name_ = argument_name_ = {};
  const auto target = json["target"].AsString();
  if (!target) return Fail("E0142", "has no target");
  node_name_ = NodeName(json, *target);
  for (const std::string_view field : {"inputs", "outputs"})
    if (!json[field].IsArray()) return Fail("E0142", fmt::format("has no list \"{}\"", field));
  if (ComputesSizes(*target) && AllSymbolic(json["outputs"])) return;

  const std::vector<Input> inputs = ReadInputs(json["inputs"]);
  if (failed()) return;
  if (target->starts_with("torch.ops.higher_order.auto_functionalized") && ReadAutoFunctionalized(json, inputs)) return;
  const int64_t results = json["outputs"].Size();
  const OpSchema* op = FindOp(*target, inputs, json, results);
  std::vector<Arg> args;
  if (!Bind(*op, inputs, args)) return;
  Node* node = Emit(*op, args);
  node->loc = ReadLoc(json);
  ReadResults(json["outputs"], results, node);
}

Node* GraphReader::Emit(const OpSchema& op, std::span<const Arg> args) {
  Node* node = context_.arena.New<Node>();
  node->op = &op;
  node->args = context_.arena.Copy(args);
  graph_->nodes.push_back(node);
  return node;
}

void GraphReader::ReadResults(JsonValue outputs, int64_t count, Node* node) {
  std::vector<Value*> results;
  const auto define = [&](JsonValue holder, std::string_view field, bool object = false) {
    const auto name = holder[field].AsString();
    results.push_back(name ? Define(*name, node, results.size(), object) : nullptr);  // null: a number, which nobody can name
  };
  // Lists, of lists, of tensors: flattened.
  const auto flatten = [&](auto&& self, JsonValue item) -> void {
    if (item.IsArray()) {
      for (const JsonValue part : item.Items()) self(self, part);
    } else if (const auto sole = item.Sole(); sole && sole->key == "as_none") {
      results.push_back(nullptr);
    } else {
      define(sole && sole->key == "as_tensor" ? sole->value : item, "name");
    }
  };
  for (const JsonValue output : outputs.Items()) {
    if (count-- <= 0) break;
    const auto sole = output.Sole();
    if (!sole) return Fail("E0142", "an output is no argument");
    if (sole->key == "as_tensor" || sole->value.IsArray()) {
      if (sole->key == "as_none")
        results.push_back(nullptr);  // torch 2.5: an empty list
      else
        flatten(flatten, sole->value);
    } else if (sole->key.starts_with("as_sym_")) {
      define(sole->value, "as_name");
    } else {
      define(sole->value, "name", true);
    }
    if (failed()) return;
  }
  node->results = context_.arena.Copy(results);
}

}  // namespace pt2onnx
