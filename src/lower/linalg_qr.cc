// QR by Householder reflections, with LAPACK's signs: column k is reflected to beta e_k, where beta has the sign that its diagonal element has
// not; what is zero below the diagonal already stays as it is.
//
//   %q, %r = aten::linalg_qr(%a)    ->    %packed, %tau = Loop(n, %a, ...)   %q = Loop(n, I, %packed, %tau)   %r = Trilu(%packed)
#include "lower/linalg_factor.h"

namespace pt2onnx {
namespace {

// Q of m x n, n <= m: the first columns of the product of reflections.
Val HouseholderProduct(Onnx& b, Val a, Val tau) {
  const Val unit = UnitMatrix(b, a.dim(-2), a.dim(-1), a.dtype());
  return Reflect(b, a, tau, ToBatch(b, unit, BatchDims(a)), false);
}

// Q x, Q^T x, x Q = (Q^T x^T)^T, x Q^T
Val Ormqr(Onnx& b, Val a, Val tau, Val x, bool left, bool transpose) {
  if (left) return Reflect(b, a, tau, x, transpose);
  return Transposed(b, Reflect(b, a, tau, Transposed(b, x), !transpose));
}

Vals LinalgQr(Onnx& b, Val a, std::string_view mode) {
  if (mode == "r") {
    const SymExpr k = Min(a.dim(-2), a.dim(-1));
    return {b.Zeros(ResultShape(b), a.dtype()), Upper(b, b.Slice(Householder(b, a).a, a.rank() - 2, 0, k))};
  }
  const Qr out = QrFactor(b, a, mode == "complete");
  return {out.q, out.r};
}

}  // namespace

// With alpha = x_k, s = |x_(k+1 ..)|:  beta = -sign(alpha) |(alpha, s)|, v = x / (alpha - beta), tau = (beta - alpha) / beta.
Reflectors Householder(Onnx& b, Val a) {
  const SymExpr m = a.dim(-2), n = a.dim(-1), k = Min(m, n);
  const Val rows = RowNumbers(b, m), columns = ColumnNumbers(b, n), places = Iota(b, k);
  const Val zero = b.Constant(0, a.dtype()), one = b.Constant(1, a.dtype());
  const Val taus = b.Zeros(Joined(BatchDims(a), DimVec{k}), a.dtype());
  const Vals out = Steps(b, k, {a, taus}, [&](Val i, const Vals& now) -> Vals {
    const Val below = b.Greater(rows, i), here = b.Equal(rows, i);
    const Val x = ColumnAt(b, now[0], i), alpha = RowAt(b, x, i), tail = b.Where(below, x, zero);
    const Val done = b.Equal(b.ReduceMax(b.Abs(tail), {-2}, true), zero);
    const Val length = b.ReduceL2(b.Where(b.Or(below, here), x, zero), {-2}, true);
    const Val beta = b.Where(done, alpha, b.Where(b.Less(alpha, zero), length, b.Neg(length)));
    const Val tau = b.Where(done, zero, (beta - alpha) / beta);
    const Val v = b.Where(here, one, tail / b.Where(done, one, alpha - beta));
    const Val reflected = now[0] - v * (tau * b.MatMul(Transposed(b, v), now[0]));
    const Val packed = b.Where(below, v, b.Where(here, beta, x));
    return {b.Where(b.Greater(columns, i), reflected, b.Where(b.Equal(columns, i), packed, now[0])),
            b.Where(b.Equal(places, i), b.Squeeze(tau, {-1}), now[1])};
  });
  return {out[0], out[1]};
}

Val Reflect(Onnx& b, Val a, Val tau, Val x, bool transposed) {
  const SymExpr count = tau.dim(-1);
  const Val rows = RowNumbers(b, a.dim(-2)), last = b.Int(count - 1);
  const Val zero = b.Constant(0, a.dtype()), one = b.Constant(1, a.dtype());
  return Steps(b, count, {x}, [&](Val i, const Vals& now) -> Vals {
    const Val k = transposed ? i : last - i;
    const Val v = b.Where(b.Equal(rows, k), one, b.Where(b.Greater(rows, k), ColumnAt(b, a, k), zero));
    const Val t = b.Unsqueeze(b.Gather(tau, b.Unsqueeze(k, {0}), tau.rank() - 1), {-1});
    return {now[0] - v * (t * b.MatMul(Transposed(b, v), now[0]))};
  })[0];
}

Qr QrFactor(Onnx& b, Val a, bool complete) {
  const SymExpr m = a.dim(-2), n = a.dim(-1), width = complete ? m : Min(m, n);
  const Reflectors h = Householder(b, a);
  const Val q = Reflect(b, h.a, h.tau, ToBatch(b, UnitMatrix(b, m, width, a.dtype()), BatchDims(a)), false);
  return {q, Upper(b, complete ? h.a : b.Slice(h.a, a.rank() - 2, 0, width))};
}

void LinalgQrRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::geqrf& op) {
    const Reflectors h = Householder(b, op.self);
    return Vals{h.a, h.tau};
  });
  r.On([](Onnx& b, const aten::linalg_qr& op) { return LinalgQr(b, op.A, op.mode); });
  r.On([](Onnx& b, const aten::qr& op) { return LinalgQr(b, op.self, op.some ? "reduced" : "complete"); });
  r.On([](Onnx& b, const aten::linalg_householder_product& op) { return HouseholderProduct(b, op.input, op.tau); });
  r.On([](Onnx& b, const aten::orgqr& op) { return HouseholderProduct(b, op.self, op.input2); });
  r.On([](Onnx& b, const aten::ormqr& op) { return Ormqr(b, op.self, op.input2, op.input3, op.left, op.transpose); });
}

}  // namespace pt2onnx
