#include "passes/written.h"

#include <unordered_map>
#include <vector>

namespace pt2onnx {
namespace {

// For each value the graph inputs that it may alias; for a sub-graph its operands'.
class Scan {
 public:
  std::unordered_set<const Value*> written;

  void Run(const Graph& graph) {
    for (const Node* node : graph.nodes) Visit(*node);
  }
  void Name(const Value* value, std::unordered_set<const Value*> inputs) {
    if (value && !inputs.empty()) aliases_[value].insert(inputs.begin(), inputs.end());
  }
  std::unordered_set<const Value*> Of(const Value* value) const {
    const auto found = value ? aliases_.find(value) : aliases_.end();
    return found == aliases_.end() ? std::unordered_set<const Value*>{} : found->second;
  }

 private:
  template <class F>
  static void ForEach(const Arg& arg, F f) {
    if (Value* const* value = std::get_if<Value*>(&arg)) f(*value);
    else if (const ValueList* list = std::get_if<ValueList>(&arg))
      for (Value* value : *list) f(value);
  }

  void Visit(const Node& node) {
    const OpSchema& op = *node.op;
    std::unordered_set<const Value*> all;
    for (size_t i = 0; i < node.args.size(); ++i)
      ForEach(node.args[i], [&](const Value* value) {
        const auto inputs = Of(value);
        if (i < op.args.size() && op.args[i].writes) written.insert(inputs.begin(), inputs.end());
        all.insert(inputs.begin(), inputs.end());
      });
    if (all.empty()) return;
    for (const Arg& arg : node.args) {
      Graph* const* body = std::get_if<Graph*>(&arg);
      if (!body) continue;
      for (const GraphInput& input : (*body)->inputs) Name(input.value, all);  // which operand is which does not matter here
      Run(**body);
    }
    const bool aliases = op.view != ViewClass::None || op.Writes() || op.Has(kMaybeAlias) || op.Has(kHiddenAlias) || op.Has(kInplaceView) || op.Namespace() == "hop";
    if (aliases)
      for (const Value* result : node.results) Name(result, all);
  }

  std::unordered_map<const Value*, std::unordered_set<const Value*>> aliases_;
};

}  // namespace

std::unordered_set<const Value*> WrittenInputs(const Graph& graph) {
  Scan scan;
  for (const GraphInput& input : graph.inputs)
    if (input.value) scan.Name(input.value, {input.value});
  scan.Run(graph);
  return std::move(scan.written);
}

}  // namespace pt2onnx
