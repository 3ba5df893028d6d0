// exp of a matrix: scaled by a power of two to a norm where the Taylor polynomial of degree 18 is exact to rounding, then squared as often.
//
//   exp(A) = (T_18(A / 2^s))^(2^s),    s = max(0, ceil(log2(|A|_1 / theta)))
#include "lower/linalg_factor.h"

namespace pt2onnx {
namespace {

// T_18(x) = B0 + x^6 (B1 + x^6 (B2 + x^6 / 18!)), B_j = sum x^i / (6 j + i)! for i < 6
Val Taylor18(Onnx& b, Val x) {
  Vals powers = {UnitMatrix(b, x.dim(-1), x.dim(-1), x.dtype()), x};
  while (powers.size() < 7) powers.push_back(b.MatMul(powers[powers.size() / 2], powers[(powers.size() + 1) / 2]));
  double inverse[19] = {1};
  for (int i = 1; i <= 18; ++i) inverse[i] = inverse[i - 1] / i;
  Val sum = powers[6] * inverse[18];
  for (int j = 2; j >= 0; --j) {
    if (j < 2) sum = b.MatMul(powers[6], sum);
    for (int i = 5; i >= 0; --i) sum = sum + powers[static_cast<size_t>(i)] * inverse[6 * j + i];
  }
  return sum;
}

Val MatrixExp(Onnx& b, Val x) {
  // Where the rest of the series falls below rounding (Bader, Blanes, Casas 2019); the largest power is that of the largest number.
  const bool wide = x.dtype() == DType::F64;
  const double theta = wide ? 1.09 : 3.01, most = wide ? 1024 : 128;
  const Val norm = b.ReduceMax(b.Concat({b.ReduceSum(b.Abs(x), {-2}), b.Zeros(Joined(BatchDims(x), DimVec{1}), x.dtype())}, -1), {-1}, true);
  const Val ratio = norm * (1 / theta), one = b.Constant(1, x.dtype());
  const Val power = b.Min(b.Ceil(b.Log(b.Where(b.Greater(ratio, one), ratio, one)) * (1 / M_LN2)), b.Constant(most, x.dtype()));
  const Val times = b.Unsqueeze(power, {-1});
  const Val start = Taylor18(b, x / b.Pow(b.Constant(2, x.dtype()), times));
  const Val count = b.Cast(times, DType::I64);
  const Val trip = b.ReduceMax(b.Concat({b.Flatten1D(count), b.Ints({0})}, 0), {0});
  return b.Loop(trip, {}, {start}, [&](Onnx&, Val i, const Vals& now) -> LoopStep {
    return {b.Constant(true, DType::Bool), {b.Where(b.Less(i, count), b.MatMul(now[0], now[0]), now[0])}, {}};
  })[0];
}

}  // namespace

void LinalgExpRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::linalg_matrix_exp& op) { return MatrixExp(b, op.self); });
  r.On([](Onnx& b, const aten::matrix_exp& op) { return MatrixExp(b, op.self); });
}

}  // namespace pt2onnx
