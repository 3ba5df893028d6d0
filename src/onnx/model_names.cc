#include "onnx/model_names.h"

#include <algorithm>
#include <cctype>

namespace pt2onnx {
namespace {

std::string_view ShortName(const OpSchema& op) { return op.name.substr(op.name.rfind(':') + 1); }

Value* ValueOf(const Arg& arg) {
  Value* const* value = std::get_if<Value*>(&arg);
  return value ? *value : nullptr;
}

}  // namespace

ModelNames::ModelNames(const Context& context, const Graph& graph) : values_(context.value_count()), read_(context.value_count()) {
  MarkReads(graph);
  NameVisible(graph);
  NameInner(graph);
}

void ModelNames::MarkReads(const Graph& graph) {
  const auto mark = [&](const Value* value) {
    if (value) read_[value->id] = true;
  };
  for (const Node* node : graph.nodes)
    for (const Arg& arg : node->args) {
      mark(ValueOf(arg));
      if (const ValueList* list = std::get_if<ValueList>(&arg)) std::for_each(list->begin(), list->end(), mark);
      if (Graph* const* body = std::get_if<Graph*>(&arg)) MarkReads(**body);
    }
  for (const GraphOutput& output : graph.outputs) mark(ValueOf(output.value));
}

std::string ModelNames::Unique(std::string base, std::unordered_set<std::string>& taken) {
  if (taken.insert(base).second) return base;
  // One counter for values and nodes alike: which suffix it is does not matter, that it is found at once does.
  for (int64_t& n = next_[base];;) {
    std::string name = base + "_" + std::to_string(++n);
    if (taken.insert(name).second) return name;
  }
}

// Inputs first, then outputs, then weights.
void ModelNames::NameVisible(const Graph& graph) {
  const auto name = [&](const Value* value, std::string_view fallback) {
    std::string& own = values_[value->id];
    if (own.empty()) own = Unique(std::string(value->name.empty() ? fallback : value->name), taken_values_);
  };
  for (const GraphInput& input : graph.inputs)
    if (input.value && (!input.data || input.optional)) name(input.value, "input");
  for (const GraphOutput& output : graph.outputs)
    if (const Value* value = ValueOf(output.value)) name(value, "output");
  for (const GraphInput& input : graph.inputs)
    if (input.value) name(input.value, "weight");
}

void ModelNames::NameInner(const Graph& graph) {
  const auto name = [&](const Value* value, std::string_view fallback) {
    if (!value || !values_[value->id].empty()) return;
    std::string base(value->name.empty() ? fallback : value->name);
    if (value->name.empty()) std::transform(base.begin(), base.end(), base.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    values_[value->id] = Unique(std::move(base), taken_values_);
  };
  for (const GraphInput& input : graph.inputs) name(input.value, "input");
  for (const Node* node : graph.nodes) {
    for (const Value* result : node->results) name(result, ShortName(*node->op));
    for (const Arg& arg : node->args)
      if (Graph* const* body = std::get_if<Graph*>(&arg)) NameInner(**body);
  }
}

// Of the exported node it comes from: "layer_norm_3/LayerNormalization".
std::string ModelNames::NodeName(const Context& context, const Node& node) {
  std::string base(context.locs[node.loc].node);
  if (!base.empty()) base += '/';
  base += ShortName(*node.op);
  return Unique(std::move(base), taken_nodes_);
}

}  // namespace pt2onnx
