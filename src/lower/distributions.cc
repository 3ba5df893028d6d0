// Distributions whose draws take a loop: how many steps one takes is itself random. Exact, as PyTorch's are; the numbers differ.
//
//   poisson(l): how many arrivals, spaced by exponential gaps of mean 1, there are up to time l
//   binomial(n, p): how many of n uniform numbers are below p
//   gamma(a): Marsaglia and Tsang's rejection; a below 1 from a + 1, times u^(1/a). dirichlet: gammas divided by their sum
#include "lower/random.h"

namespace pt2onnx {
namespace {

Val True(Onnx& b) { return b.Constant(true, DType::Bool); }
Val Any(Onnx& b, Val truth) {
  const Val all = b.Concat({b.Flatten1D(b.Cast(truth, DType::I64)), b.Ints({0})}, 0);
  return b.Greater(b.ReduceMax(all, {0}), b.IntScalar(0));
}
// From opset 22 on uniform numbers come from Dropout, whose masks in ONNX Runtime depend on each other from one step to the next.
bool FreshDraws(const Onnx& b) { return b.opset() < 22; }
Val NoDraws(Onnx& b) { return b.Unsupported("ONNX Runtime has no generator from opset 22 on whose draws in a loop are independent", "convert with --opset 21 or lower"); }
// From (0, 1]
Val Above0(Onnx& b, const DimVec& shape) { return b.Constant(1, DType::F64) - Uniform(b, shape, DType::F64); }

Val Poisson(Onnx& b, Val rate) {
  const DimVec shape(rate.shape());
  const Val l = b.Cast(rate, DType::F64), zeros = b.Zeros(shape, DType::F64), one = b.Constant(1, DType::F64);
  return b.Loop({}, True(b), {zeros, zeros}, [&](Onnx&, Val, const Vals& now) -> LoopStep {
    const Val time = now[0] - b.Log(Above0(b, shape)), arrived = b.LessOrEqual(time, l);
    return {Any(b, arrived), {time, b.Where(arrived, now[1] + one, now[1])}, {}};
  })[1];
}

Val Binomial(Onnx& b, Val count, Val prob) {
  const DimVec shape(ResultShape(b));
  const Val n = b.Expand(b.Cast(count, DType::F64), shape), p = b.Expand(b.Cast(prob, DType::F64), shape);
  const Val trips = b.Cast(b.ReduceMax(b.Concat({b.Flatten1D(n), b.Zeros({1}, DType::F64)}, 0), {0}), DType::I64);
  return b.Loop(trips, {}, {b.Zeros(shape, DType::F64)}, [&](Onnx&, Val i, const Vals& now) -> LoopStep {
    const Val hit = b.And(b.Less(Uniform(b, shape, DType::F64), p), b.Less(b.Cast(i, DType::F64), n));
    return {True(b), {now[0] + b.Cast(hit, DType::F64)}, {}};
  })[0];
}

// With d = a - 1/3 and c = 1 / sqrt(9 d): v = (1 + c z)^3 of a normal z is taken, as d v, where log u < z^2/2 + d - d v + d log v.
Val Gamma(Onnx& b, Val alpha) {
  const DimVec shape(alpha.shape());
  const Val a = b.Cast(alpha, DType::F64), one = b.Constant(1, DType::F64), zero = b.Constant(0, DType::F64), small = b.Less(a, one);
  const Val d = b.Where(small, a + 1.0, a) - 1.0 / 3, c = b.Reciprocal(b.Sqrt(d * 9));
  const Val done = b.Expand(b.Constant(false, DType::Bool), shape);
  const Val drawn = b.Loop({}, True(b), {b.Zeros(shape, DType::F64), done}, [&](Onnx&, Val, const Vals& now) -> LoopStep {
    const Val z = Normal(b, shape, DType::F64), root = z * c + 1.0;
    const Val v = root * root * root, positive = b.Greater(v, zero), safe = b.Where(positive, v, one);
    const Val taken = b.And(positive, b.Less(b.Log(Above0(b, shape)), z * z * 0.5 + d - d * safe + d * b.Log(safe)));
    const Val all = b.Or(now[1], taken);
    return {Any(b, b.Not(all)), {b.Where(b.And(taken, b.Not(now[1])), d * v, now[0]), all}, {}};
  })[0];
  return b.Where(small, drawn * b.Pow(Above0(b, shape), b.Reciprocal(a)), drawn);
}

}  // namespace

void DistributionRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::poisson& op) { return FreshDraws(b) ? Poisson(b, op.self) : NoDraws(b); });
  r.On([](Onnx& b, const aten::binomial& op) { return FreshDraws(b) ? Binomial(b, op.count, op.prob) : NoDraws(b); });
  r.On([](Onnx& b, const aten::_standard_gamma& op) { return FreshDraws(b) ? Gamma(b, op.self) : NoDraws(b); });
  r.On([](Onnx& b, const aten::_sample_dirichlet& op) {
    if (!FreshDraws(b)) return NoDraws(b);
    const Val x = Gamma(b, op.self);
    return x / b.ReduceSum(x, {x.rank() - 1}, true);
  });
}

}  // namespace pt2onnx
