#include "serde/graph_writer.h"

#include "ir/schema_parse.h"
#include "passes/geometry.h"
#include "serde/write_json.h"

namespace pt2onnx {
namespace {

constexpr std::string_view kNone = "{\"as_none\": true}";

// "aten::relu" -> "torch.ops.aten.relu.default", "hop::cond" -> "torch.ops.higher_order.cond".
std::string Target(std::string_view op) {
  const size_t colons = op.find("::");
  const std::string_view domain = op.substr(0, colons), name = op.substr(colons + 2);
  if (domain == "hop") return fmt::format("torch.ops.higher_order.{}", name);
  if (domain == "functorch") return fmt::format("torch._functorch.predispatch.{}", name);
  if (domain == "extension") return fmt::format("#{}", name);
  if (domain == "python") return std::string(name);
  return fmt::format("torch.ops.{}.{}{}", domain, name, name.find('.') == std::string_view::npos ? ".default" : "");
}

// "aten::_softmax" -> "softmax", as PyTorch names values.
std::string_view BaseName(std::string_view op) {
  op = op.substr(op.find("::") + 2);
  op = op.substr(0, op.find('.'));
  while (op.starts_with("_") && op.size() > 1) op.remove_prefix(1);
  return op;
}

std::string IntText(int64_t x) { return fmt::format("{}", x); }

}  // namespace

std::string GraphWriter::Write(JsonValue inputs, JsonValue objects) {
  WriteInputs(inputs);
  for (const Node* node : graph_.nodes) {
    if (WriteNode(*node)) {
      WriteWaiting();
    } else if (node->results.empty()) {
      waiting_.push_back(node);
    } else {
      RefuseSize(node);
      for (const Value* result : node->results)
        if (result) Define(result, NewName(result, "missing"));
    }
  }
  for (const Node* node : waiting_) RefuseSize(node);
  std::string outputs;
  for (const GraphOutput& output : graph_.outputs) {
    const auto text = ArgumentOf(output.value);
    if (!text) RefuseSize(nullptr);
    outputs += fmt::format("{}{}", outputs.empty() ? "" : ", ", text.value_or(std::string(kNone)));
  }
  std::string custom = "{}";
  if (objects.IsObject()) {
    custom.clear();
    AppendJson(custom, objects);
  }
  const auto body = [](const std::string& list) { return list.empty() ? std::string_view() : std::string_view(list).substr(2); };
  return fmt::format(
      "{{\"inputs\": {}, \"outputs\": [{}], \"nodes\": [{}], \"tensor_values\": {{{}}}, \"sym_int_values\": {{{}}}, \"sym_bool_values\": {{{}}}, "
      "\"is_single_tensor_return\": {}, \"custom_obj_values\": {}, \"sym_float_values\": {{{}}}}}",
      inputs_, outputs, body(nodes_), body(tensors_), body(sizes_.values(SymKind::Int)), body(sizes_.values(SymKind::Bool)), BoolText(single_),
      custom, body(sizes_.values(SymKind::Float)));
}

// Of the program's own inputs, those that are no tensors stay as they were: constants, numbers, objects.
void GraphWriter::WriteInputs(JsonValue inputs) {
  for (const GraphInput& input : graph_.inputs)
    if (input.value) names_.Reserve(input.value->name);
  for (const GraphInput& input : graph_.inputs)
    if (input.value) Define(input.value, input.value->name.empty() ? names_.Take(context_, "arg") : input.value->name);
  std::vector<std::string> texts;
  for (const JsonValue input : inputs.Items()) {
    const Value* value = graph_.inputs[texts.size()].value;
    std::string& text = texts.emplace_back();
    if (value && value->type.kind == Kind::Tensor)
      text = TaggedName("as_tensor", NameOf(value));
    else
      AppendJson(text, input);
  }
  for (size_t i = texts.size(); i < graph_.inputs.size(); ++i) texts.push_back(ValueArgument(graph_.inputs[i].value).value());
  inputs_ = ListText(texts, [](const std::string& text) { return text; });
}

void GraphWriter::Define(const Value* value, std::string_view name) {
  names_of_[value->id] = name;
  if (value->type.kind == Kind::Tensor) tensors_ += fmt::format(", {}: {}", Quoted(name), TensorMeta(value->type));
  sizes_.Define(value, name);
}

std::string_view GraphWriter::NewName(const Value* value, std::string_view fallback) {
  return names_.Take(context_, value->name.empty() ? fallback : value->name);
}

std::string GraphWriter::TensorMeta(const Type& type) const {
  const auto sizes = [&](const auto& list) { return ListText(list, [&](SymExpr e) { return sizes_.Recorded(e); }); };
  return fmt::format(
      "{{\"dtype\": {}, \"sizes\": {}, \"requires_grad\": false, \"device\": {}, \"strides\": {}, \"storage_offset\": {}, \"layout\": 7}}",
      Facts(type.dtype).pt2, sizes(type.shape), state_.device, sizes(StridesOf(type)), sizes_.Recorded(type.offset));
}

// An assertion can stand before the op that defines its symbol, since views are emitted where they are read.
void GraphWriter::WriteWaiting() {
  std::erase_if(waiting_, [&](const Node* node) { return WriteNode(*node); });
}

void GraphWriter::RefuseSize(const Node* node) {
  Problem problem{"E0131", "a size here can't be written: nothing in the written program defines it, or torch.export.load knows no operator for it",
                  "use convert, which needs no operator of PyTorch for a size", node ? node->loc : 0, std::string(node ? node->op->name : "")};
  context_.diagnostics.Report(context_.diagnostics.Add(std::move(problem)));
}

bool GraphWriter::WriteNode(const Node& node) {
  if (node.op->name == "sym::value") {
    numbers_[node.results[0]->id] = node.results[0]->type.value;
    return true;
  }
  const auto inputs = Inputs(node);
  if (!inputs) return false;
  const bool hop = node.op->Namespace() == "hop";
  const bool sole = !hop && node.results.size() == 1 && node.op->results.size() == 1 && !node.op->results[0].list && node.results[0];
  const std::string outputs = Outputs(node);
  const std::string_view name = sole ? NameOf(node.results[0]) : names_.Take(context_, BaseName(node.op->name));
  const Loc& loc = context_.locs[node.loc];
  std::string metadata;
  if (!loc.stack_trace.empty()) metadata += fmt::format("\"stack_trace\": {}", Quoted(loc.stack_trace));
  if (!loc.module_stack.empty()) metadata += fmt::format("{}\"nn_module_stack\": {}", metadata.empty() ? "" : ", ", Quoted(loc.module_stack));
  nodes_ +=
      fmt::format(", {{\"target\": {}, \"inputs\": {}, \"outputs\": {}, \"metadata\": {{{}}}, \"is_hop_single_tensor_return\": {}, \"name\": {}}}",
                  Quoted(Target(node.op->name)), *inputs, outputs, metadata, hop ? "false" : "null", Quoted(name));
  return true;
}

// One argument for each result; one for a list, also of several. A higher-order op's results stand each for itself.
std::string GraphWriter::Outputs(const Node& node) {
  const std::string_view base = BaseName(node.op->name);
  const bool many = node.results.size() > 1 || node.op->Namespace() == "hop";
  const auto define = [&](const Value* result) {
    const std::string_view name = NewName(result, many ? "getitem" : base);
    Define(result, name);
    return name;
  };
  const auto argument = [&](const Value* result) {
    if (!result) return std::string(kNone);
    define(result);
    return *ValueArgument(result);
  };
  const auto& schemas = node.op->results;
  if (node.op->Namespace() == "hop") return ListText(node.results, argument);
  size_t lists = 0;
  for (const ResultSchema& schema : schemas) lists += schema.list;
  if (lists != 1) return ListText(node.results, argument);
  const size_t in_list = node.results.size() + 1 - schemas.size();
  size_t at = 0;
  return ListText(schemas, [&](const ResultSchema& schema) {
    if (!schema.list) return argument(node.results[at++]);
    std::vector<const Value*> list;
    for (size_t i = 0; i < in_list; ++i) list.push_back(node.results[at++]);
    return Tagged("as_tensors", ListText(list, [&](const Value* value) { return fmt::format("{{\"name\": {}}}", Quoted(define(value))); }));
  });
}

const std::string& GraphWriter::Default(const ArgSchema& schema) {
  const auto [place, fresh] = state_.defaults.try_emplace(&schema);
  if (fresh && schema.has_default) place->second = Argument(schema, FillDefault(context_, schema), false).value_or("");
  return place->second;
}

// What equals its default is left out, as PyTorch does; of positional arguments only the last ones may be. "from" is a word of Python: the
// loader takes it by place only.
std::optional<std::string> GraphWriter::Inputs(const Node& node) {
  const OpSchema& op = *node.op;
  const bool hop = op.Namespace() == "hop" || op.Namespace() == "functorch";
  std::vector<std::string> texts;
  size_t positional = 0;
  for (size_t i = 0; i < op.args.size(); ++i) {
    const ArgSchema& schema = op.args[i];
    const auto text = Argument(schema, node.args[i], op.name == "hop::while_loop" && i == 0);
    if (!text) return std::nullopt;
    texts.push_back(*text);
    const bool needed =
        hop ? !schema.has_default || *text != Default(schema) : !schema.has_default || schema.name == "from" || *text != Default(schema);
    if (!schema.keyword_only && needed) positional = i + 1;
  }
  std::string out;
  for (size_t i = 0; i < op.args.size(); ++i) {
    const ArgSchema& schema = op.args[i];
    if (schema.keyword_only ? schema.has_default && texts[i] == Default(schema) : i >= positional) continue;
    if (schema.type == ArgType::Generator && texts[i] == kNone) continue;
    out += fmt::format("{}{{\"name\": {}, \"arg\": {}, \"kind\": {}}}", out.empty() ? "" : ", ",
                       hop && !schema.keyword_only ? "\"\"" : Quoted(schema.name), texts[i], schema.keyword_only ? 2 : 1);
  }
  return "[" + out + "]";
}

std::optional<std::string> GraphWriter::ValueArgument(const Value* value) {
  if (const auto number = numbers_.find(value->id); number != numbers_.end()) return sizes_.Argument(number->second);
  const std::string_view name = NameOf(value);
  switch (value->type.kind) {
    case Kind::Tensor:
      return TaggedName("as_tensor", name);
    case Kind::Sym:
      return Tagged(SymTag(value->type.value.kind()), Tagged("as_name", Quoted(name)));
    default:
      return Tagged("as_custom_obj", fmt::format("{{\"name\": {}, \"class_fqn\": \"\"}}", Quoted(name)));
  }
}

// Operands of higher-order ops may be numbers: all of them, or among tensors, by name there.
std::optional<std::string> GraphWriter::Values(const ArgSchema& schema, ValueList list) {
  size_t numbers = 0, nulls = 0;
  std::vector<std::string> names;
  for (const Value* value : list) {
    nulls += !value;
    if (!value) {
      names.push_back("");
    } else if (const auto number = numbers_.find(value->id); number != numbers_.end() || value->type.kind == Kind::Sym) {
      ++numbers;
      const auto name = number != numbers_.end() ? sizes_.NameOf(number->second) : std::optional(NameOf(value));
      if (!name) return std::nullopt;
      names.push_back(std::string(*name));
    } else {
      names.push_back(std::string(NameOf(value)));
    }
  }
  if (nulls || (schema.type == ArgType::OptTensorList && list.empty()))
    return Tagged("as_optional_tensors",
                  ListText(names, [](const std::string& name) { return name.empty() ? std::string(kNone) : TaggedName("as_tensor", name); }));
  if (numbers && numbers == list.size())
    return Tagged("as_sym_ints", ListText(names, [](const std::string& name) { return Tagged("as_name", Quoted(name)); }));
  return Tagged("as_tensors", ListText(names, [](const std::string& name) { return fmt::format("{{\"name\": {}}}", Quoted(name)); }));
}

std::optional<std::string> GraphWriter::Sizes(Dims dims) {
  bool constant = true;
  std::vector<std::string> texts;
  for (const SymExpr& dim : dims) {
    constant &= dim.IsConst();
    const auto text = sizes_.Number(dim);
    if (!text) return std::nullopt;
    texts.push_back(*text);
  }
  if (constant) return Tagged("as_ints", ListText(dims, [](SymExpr e) { return IntText(e.Const()); }));
  return Tagged("as_sym_ints", ListText(texts, [](const std::string& text) { return text; }));
}

std::optional<std::string> GraphWriter::ArgumentOf(const Arg& arg) { return Argument({.name = {}, .type = ArgType::Any}, arg, false); }

std::optional<std::string> GraphWriter::Argument(const ArgSchema& schema, const Arg& arg, bool single) {
  const auto text = [](std::string x) { return std::optional(std::move(x)); };
  return std::visit(
      [&](const auto& x) -> std::optional<std::string> {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, std::monostate>)
          return text(std::string(kNone));
        else if constexpr (std::is_same_v<T, Value*>)
          return x ? ValueArgument(x) : text(std::string(kNone));
        else if constexpr (std::is_same_v<T, ValueList>)
          return Values(schema, x);
        else if constexpr (std::is_same_v<T, bool>)
          return text(Tagged("as_bool", BoolText(x)));
        else if constexpr (std::is_same_v<T, int64_t>)
          return text(Tagged(schema.type == ArgType::Layout ? "as_layout" : "as_int", IntText(x)));
        else if constexpr (std::is_same_v<T, double>)
          return text(Tagged("as_float", DoubleText(x)));
        else if constexpr (std::is_same_v<T, std::complex<double>>)
          return text(Tagged("as_complex", fmt::format("{{\"real\": {}, \"imag\": {}}}", DoubleText(x.real()), DoubleText(x.imag()))));
        else if constexpr (std::is_same_v<T, SymExpr>)
          return sizes_.Argument(x);
        else if constexpr (std::is_same_v<T, std::string_view>)
          return text(Tagged("as_string", Quoted(x)));
        else if constexpr (std::is_same_v<T, DType>)
          return text(Tagged("as_scalar_type", IntText(Facts(x).pt2)));
        else if constexpr (std::is_same_v<T, MemoryFormat>)
          return text(Tagged("as_memory_format", IntText(x.code)));
        else if constexpr (std::is_same_v<T, Device>)
          return text(Tagged("as_device", DeviceText(x.name)));
        else if constexpr (std::is_same_v<T, Ints>)
          return text(Tagged("as_ints", ListText(x, IntText)));
        else if constexpr (std::is_same_v<T, Dims>)
          return Sizes(x);
        else if constexpr (std::is_same_v<T, Doubles>)
          return text(Tagged("as_floats", ListText(x, DoubleText)));
        else if constexpr (std::is_same_v<T, Bools>)
          return text(Tagged("as_bools", ListText(x, [](bool b) { return std::string(BoolText(b)); })));
        else if constexpr (std::is_same_v<T, Texts>)
          return text(Tagged("as_strings", ListText(x, Quoted)));
        else if constexpr (std::is_same_v<T, Graph*>) {
          GraphWriter writer(state_, *x, single);
          const std::string_view name = names_.Take(context_, x->name.empty() ? "body" : x->name);
          return text(Tagged("as_graph", fmt::format("{{\"name\": {}, \"graph\": {}}}", Quoted(name), writer.Write({}, {}))));
        } else
          PT2ONNX_UNREACHABLE();
      },
      arg);
}

}  // namespace pt2onnx
