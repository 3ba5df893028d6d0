// Running sums, products and extremes along a dim. The sum is an operator at every opset, the product from 26 on; the others scan the slices
// one by one.
//
//   %y = aten::cumsum(%x : i32, 1)        ->    %y = CumSum(Cast(%x, i64), 1)
//   %v, %i = aten::cummax(%x : f32, 0)    ->    %v, %i = Scan over the rows, with the largest so far and its index as states
#include "lower/reduce.h"

namespace pt2onnx {
namespace {

template <class Op>
Val CumSum(Onnx& b, const Op& op) {
  const Val x = b.Cast(op.self, ResultDType(b));
  return x.IsScalar() ? x : b.CumSum(x, b.IntScalar(Axis(op.dim, x.rank())));
}

// States that the slices of the inputs are folded into, from the first to the last; after each step they are the next slice of the results.
template <class Step>
Vals Accumulate(Onnx& b, const Vals& start, const Vals& inputs, const IntVec& input_axes, int64_t axis, Step step) {
  const size_t n = start.size();
  const Vals out = b.Scan(start, inputs, [&](Onnx& body, const Vals& states, const Vals& slices) {
    const Vals next = step(body, states, slices);
    return ScanStep{.states = next, .outputs = next};
  }, {.input_axes = input_axes, .output_axes = IntVec(std::vector<int64_t>(n, axis))});
  return Vals(out.begin() + static_cast<int64_t>(n), out.end());
}

Val StartOf(Onnx& b, Val x, int64_t axis, Scalar value) { return b.Full(WithDims(x.shape(), axis, 1, {}), value, x.dtype()); }

template <class Op>
Val CumProd(Onnx& b, const Op& op) {
  const Val x = b.Cast(op.self, ResultDType(b));
  if (x.IsScalar()) return x;
  const int64_t axis = Axis(op.dim, x.rank());
  if (b.opset() >= 26) return b.CumProd(x, b.IntScalar(axis));
  return Accumulate(b, {StartOf(b, x, axis, 1)}, {x}, {axis}, axis,
                    [](Onnx&, const Vals& state, const Vals& slice) { return Vals{state[0] * slice[0]}; })[0];
}

// log(exp(s) + exp(x)) = m + log(exp(s - m) + exp(x - m)) with the larger one as m, or 0 where that is infinite.
Val LogCumSumExp(Onnx& b, Val x, int64_t dim) {
  if (x.IsScalar()) return x;
  const int64_t axis = Axis(dim, x.rank());
  return Accumulate(b, {StartOf(b, x, axis, -INFINITY)}, {x}, {axis}, axis, [](Onnx& body, const Vals& state, const Vals& slice) {
    const Val larger = body.Max(state[0], slice[0]);
    const Val m = body.Where(body.IsInf(larger), body.Constant(0, larger.dtype()), larger);
    return Vals{m + body.Log(body.Exp(state[0] - m) + body.Exp(slice[0] - m))};
  })[0];
}

// The last of equal elements counts, and NaN from where it occurs.
Vals CumExtreme(Onnx& b, Val self, int64_t dim, bool largest) {
  if (self.IsScalar()) return {self, b.IntScalar(0)};
  const Val x = self.dtype() == DType::Bool ? b.Cast(self, DType::I32) : self;
  const int64_t axis = Axis(dim, x.rank());
  const Vals start = {StartOf(b, x, axis, ExtremeOf(x.dtype(), !largest)), b.Zeros(WithDims(x.shape(), axis, 1, {}), DType::I64)};
  return Accumulate(b, start, {x, Iota(b, x.dim(axis))}, {axis, 0}, axis, [&](Onnx& body, const Vals& state, const Vals& slice) {
    Val taken = largest ? body.GreaterOrEqual(slice[0], state[0]) : body.LessOrEqual(slice[0], state[0]);
    if (IsFloat(x.dtype())) taken = body.Or(taken, body.IsNaN(slice[0]));
    return Vals{body.Where(taken, slice[0], state[0]), body.Where(taken, slice[1], state[1])};
  });
}

}  // namespace

void CumulativeRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::cumsum& op) { return CumSum(b, op); });
  r.On([](Onnx& b, const aten::cumprod& op) { return CumProd(b, op); });
  OnEach<aten::logcumsumexp, aten::_logcumsumexp>(r, [](Onnx& b, const auto& op) { return LogCumSumExp(b, op.self, op.dim); });
  r.On([](Onnx& b, const aten::cummax& op) { return CumExtreme(b, op.self, op.dim, true); });
  r.On([](Onnx& b, const aten::cummin& op) { return CumExtreme(b, op.self, op.dim, false); });
}

}  // namespace pt2onnx
