#include "passes/written.h"

#include <deque>
#include <unordered_map>
#include <vector>

namespace pt2onnx {
namespace {

using Inputs = std::unordered_set<const Value*>;

// For each value the graph inputs that it may alias; for a sub-graph its operands'. Most values share their operand's set.
class Scan {
 public:
  Inputs written;

  void Run(const Graph& graph) {
    for (const Node* node : graph.nodes) Visit(*node);
  }
  const Inputs* Keep(Inputs inputs) { return &sets_.emplace_back(std::move(inputs)); }
  void Name(const Value* value, const Inputs* inputs) {
    if (value && inputs) aliases_[value] = Union(Of(value), inputs);
  }

 private:
  const Inputs* Of(const Value* value) const {
    const auto found = value ? aliases_.find(value) : aliases_.end();
    return found == aliases_.end() ? nullptr : found->second;
  }
  const Inputs* Union(const Inputs* a, const Inputs* b) {
    if (!a || a == b) return b;
    if (!b) return a;
    Inputs both = *a;
    both.insert(b->begin(), b->end());
    return both.size() == a->size() ? a : Keep(std::move(both));
  }

  void Visit(const Node& node) {
    const OpSchema& op = *node.op;
    const Inputs* all = nullptr;
    std::vector<const Value*> operands;  // those in lists
    const auto use = [&](size_t i, const Value* value) {
      const Inputs* inputs = Of(value);
      if (!inputs) return;
      if (i < op.args.size() && op.args[i].writes) written.insert(inputs->begin(), inputs->end());
      all = Union(all, inputs);
    };
    for (size_t i = 0; i < node.args.size(); ++i) {
      if (Value* const* value = std::get_if<Value*>(&node.args[i])) use(i, *value);
      const ValueList* list = std::get_if<ValueList>(&node.args[i]);
      if (!list) continue;
      for (const Value* value : *list) use(i, value);
      operands.insert(operands.end(), list->begin(), list->end());
    }
    if (!all) return;
    for (const Arg& arg : node.args) {
      Graph* const* body = std::get_if<Graph*>(&arg);
      if (!body) continue;
      const std::vector<GraphInput>& inputs = (*body)->inputs;
      for (size_t i = 0; i < inputs.size(); ++i) Name(inputs[i].value, inputs.size() == operands.size() ? Of(operands[i]) : all);
      Run(**body);
    }
    const bool aliases = op.view != ViewClass::None || op.Writes() || op.Has(kMaybeAlias) || op.Has(kHiddenAlias) || op.Has(kInplaceView) || op.Namespace() == "hop";
    if (aliases)
      for (const Value* result : node.results) Name(result, all);
  }

  std::deque<Inputs> sets_;
  std::unordered_map<const Value*, const Inputs*> aliases_;
};

}  // namespace

std::unordered_set<const Value*> WrittenInputs(const Graph& graph) {
  Scan scan;
  for (const GraphInput& input : graph.inputs)
    if (input.value) scan.Name(input.value, scan.Keep({input.value}));
  scan.Run(graph);
  return std::move(scan.written);
}

}  // namespace pt2onnx
