// Arguments of nodes: from their tagged JSON, into the places that the op's schema gives them.
//
// An aten op names each argument. A higher-order op's inputs have no names: each takes the first free place that can hold it, and what is
// left over is gathered by the list of operands. wrap_with_set_grad_enabled(bool enabled, Graph body, Tensor[] operands) is written as
// false, graph, x, y, and torch 2.6's scan has a dim and a flag between its lists.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "ir/bind.h"
#include "ir/schema_parse.h"
#include "serde/graph_reader.h"

namespace pt2onnx {
namespace {

enum class Tag : uint8_t {
  None,
  Name,
  Names,
  OptNames,
  Int,
  Float,
  Bool,
  Text,
  Complex,
  Ints,
  Floats,
  Bools,
  Texts,
  Number,
  Numbers,
  DType,
  Layout,
  MemoryFormat,
  Device,
  Graph,
  IntLists,
  NameLists,
  OptName,
};

struct TagRow {
  std::string_view text;
  Tag tag;
};

// The most frequent first.
constexpr TagRow kTags[] = {
    {"as_tensor", Tag::Name},
    {"as_int", Tag::Int},
    {"as_ints", Tag::Ints},
    {"as_bool", Tag::Bool},
    {"as_float", Tag::Float},
    {"as_scalar_type", Tag::DType},
    {"as_device", Tag::Device},
    {"as_layout", Tag::Layout},
    {"as_tensors", Tag::Names},
    {"as_sym_ints", Tag::Numbers},
    {"as_sym_int", Tag::Number},
    {"as_none", Tag::None},
    {"as_string", Tag::Text},
    {"as_graph", Tag::Graph},
    {"as_sym_bool", Tag::Number},
    {"as_sym_float", Tag::Number},
    {"as_floats", Tag::Floats},
    {"as_memory_format", Tag::MemoryFormat},
    {"as_complex", Tag::Complex},
    {"as_bools", Tag::Bools},
    {"as_optional_tensors", Tag::OptNames},
    {"as_strings", Tag::Texts},
    {"as_operator", Tag::Text},
    {"as_sym_floats", Tag::Numbers},
    {"as_sym_bools", Tag::Numbers},
    {"as_custom_obj", Tag::Name},
    {"as_token", Tag::Name},
    {"as_int_lists", Tag::IntLists},
    {"as_float_lists", Tag::IntLists},
    {"as_nested_tensors", Tag::NameLists},
    {"as_optional_tensor", Tag::OptName},
};

std::optional<Tag> FindTag(std::string_view text) {
  for (const TagRow& row : kTags)
    if (row.text == text) return row.tag;
  return std::nullopt;
}

bool IsList(const Arg& arg) {
  return std::holds_alternative<ValueList>(arg) || std::holds_alternative<Ints>(arg) || std::holds_alternative<Dims>(arg) ||
         std::holds_alternative<Doubles>(arg) || std::holds_alternative<Bools>(arg);
}

bool IsNumber(const Arg& arg) { return std::holds_alternative<SymExpr>(arg) || !ToSymExpr(arg).IsUnknown(); }

// Numbers from 2^63 on occur where unsigned tensors are filled; as a double they are exact. (Elsewhere they mean "to the end" and are clamped.)
std::optional<double> BeyondInt64(const ArgSchema& schema, JsonValue argument) {
  if (schema.type != ArgType::Scalar && schema.type != ArgType::Tensor) return std::nullopt;
  const auto x = argument["as_int"].AsUint();
  return x && *x > static_cast<uint64_t>(INT64_MAX) ? std::optional(static_cast<double>(*x)) : std::nullopt;
}

bool IsOperandList(const ArgSchema& schema) { return schema.type == ArgType::TensorList || schema.type == ArgType::OptTensorList; }

// Whether an unnamed input may take this place. Lists of numbers are operands of higher-order ops.
bool MayTake(Context& context, const ArgSchema& schema, const Arg& arg) {
  if (IsOperandList(schema)) return IsList(arg) || IsNumber(arg) || IsNone(arg) || std::holds_alternative<Value*>(arg);
  Arg copy = arg;
  return Coerce(context, schema, copy);
}

// "torch.ops.aten.add.Tensor" -> "aten::add.Tensor", "torch.ops.aten.relu.default" -> "aten::relu".
std::string OpName(std::string_view target) {
  const auto strip = [&](std::string_view prefix) {
    if (!target.starts_with(prefix)) return false;
    target.remove_prefix(prefix.size());
    return true;
  };
  if (strip("torch._functorch.predispatch.")) return "functorch::" + std::string(target);
  if (strip("torch.ops.higher_order.")) return "hop::" + std::string(target);
  if (strip("#")) return "extension::" + std::string(target);
  strip("torch.ops.");
  target = WithoutDefault(target);
  const size_t dot = target.find('.');
  if (dot == std::string_view::npos) return "python::" + std::string(target);
  return fmt::format("{}::{}", target.substr(0, dot), target.substr(dot + 1));
}

}  // namespace

Arg GraphReader::Named(std::string_view text) {
  Name* name = Find(text);
  if (!name) return {};
  if (name->map == Name::kInt || name->map == Name::kFloat || name->map == Name::kBool) return Expr(name->record);
  if (!name->value) Fail("E0143", fmt::format("%{} is used before it is defined", text));
  return name->value;
}

Value* GraphReader::Operand(const Arg& arg) {
  if (IsNone(arg)) return nullptr;
  if (Value* const* value = std::get_if<Value*>(&arg)) return *value;
  const SymExpr expr = ToSymExpr(arg);
  if (!IsNumber(arg)) Fail("E0145", "an operand is neither a tensor nor a number");
  const OpSchema* op = context_.FindOp("sym::value");
  PT2ONNX_CHECK(op);
  Type type;
  type.kind = Kind::Sym;
  type.dtype = expr.kind() == SymKind::Int ? DType::I64 : expr.kind() == SymKind::Float ? DType::F64 : DType::Bool;
  type.value = expr;
  Arg number = expr;
  Coerce(context_, op->args[0], number);
  Node* node = Emit(*op, {&number, 1});
  Value* value = context_.NewValue(type);
  value->def = node;
  node->results = context_.arena.Copy(std::array<Value*, 1>{value});
  return value;
}

bool GraphReader::ToOperands(Arg& list) {
  if (std::holds_alternative<ValueList>(list)) return true;
  std::vector<Value*> values;
  const auto add = [&](const auto& numbers) {
    for (const auto& number : numbers) values.push_back(Operand(Arg(number)));
  };
  if (const Ints* x = std::get_if<Ints>(&list))
    add(*x);
  else if (const Dims* d = std::get_if<Dims>(&list))
    add(*d);
  else if (const Doubles* f = std::get_if<Doubles>(&list))
    add(*f);
  else if (const Bools* b = std::get_if<Bools>(&list))
    add(*b);
  else
    return false;
  list = ValueList(context_.arena.Copy(values));
  return true;
}

Arg GraphReader::ReadNumber(JsonValue number) {
  if (const auto name = number["as_name"].AsString()) return Named(*name);
  if (const auto x = number["as_int"].AsInt()) return *x;
  if (const auto x = number["as_float"].AsDouble()) return *x;
  if (const auto x = number["as_bool"].AsBool()) return *x;
  Fail("E0142", "a number is neither a name nor a value");
  return {};
}

Arg GraphReader::ReadNumbers(JsonValue list) {
  std::vector<Arg> elements;
  for (const JsonValue item : list.Items()) elements.push_back(ReadNumber(item));
  return MakeList(context_, elements);
}

Arg GraphReader::ReadNames(JsonValue list, bool nested) {
  std::vector<Value*> values;
  for (const JsonValue item : list.Items()) {
    if (nested && item.IsArray()) {
      for (const JsonValue part : item.Items()) values.push_back(Operand(Named(part["name"].AsString().value_or(""))));
      continue;
    }
    const JsonValue tensor = item["as_tensor"] ? item["as_tensor"] : item;
    const auto name = tensor["name"].AsString();
    if (!name && !item["as_none"]) Fail("E0142", "a list of tensors holds something else");
    values.push_back(name ? Operand(Named(*name)) : nullptr);
    if (failed()) return {};
  }
  return ValueList(context_.arena.Copy(values));
}

Arg GraphReader::ReadGraph(JsonValue value) {
  const std::string_view name = value["name"].AsString().value_or("");
  std::string where = fmt::format("{}.nodes[{}] ({}).{}", where_, node_index_, node_name_, name);
  GraphReader reader(state_, value["graph"], std::move(where), depth_ + 1);
  Graph* graph = reader.Read();
  graph->name = name;
  return graph;
}

Arg GraphReader::ReadDevice(JsonValue value) {
  const std::string_view type = value["type"].AsString().value_or("cpu");
  const auto index = value["index"].AsInt();
  return Device{index ? context_.Join(type, ":", std::to_string(*index)) : type};
}

Arg GraphReader::ReadArgument(JsonValue argument) {
  const auto sole = argument.Sole();
  const std::optional<Tag> tag = sole ? FindTag(sole->key) : std::nullopt;
  if (!tag) {
    if (sole)
      Fail("E0146", fmt::format("arguments of the kind \"{}\" are not known", sole->key),
           "the file may come from a newer torch than this version knows");
    else
      Fail("E0142", "an argument is no object with one key");
    return {};
  }
  const JsonValue value = sole->value;
  const auto list = [&](auto convert) -> Arg {
    std::vector<Arg> elements;
    for (const JsonValue item : value.Items()) {
      const auto element = convert(item);
      if (!element) {
        Fail("E0142", fmt::format("an element of {} is something else", sole->key));
        return {};
      }
      elements.push_back(*element);
    }
    return MakeList(context_, elements);
  };
  const auto scalar = [&](const auto& x) -> Arg {
    if (x) return *x;
    Fail("E0142", fmt::format("the value of {} is something else", sole->key));
    return {};
  };
  switch (*tag) {
    case Tag::None:
      return {};
    case Tag::Name:
      return Named(value["name"].AsString().value_or(""));
    case Tag::OptName:
      return value["as_none"] ? Arg() : Named((value["as_tensor"] ? value["as_tensor"] : value)["name"].AsString().value_or(""));
    case Tag::Names:
    case Tag::OptNames:
      return ReadNames(value, false);
    case Tag::NameLists:
      return ReadNames(value, true);
    case Tag::Int:
      return scalar(value.AsInt());
    case Tag::Float:
      return scalar(value.AsDouble());
    case Tag::Bool:
      return scalar(value.AsBool());
    case Tag::Text:
      return scalar(value.AsString());
    case Tag::Complex: {
      const auto re = value["real"].AsDouble(), im = value["imag"].AsDouble();
      return scalar(re && im ? std::optional(std::complex<double>(*re, *im)) : std::nullopt);
    }
    case Tag::Ints:
      return list([](JsonValue x) { return x.AsInt(); });
    case Tag::Floats:
      return list([](JsonValue x) { return x.AsDouble(); });
    case Tag::Bools:
      return list([](JsonValue x) { return x.AsBool(); });
    case Tag::Texts:
      return list([](JsonValue x) { return x.AsString(); });
    case Tag::IntLists: {
      std::vector<Arg> elements;
      for (const JsonValue row : value.Items())
        for (const JsonValue item : row.Items()) elements.push_back(item.IsInt() ? scalar(item.AsInt()) : scalar(item.AsDouble()));
      return MakeList(context_, elements);
    }
    case Tag::Number:
      return ReadNumber(value);
    case Tag::Numbers:
      return ReadNumbers(value);
    case Tag::DType:
      return value.AsInt() ? Arg(DTypeFromPt2(*value.AsInt()).value_or(DType::Unknown)) : scalar(value.AsInt());
    case Tag::Layout:
      return scalar(value.AsInt());
    case Tag::MemoryFormat:
      return value.AsInt() ? Arg(MemoryFormat{*value.AsInt()}) : scalar(value.AsInt());
    case Tag::Device:
      return ReadDevice(value);
    case Tag::Graph:
      return ReadGraph(value);
  }
  PT2ONNX_UNREACHABLE();
}

std::vector<GraphReader::Input> GraphReader::ReadInputs(JsonValue list) {
  std::vector<Input> inputs;
  inputs.reserve(static_cast<size_t>(list.Size()));
  for (const JsonValue item : list.Items()) {
    Input& input = inputs.emplace_back();
    input.name = argument_name_ = item["name"].AsString().value_or("");
    input.keyword = item["kind"].AsInt() == 2;
    input.json = item["arg"];
    input.arg = ReadArgument(input.json);
    if (failed()) break;
  }
  argument_name_ = {};
  return inputs;
}

const OpSchema* GraphReader::FindOp(std::string_view target, std::span<const Input> inputs, JsonValue json, int64_t results) {
  const auto [place, fresh] = state_.ops.try_emplace(target);
  if (fresh) {
    const std::string name = OpName(target);
    place->second.op = context_.FindOp(name);
    if (!place->second.op) place->second = {SchemaFromUse(OpSchema{.name = context_.Intern(name)}, inputs, json, results), true};
  } else if (place->second.from_use) {
    place->second.op = SchemaFromUse(*place->second.op, inputs, json, results);
  }
  return place->second.op;
}

// An op that no table knows: arguments as its nodes name them, results as they have them. Conversion refuses it by name.
const OpSchema* GraphReader::SchemaFromUse(const OpSchema& so_far, std::span<const Input> inputs, JsonValue json, int64_t result_count) {
  std::vector<ArgSchema> args(so_far.args.begin(), so_far.args.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string_view name = inputs[i].name.empty() ? context_.Join("arg", std::to_string(i)) : inputs[i].name;
    if (so_far.ArgIndex(name) >= 0) continue;
    args.push_back(
        {.name = name, .type = ArgType::Any, .optional = true, .keyword_only = inputs[i].keyword, .has_default = true, .default_text = "None"});
  }
  std::vector<ResultSchema> results(so_far.results.begin(), so_far.results.end());
  int64_t index = 0;
  for (const JsonValue output : json["outputs"].Items()) {
    if (index >= result_count) break;
    const auto sole = output.Sole();
    const bool tensor = !sole || !sole->key.starts_with("as_sym_");
    if (index++ >= std::ssize(results)) results.push_back({.list = sole && sole->value.IsArray(), .tensor = tensor});
  }
  if (so_far.id && args.size() == so_far.args.size() && results.size() == so_far.results.size()) return &so_far;
  // What has no result is called for what it does, and that may be a write to any argument: only a schema (--schema) says that it isn't.
  const bool writes = results.empty();
  for (ArgSchema& arg : args) arg.writes = writes, arg.alias = writes ? 'a' : 0;
  OpSchema op{.id = 0, .name = so_far.name, .args = context_.arena.Copy(args), .results = context_.arena.Copy(results)};
  op.traits = kEffect;
  if (writes) op.kind = OpKind::Inplace;
  return context_.RegisterOp(op);
}

std::optional<size_t> GraphReader::PlaceOf(const OpSchema& op, std::string_view name, size_t position, const Arg& arg,
                                           const std::vector<bool>& bound) {
  if (!name.empty()) {
    const int index = op.ArgIndex(name);
    if (index >= 0) return static_cast<size_t>(index);
    // Renamed since the file was written: its place, if nobody else has it.
    if (position < op.args.size() && !bound[position] && !op.args[position].keyword_only) return position;
    return std::nullopt;
  }
  // A number is an operand only where no other place takes it.
  for (const bool gather : {false, true}) {
    for (size_t i = 0; i < op.args.size(); ++i)
      if (!bound[i] && gather == (IsOperandList(op.args[i]) && !IsList(arg)) && MayTake(context_, op.args[i], arg)) return i;
  }
  return std::nullopt;
}

bool GraphReader::Bind(const OpSchema& op, std::span<const Input> inputs, std::vector<Arg>& args) {
  args.assign(op.args.size(), Arg());
  std::vector<bool> bound(op.args.size());
  std::vector<Value*> gathered;
  std::optional<size_t> gatherer;
  size_t position = 0;
  for (const Input& input : inputs) {
    const std::string_view name = input.name;
    argument_name_ = name;
    Arg arg = input.arg;
    const std::optional<size_t> place = PlaceOf(op, name, position++, arg, bound);
    if (!place) {
      Fail("E0145", fmt::format("{} has no place for it", op.name), "the op was written by another version of torch, or the file is damaged");
      return false;
    }
    const ArgSchema& schema = op.args[*place];
    if (const auto big = BeyondInt64(schema, input.json)) arg = *big;
    if (name.empty() && IsOperandList(schema) && !IsList(arg)) {
      gatherer = place;
      gathered.push_back(Operand(arg));
      continue;
    }
    const bool fits = (IsOperandList(schema) && IsList(arg) && ToOperands(arg)) || Coerce(context_, schema, arg);
    if (!fits || bound[*place]) {
      argument_name_ = schema.name;
      Fail("E0145", bound[*place] ? fmt::format("given twice to {}", op.name) : fmt::format("is nothing that {} takes there", op.name));
      return false;
    }
    args[*place] = arg;
    bound[*place] = true;
  }
  if (gatherer) {
    args[*gatherer] = ValueList(context_.arena.Copy(gathered));
    bound[*gatherer] = true;
  }
  argument_name_ = {};
  for (size_t i = 0; i < args.size(); ++i) {
    if (bound[i]) continue;
    const ArgSchema& schema = op.args[i];
    if (schema.has_default) {
      args[i] = Default(schema);
    } else if (IsOperandList(schema) && op.Namespace() == "hop") {
      args[i] = ValueList();
    } else if (!schema.optional && schema.type != ArgType::Generator) {
      Fail("E0145", fmt::format("{} gets no \"{}\"", op.name, schema.name), "the op was written by another version of torch, or the file is damaged");
      return false;
    }
  }
  return true;
}

Arg GraphReader::Default(const ArgSchema& schema) {
  const auto [place, fresh] = state_.defaults.try_emplace(&schema);
  if (fresh) place->second = FillDefault(context_, schema);
  return place->second;
}

}  // namespace pt2onnx
