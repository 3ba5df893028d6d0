#include "passes/order.h"

#include <unordered_map>
#include <unordered_set>

#include "ir/op_table.h"

namespace pt2onnx {
namespace {

class Orderer {
 public:
  explicit Orderer(Graph& graph) : graph_(graph) {}

  void Run() {
    for (Node* node : graph_.nodes) {
      waiting_.insert(node);
      for (const Value* result : node->results)
        if (result) DefineSymbols(*result, node);
    }
    std::vector<Node*> roots;
    for (Node* node : graph_.nodes)
      if (node->op->Has(kEffect)) roots.push_back(node);
    for (const GraphOutput& output : graph_.outputs) ForEachNeeded(output.value, [&](Node* node) { roots.push_back(node); });
    for (Node* root : roots) Visit(root);
    graph_.nodes = std::move(ordered_);
  }

 private:
  // Depth first without recursion: a deep network is deeper than the stack.
  void Visit(Node* root) {
    std::vector<Step> stack;
    const auto enter = [&](Node* node) {
      if (waiting_.erase(node) == 0) return;
      Step step{.node = node};
      for (const Arg& arg : node->args) ForEachNeeded(arg, [&](Node* needed) { step.needed.push_back(needed); });
      stack.push_back(std::move(step));
    };
    enter(root);
    while (!stack.empty()) {
      Step& top = stack.back();
      if (top.next < top.needed.size()) {
        enter(top.needed[top.next++]);
      } else {
        ordered_.push_back(top.node);
        stack.pop_back();
      }
    }
  }

  // The symbols that a result introduces: a number read out of a tensor, or a size that depends on data (u0). The first node defines them.
  void DefineSymbols(const Value& result, Node* node) {
    if (result.type.kind == Kind::Sym && result.type.value.IsSymbol()) definer_.try_emplace(result.type.value.node(), node);
    for (const SymExpr& dim : result.type.shape)
      if (dim.IsSymbol() && dim.SymbolName().starts_with("u")) definer_.try_emplace(dim.node(), node);
  }

  template <class F>
  void ForEachNeeded(const Arg& arg, F f) {
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      if (*value && (*value)->def) f((*value)->def);
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      for (Value* value : *list)
        if (value && value->def) f(value->def);
    } else if (const SymExpr* expr = std::get_if<SymExpr>(&arg)) {
      ForEachDefiner(*expr, f);
    } else if (const Dims* dims = std::get_if<Dims>(&arg)) {
      for (const SymExpr& dim : *dims) ForEachDefiner(dim, f);
    } else if (Graph* const* body = std::get_if<Graph*>(&arg)) {
      for (const Node* node : (*body)->nodes)
        for (const Arg& inner : node->args) ForEachNeeded(inner, f);
      for (const GraphOutput& output : (*body)->outputs) ForEachNeeded(output.value, f);
    }
  }
  template <class F>
  void ForEachDefiner(SymExpr expr, F f) {
    if (expr.IsConst()) return;
    if (const auto found = definer_.find(expr.node()); found != definer_.end()) f(found->second);
    for (const SymExpr& arg : expr.args()) ForEachDefiner(arg, f);
  }

  struct Step {
    Node* node;
    std::vector<Node*> needed = {};
    size_t next = 0;
  };

  Graph& graph_;
  std::unordered_set<const Node*> waiting_;  // nodes of this graph that are not placed yet: outer ones are never among them
  std::unordered_map<const SymNode*, Node*> definer_;
  std::vector<Node*> ordered_;
};

}  // namespace

void Order(Graph& graph) {
  Orderer(graph).Run();
  for (Node* node : graph.nodes)
    for (Arg& arg : node->args)
      if (Graph* const* body = std::get_if<Graph*>(&arg)) Order(**body);
}

}  // namespace pt2onnx
