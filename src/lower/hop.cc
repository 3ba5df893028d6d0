// Control flow. Bodies are sub-graphs of the program, lowered in place of the call; they may read what lies around it.
//
//   %y = hop::cond(%p, %t: graph(...), %f: graph(...), [%x])    ->    %y = If(%p, then_branch=graph { ... }, else_branch=graph { ... })
#include "ir/bind.h"
#include "lower/rules.h"

namespace pt2onnx {
namespace {

std::vector<Arg> Operands(std::initializer_list<Vals> lists) {
  std::vector<Arg> args;
  for (const Vals& list : lists)
    for (const Val& x : list) args.push_back(x.value);
  return args;
}

// A condition as ONNX wants it: bool, rank 0.
Val Condition(Onnx& b, Val x) { return b.Reshape(b.Cast(x, DType::Bool), {}); }
Val Condition(Onnx& b, const Arg& arg) {
  if (Value* const* value = std::get_if<Value*>(&arg)) return Condition(b, b.Wrap(*value));
  if (const SymExpr* expr = std::get_if<SymExpr>(&arg)) return b.Number(*expr, DType::Bool);
  return b.Constant(std::get<bool>(arg), DType::Bool);
}

}  // namespace

void HopRules(Rules<Onnx>& r) {
  // A symbolic number as an operand of a sub-graph.
  r.On([](Onnx& b, const sym::value& op) { return b.Number(ToSymExpr(op.value_.ToArg()), b.call().types[0].dtype); });

  // pred ? true_graph(operands) : false_graph(operands)
  r.On([](Onnx& b, const hop::cond& op) {
    const std::vector<Arg> operands = Operands({op.operands});
    return b.If(Condition(b, op.pred), [&](Onnx& t) { return t.Inline(*op.true_graph, operands); },
                [&](Onnx& f) { return f.Inline(*op.false_graph, operands); });
  });

  // while cond(carried, additional): carried = body(carried, additional)
  r.On([](Onnx& b, const hop::while_loop& op) {
    const auto goes_on = [&](Onnx& o, const Vals& carried) { return Condition(o, o.Inline(*op.cond, Operands({carried, op.additional}))[0]); };
    return b.Loop(std::nullopt, goes_on(b, op.carried), op.carried, [&](Onnx& o, Val, const Vals& carried) {
      const Vals next = o.Inline(*op.body, Operands({carried, op.additional}));
      return LoopStep{goes_on(o, next), next, {}};
    });
  });

  // states, y_k = combine(states, x_k, additional), over the slices x_k of axis 0
  r.On([](Onnx& b, const hop::scan& op) {
    const auto states = static_cast<int64_t>(op.init.size());
    return b.Scan(op.init, op.xs, [&](Onnx& o, const Vals& carried, const Vals& slices) {
      const Vals out = o.Inline(*op.combine, Operands({carried, slices, op.additional}));
      return ScanStep{Vals(out.begin(), out.begin() + states), Vals(out.begin() + states, out.end())};
    });
  });

  // y_k = body(x_k, extra)
  r.On([](Onnx& b, const hop::map_impl& op) {
    return b.Scan({}, op.xs, [&](Onnx& o, const Vals&, const Vals& slices) { return ScanStep{{}, o.Inline(*op.body, Operands({slices, op.extra}))}; });
  });
}

}  // namespace pt2onnx
