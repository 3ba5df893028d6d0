#include "onnx/proto.h"

#include <algorithm>

#include "ir/location.h"
#include "onnx/table.h"

namespace pt2onnx {
namespace {

using protozero::pbf_writer;

enum AttributeType : int32_t { kFloat = 1, kInt = 2, kString = 3, kTensor = 4, kGraph = 5, kFloats = 6, kInts = 7, kStrings = 8 };

constexpr uint32_t kGraphNode = 1, kGraphName = 2, kGraphInitializer = 5, kGraphInput = 11, kGraphOutput = 12, kGraphValueInfo = 13;
constexpr uint32_t kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOpType = 4, kNodeAttribute = 5, kNodeDoc = 6, kNodeDomain = 7, kNodeMetadata = 9;

bool IsConstant(const Node& node) { return Is(*node.op, OnnxOp::Constant); }

const TensorData* ConstantData(const Node& node) {
  for (const Arg& arg : node.args)
    if (const auto* data = std::get_if<const TensorData*>(&arg)) return *data;
  PT2ONNX_UNREACHABLE();
}

// Is the result one that a model may leave out?
bool IsOptional(const Node& node, size_t result) {
  if (!IsOnnx(*node.op)) return false;
  const OnnxFacts& facts = FactsOf(OnnxOpOf(*node.op));
  const size_t at = static_cast<size_t>(facts.inputs) + result;
  return at < facts.operands.size() && facts.operands[at].optional;
}

// An operand, or a place where one could stand.
bool IsOperand(const Arg& arg, const ArgSchema& schema) {
  if (std::holds_alternative<Value*>(arg) || std::holds_alternative<ValueList>(arg)) return true;
  const bool tensor = schema.type == ArgType::Tensor || schema.type == ArgType::TensorList || schema.type == ArgType::OptTensorList;
  return IsNone(arg) && schema.input && tensor;
}

void AddEntry(pbf_writer& parent, uint32_t field, std::string_view key, std::string_view value) {
  pbf_writer entry(parent, field);
  entry.add_string(1, key.data(), key.size());
  entry.add_string(2, value.data(), value.size());
}

void AddText(pbf_writer& writer, uint32_t field, std::string_view text) { writer.add_string(field, text.data(), text.size()); }

}  // namespace

void ProtoEncoder::Nodes(pbf_writer& graph, const Graph& from) {
  for (const Node* node : from.nodes)
    if (!IsConstant(*node)) EncodeNode(graph, kGraphNode, *node);
}

// Functions have no initializers: their constants are nodes.
void ProtoEncoder::Function(pbf_writer& model, const Graph& from, std::string_view domain) {
  constexpr uint32_t kModelFunctions = 25, kName = 1, kInput = 4, kOutput = 5, kNode = 7, kOpsetImport = 9, kDomain = 10;
  pbf_writer out(model, kModelFunctions);
  AddText(out, kName, from.name);
  for (const GraphInput& input : from.inputs) AddText(out, kInput, names_.Of(input.value));
  for (const GraphOutput& output : from.outputs) AddText(out, kOutput, names_.Of(std::get<Value*>(output.value)));
  for (const Node* node : from.nodes) EncodeNode(out, kNode, *node);
  const auto import = [&](std::string_view name, int64_t version) {
    pbf_writer opset(out, kOpsetImport);
    AddText(opset, 1, name);
    opset.add_int64(2, version);
  };
  import("", context_.opset);
  for (const std::string& name : domains_) import(name, 1);
  AddText(out, kDomain, domain);
}

std::vector<std::pair<const Value*, const TensorData*>> ProtoEncoder::Constants(const Graph& from) {
  std::vector<std::pair<const Value*, const TensorData*>> out;
  for (const Node* node : from.nodes)
    if (IsConstant(*node)) out.emplace_back(node->results[0], ConstantData(*node));
  return out;
}

void ProtoEncoder::EncodeNode(pbf_writer& graph, uint32_t field, const Node& node) {
  pbf_writer out(graph, field);
  // Operands that are left out at the end need no place.
  std::vector<std::string_view> operands;
  size_t used = 0;
  const auto add = [&](const Value* value) {
    operands.push_back(value ? names_.Of(value) : std::string_view());
    if (value) used = operands.size();
  };
  for (size_t i = 0; i < node.args.size(); ++i) {
    const Arg& arg = node.args[i];
    if (!IsOperand(arg, node.op->args[i])) continue;
    if (const ValueList* list = std::get_if<ValueList>(&arg)) std::for_each(list->begin(), list->end(), add);
    else add(IsNone(arg) ? nullptr : std::get<Value*>(arg));
  }
  for (size_t i = 0; i < used; ++i) AddText(out, kNodeInput, operands[i]);

  std::vector<std::string_view> results;
  used = 0;
  for (size_t i = 0; i < node.results.size(); ++i) {
    const Value* result = node.results[i];
    const bool named = result && (names_.IsRead(result) || !IsOptional(node, i));
    results.push_back(named ? names_.Of(result) : std::string_view());
    if (named) used = i + 1;
  }
  for (size_t i = 0; i < used; ++i) AddText(out, kNodeOutput, results[i]);

  AddText(out, kNodeName, names_.NodeName(context_, node));
  const size_t colon = node.op->name.rfind("::");
  const std::string_view domain = colon == std::string_view::npos ? std::string_view() : node.op->name.substr(0, colon);
  AddText(out, kNodeOpType, colon == std::string_view::npos ? node.op->name : node.op->name.substr(colon + 2));
  for (size_t i = 0; i < node.args.size(); ++i)
    if (!IsNone(node.args[i]) && !IsOperand(node.args[i], node.op->args[i])) EncodeAttribute(out, node.op->args[i].name, node.args[i]);
  if (domain != "onnx" && !domain.empty()) {
    AddText(out, kNodeDomain, domain);
    domains_.emplace(domain);
  }
  EncodeWhere(out, node.loc);
}

// Module and source line: as metadata where the IR has it, else as the node's description.
void ProtoEncoder::EncodeWhere(pbf_writer& node, LocId id) {
  const Loc& loc = context_.locs[id];
  const std::string module(ModulePath(loc.module_stack));
  const SourceLine line = UserLine(loc.stack_trace);
  const std::string source = line.file.empty() ? "" : std::string(line.file) + ":" + std::to_string(line.line);
  if (ir_version_ >= 10) {
    if (!module.empty()) AddEntry(node, kNodeMetadata, "pt2onnx.module", module);
    if (!source.empty()) AddEntry(node, kNodeMetadata, "pt2onnx.source", source);
  } else if (!module.empty() || !source.empty()) {
    AddText(node, kNodeDoc, module + (module.empty() || source.empty() ? "" : " at ") + source);
  }
}

void ProtoEncoder::EncodeAttribute(pbf_writer& node, std::string_view name, const Arg& arg) {
  pbf_writer out(node, kNodeAttribute);
  AddText(out, 1, name);
  AttributeType type = kInt;
  const auto add_ints = [&](const auto& list) {
    out.add_packed_int64(8, list.begin(), list.end());
    type = kInts;
  };
  if (const auto* i = std::get_if<int64_t>(&arg)) {
    out.add_int64(3, *i);
  } else if (const auto* b = std::get_if<bool>(&arg)) {
    out.add_int64(3, *b);
  } else if (const auto* dtype = std::get_if<DType>(&arg)) {
    out.add_int64(3, OnnxCode(*dtype));
  } else if (const auto* f = std::get_if<double>(&arg)) {
    out.add_float(2, static_cast<float>(*f));
    type = kFloat;
  } else if (const auto* text = std::get_if<std::string_view>(&arg)) {
    out.add_bytes(4, text->data(), text->size());
    type = kString;
  } else if (const auto* data = std::get_if<const TensorData*>(&arg)) {
    std::string tensor = TensorHead(**data, "", nullptr);
    tensor.append(reinterpret_cast<const char*>((*data)->bytes.data()), (*data)->bytes.size());
    out.add_message(5, tensor);
    type = kTensor;
  } else if (Graph* const* body = std::get_if<Graph*>(&arg)) {
    EncodeGraph(out, **body);
    type = kGraph;
  } else if (const auto* floats = std::get_if<Doubles>(&arg)) {
    std::vector<float> list(floats->begin(), floats->end());
    out.add_packed_float(7, list.begin(), list.end());
    type = kFloats;
  } else if (const auto* ints = std::get_if<Ints>(&arg)) {
    add_ints(*ints);
  } else if (const auto* bools = std::get_if<Bools>(&arg)) {
    add_ints(std::vector<int64_t>(bools->begin(), bools->end()));
  } else if (const auto* texts = std::get_if<Texts>(&arg)) {
    for (std::string_view item : *texts) out.add_bytes(9, item.data(), item.size());
    type = kStrings;
  } else if (const auto* number = std::get_if<SymExpr>(&arg)) {
    out.add_int64(3, number->Const());  // anything else had to be lowered to a value
  } else if (const auto* dims = std::get_if<Dims>(&arg)) {
    std::vector<int64_t> list;
    for (const SymExpr& e : *dims) list.push_back(e.Const());
    add_ints(list);
  } else {
    PT2ONNX_UNREACHABLE();
  }
  out.add_enum(20, type);
}

void ProtoEncoder::EncodeGraph(pbf_writer& attribute, const Graph& from) {
  pbf_writer graph(attribute, 6);
  Nodes(graph, from);
  AddText(graph, kGraphName, "body");
  for (const auto& [value, data] : Constants(from)) {
    PT2ONNX_CHECK(!data->stored);  // weights stand in the outermost graph
    std::string tensor = TensorHead(*data, names_.Of(value), nullptr);
    tensor.append(reinterpret_cast<const char*>(data->bytes.data()), data->bytes.size());
    graph.add_message(kGraphInitializer, tensor);
  }
  ValueInfos(graph, from);
}

std::string ProtoEncoder::TensorHead(const TensorData& data, std::string_view name, const ExternalPlace* external) {
  std::string out;
  pbf_writer tensor(out);
  if (!data.shape.empty()) tensor.add_packed_int64(1, data.shape.begin(), data.shape.end());
  tensor.add_int32(2, OnnxCode(data.dtype));
  if (!name.empty()) AddText(tensor, 8, name);
  if (external) {
    AddEntry(tensor, 13, "location", external->location);
    AddEntry(tensor, 13, "offset", std::to_string(external->offset));
    AddEntry(tensor, 13, "length", std::to_string(DataSize(data)));
    tensor.add_enum(14, 1);
  } else {
    protozero::add_varint_to_buffer(&out, (9u << 3) | 2u);
    protozero::add_varint_to_buffer(&out, static_cast<uint64_t>(DataSize(data)));
  }
  return out;
}

// Symbols by the user's names for them.
std::string ProtoEncoder::DimName(SymExpr e) {
  if (dim_names_.empty()) return ToString(e);
  if (const auto found = dim_names_.find(ToString(e)); found != dim_names_.end()) return found->second;
  SymMap renamed;
  for (const SymExpr& symbol : Symbols(e))
    if (const auto found = dim_names_.find(std::string(symbol.SymbolName())); found != dim_names_.end())
      renamed[symbol.SymbolName()] = context_.syms.Symbol(found->second, symbol.kind());
  return ToString(renamed.empty() ? e : Substitute(e, renamed));
}

void ProtoEncoder::EncodeValueInfo(pbf_writer& graph, uint32_t field, const Value& value) {
  pbf_writer info(graph, field);
  AddText(info, 1, names_.Of(&value));
  pbf_writer type(info, 2);
  pbf_writer tensor(type, 1);
  tensor.add_int32(1, OnnxCode(value.type.dtype));
  if (!value.type.ranked) return;
  // Messages by themselves, because pbf_writer leaves out empty ones: those are rank 0, and a dim that is not known.
  std::string dims;
  pbf_writer shape(dims);
  for (const SymExpr& e : value.type.shape) {
    std::string text;
    pbf_writer dim(text);
    if (e.IsConst()) dim.add_int64(1, e.Const());
    else if (!e.IsUnknown()) dim.add_string(2, DimName(e));
    shape.add_message(1, text);
  }
  tensor.add_message(2, dims);
}

void ProtoEncoder::ValueInfos(pbf_writer& graph, const Graph& from) {
  // What must be fed comes before what has a default.
  for (const bool has_default : {false, true})
    for (const GraphInput& input : from.inputs)
      if (input.value && (has_default ? input.data && input.optional : !input.data)) EncodeValueInfo(graph, kGraphInput, *input.value);
  std::set<const Value*> outputs;
  for (const GraphOutput& output : from.outputs) {
    const Value* value = std::get<Value*>(output.value);
    outputs.insert(value);
    EncodeValueInfo(graph, kGraphOutput, *value);
  }
  for (const Node* node : from.nodes) {
    if (IsConstant(*node)) continue;
    for (const Value* result : node->results)
      if (result && result->type.ranked && names_.IsRead(result) && !outputs.contains(result)) EncodeValueInfo(graph, kGraphValueInfo, *result);
  }
}

}  // namespace pt2onnx
