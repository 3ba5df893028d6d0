// The CTC loss: -log of the probability that a sequence of frames reads as the target, by the forward recursion over frames.
//
// The target with blanks between and around, l' = _ a _ b _, has 2 S + 1 places; alpha_t(s) is the log of the probability of all ways to be at
// place s after frame t:
//
//   alpha_t(s) = log_probs[t, l'(s)] + logsumexp(alpha(s), alpha(s-1), alpha(s-2) unless l'(s) is blank or l'(s-2))
//   loss = -logsumexp(alpha_T(2 S), alpha_T(2 S - 1))
#include <cmath>

#include "lower/network.h"

namespace pt2onnx {
namespace {

struct Ctc {
  Val log_probs;                // [T, N, C], or [T, C]
  Val targets;                  // [N, S], [S], or all targets in a row
  Val input_lengths, target_lengths;  // [N], int64
  int64_t blank;
};

// log(exp x + exp y + ...), -inf of -inf
Val LogSum(Onnx& b, const Vals& list) {
  Val most = list[0];
  for (size_t i = 1; i < list.size(); ++i) most = b.Max(most, list[i]);
  const Val least = b.Constant(-INFINITY, most.dtype()), base = b.Where(b.Equal(most, least), b.Constant(0, most.dtype()), most);
  Val sum = b.Exp(list[0] - base);
  for (size_t i = 1; i < list.size(); ++i) sum = sum + b.Exp(list[i] - base);
  return b.Log(sum) + base;
}

// Targets as [N, S] with S the longest: rows of a matrix, or pieces of a vector.
Val TargetRows(Onnx& b, const Ctc& c, Val longest) {
  const Val places = b.Unsqueeze(b.Range(b.IntScalar(0), longest, b.IntScalar(1)), {0});
  const bool rows = c.targets.rank() == 2;
  const Val starts = rows ? b.Mul(Iota(b, c.targets.dim(0)), b.Int(c.targets.dim(1))) : b.CumSum(c.target_lengths, b.IntScalar(0), {.exclusive = 1});
  const Val flat = b.Concat({b.Flatten1D(b.Cast(c.targets, DType::I64)), b.Ints({c.blank})}, 0);
  const Val inside = b.Less(places, b.Unsqueeze(c.target_lengths, {1}));
  return b.Gather(flat, b.Where(inside, b.Unsqueeze(starts, {1}) + places, b.IntScalar(-1)), 0);
}

// [N]
Val NegativeLogLikelihood(Onnx& b, const Ctc& c) {
  const Val x = c.log_probs.rank() == 2 ? b.Unsqueeze(c.log_probs, {1}) : c.log_probs;
  const DType dtype = x.dtype();
  const Val zero = b.IntScalar(0), one = b.IntScalar(1), two = b.IntScalar(2), blank = b.IntScalar(c.blank);
  const Val least = b.Constant(-INFINITY, dtype);
  const SymExpr n = x.dim(1);
  const Val longest = b.ReduceMax(b.Concat({c.target_lengths, b.Ints({0})}, 0), {0});
  const Val labels = TargetRows(b, c, longest);  // [N, S]
  const Val width = longest * two + one;
  const Val places = b.Unsqueeze(b.Range(zero, width, one), {0});  // [1, 2 S + 1]
  // _ a _ b _: labels stand at odd places
  const Val pairs = b.Concat({b.Unsqueeze(b.Expand(blank, b.OnnxOps::Shape(labels)), {2}), b.Unsqueeze(labels, {2})}, 2);
  const Val edge = b.Expand(blank, b.Ints({1, 1}));
  const Val flat_pairs = b.OnnxOps::Reshape(pairs, b.Concat({b.Int1(n), b.Reshape(longest * two, {1})}, 0), {.allowzero = 1});
  const Val extended = b.Concat({flat_pairs, b.Expand(edge, DimVec{n, 1})}, 1);  // [N, 2 S + 1]
  // Places before the first are never reached.
  const auto shifted = [&](Val v, int64_t by, Val fill) {
    const Val front = b.Expand(fill, DimVec{n, by});
    const Val whole = b.Concat({front, v}, 1);
    return b.OnnxOps::Slice(whole, b.Ints({0}), b.Reshape(width, {1}), b.Ints({1}));
  };
  const Val may_skip = b.And(b.Not(b.Equal(extended, blank)), b.Not(b.Equal(extended, shifted(extended, 2, blank))));
  // Before the first frame: as if at place -1, from where 0 and 1 are reached. Frame 0 then is a step like the others.
  const Val start = b.Where(b.Less(places, two), b.Constant(0, dtype), least);
  const Val alpha0 = b.OnnxOps::Expand(least, b.OnnxOps::Shape(extended));
  const Val frames = Iota(b, x.dim(0));
  const Val last = b.Unsqueeze(c.input_lengths, {1}), end = b.Unsqueeze(c.target_lengths, {1}) * two;
  const Vals out = b.Scan({alpha0}, {x, frames}, [&](Onnx&, const Vals& state, const Vals& slice) -> ScanStep {
    const Val now = state[0];
    const Val from = LogSum(b, {now, shifted(now, 1, least), b.Where(may_skip, shifted(now, 2, least), least)});
    const Val arrived = b.Where(b.Equal(slice[1], zero), start, from);
    const Val next = arrived + b.GatherElements(slice[0], extended, {.axis = 1});
    return {{b.Where(b.Less(slice[1], last), next, now)}, {}};
  });
  // No frames read an empty target only.
  const Val final = b.Where(b.And(b.Equal(last, zero), b.Equal(places, zero)), b.Constant(0, dtype), out[0]);
  const auto at = [&](Val place) { return b.ReduceMax(b.Where(b.Equal(places, place), final, least), {1}); };
  return b.Neg(LogSum(b, {at(end), at(end - one)}));
}

// mean: of the losses divided by the target's length
Val CtcLoss(Onnx& b, const Ctc& c, int64_t reduction, bool zero_infinity) {
  Val loss = NegativeLogLikelihood(b, c);
  const Val zero = b.Constant(0, loss.dtype());
  if (zero_infinity) loss = b.Where(b.Equal(loss, b.Constant(INFINITY, loss.dtype())), zero, loss);
  if (reduction == 1) return b.ReduceMean(loss / b.Cast(b.Max(c.target_lengths, b.IntScalar(1)), loss.dtype()), {0});
  if (reduction == 2) return b.ReduceSum(loss, {0});
  return ResultShape(b).empty() ? b.Squeeze(loss, {0}) : loss;
}

Val Lengths(Onnx& b, Ints lengths) { return b.Ints(IntVec(lengths)); }
Val Lengths(Onnx& b, Val lengths) { return b.Reshape(b.Cast(lengths, DType::I64), {lengths.numel()}); }

template <class Op>
Ctc Of(Onnx& b, const Op& op) {
  return {op.log_probs, op.targets, Lengths(b, op.input_lengths), Lengths(b, op.target_lengths), op.blank};
}

}  // namespace

void CtcRules(Rules<Onnx>& r) {
  OnEach<aten::ctc_loss_IntList, aten::ctc_loss_Tensor>(r, [](Onnx& b, const auto& op) { return CtcLoss(b, Of(b, op), op.reduction, op.zero_infinity); });
  OnEach<aten::_ctc_loss, aten::_ctc_loss_Tensor>(r, [](Onnx& b, const auto& op) {
    return Vals{CtcLoss(b, Of(b, op), 0, false), LaterUnsupported(b, 1, "the table of the forward recursion, which only the gradient reads, is not kept")};
  });
}

}  // namespace pt2onnx
