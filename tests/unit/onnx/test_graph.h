// A graph under test with the builder that writes it.
#pragma once

#include <string>

#include "onnx/builder.h"
#include "onnx/table.h"

namespace pt2onnx {

struct TestGraph {
  explicit TestGraph(int opset = 20, OnnxOptions options = {}) : b((context.opset = opset, context), sink, options) {}

  SymExpr Sym(std::string_view name) { return context.syms.Symbol(name); }
  Val Input(std::string_view name, DType dtype, const DimVec& shape) {
    Value* value = context.NewValue({.kind = Kind::Tensor, .dtype = dtype, .shape = context.arena.Copy(shape)}, context.Intern(name));
    const Val out = b.Wrap(sink.Input({.value = value, .kind = InputKind::User}));
    b.DefineFrom(out.value);
    return out;
  }
  void Output(std::string_view name, Val value) {
    const Val own = b.Identity(value);
    own.value->name = context.Intern(name);
    sink.Output({.value = own.value});
  }
  // The operators in order: "Shape Squeeze Add".
  std::string Ops() const { return OpsOf(graph); }
  static std::string OpsOf(const Graph& graph) {
    std::string out;
    for (const Node* node : graph.nodes) out.append(out.empty() ? "" : " ").append(node->op->name.substr(6));
    return out;
  }
  const Node& Last() const { return *graph.nodes.back(); }
  Arg AttrOfLast(std::string_view name) const {
    const OpSchema& op = *Last().op;
    for (size_t i = op.args.size(); i-- > 0;)  // an attribute may be called like an input
      if (op.args[i].name == name) return Last().args[i];
    return {};
  }

  Context context;
  Graph graph;
  GraphSink sink{context, graph};
  Onnx b;
};

// "[s0, 4, ?]", "unranked".
inline std::string ShapeText(Val x) {
  if (!x.value->type.ranked) return "unranked";
  std::string out = "[";
  for (const SymExpr& e : x.shape()) out.append(out.size() > 1 ? ", " : "").append(e.IsUnknown() ? "?" : ToString(e));
  return out + "]";
}

}  // namespace pt2onnx
