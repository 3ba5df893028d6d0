// Symmetric matrices that are not definite: A = L D L^T by LAPACK's sytrf (Bunch and Kaufman), with D of 1 x 1 and 2 x 2 blocks.
//
// Step k takes column k, or columns k and k + 1 where neither its own diagonal element nor the one in the row of its largest element is large
// enough. Matrices of a batch may differ in that, so a step k that a pair has taken already does nothing. pivots[k] is 1 + the row that was
// exchanged, negative for both steps of a pair.
#include <cmath>

#include "ir/infer.h"
#include "lower/linalg_factor.h"

namespace pt2onnx {
namespace {

struct Ldl {
  Val ld;      // [..., n, n]: D's blocks on the diagonal, L below
  Val pivots;  // [..., n], int64
};

// Rows i and j of x exchanged; i and j: [..., 1, 1]
Val RowsExchanged(Onnx& b, Val x, Val i, Val j) {
  const Val rows = RowNumbers(b, x.dim(-2));
  const Val taken = b.Where(b.Equal(rows, i), j, b.Where(b.Equal(rows, j), i, rows));
  return b.GatherElements(x, b.Expand(taken, x.shape()), {.axis = x.rank() - 2});
}

Ldl LdlFactor(Onnx& b, Val a) {
  const double alpha = (1 + std::sqrt(17.0)) / 8;
  const SymExpr n = a.dim(-1);
  const DType dtype = a.dtype();
  const DimVec batch = BatchDims(a);
  const Val rows = RowNumbers(b, n), columns = ColumnNumbers(b, n), places = Iota(b, n);
  const Val zero = b.Constant(0, dtype), one = b.Constant(1, dtype), step1 = b.IntScalar(1), last = b.Int(n - 1);
  const Val symmetric = Lower(b, a) + Transposed(b, Lower(b, a, -1));
  const DimVec row_shape = Joined(batch, DimVec{1, n});
  const Val no = b.Expand(b.Constant(false, DType::Bool), Joined(batch, DimVec{1, 1}));
  const Vals out = Steps(b, n, {symmetric, b.Zeros(a.shape(), dtype), b.Zeros(Joined(batch, DimVec{n}), DType::I64), no}, [&](Val i, const Vals& now) -> Vals {
    const Val column = ColumnAt(b, now[0], i), own = b.Abs(RowAt(b, column, i)), next = b.Min(i + step1, last);
    const Val below = b.Where(b.Greater(rows, i), b.Abs(column), b.Constant(-1, dtype));
    const Val far = b.ArgMax(below, {.axis = a.rank() - 2}), largest = b.Max(b.ReduceMax(below, {-2}, true), zero);
    const Val row = b.GatherElements(now[0], b.Expand(far, row_shape), {.axis = a.rank() - 2});
    const Val others = b.And(b.GreaterOrEqual(columns, i), b.Not(b.Equal(columns, far)));
    const Val beside = b.Max(b.ReduceMax(b.Where(others, b.Abs(row), zero), {-1}, true), zero);
    const Val there = b.Abs(b.GatherElements(row, far, {.axis = a.rank() - 1}));
    const Val stays = b.Or(b.GreaterOrEqual(own, largest * alpha), b.GreaterOrEqual(own * beside, largest * largest * alpha));
    const Val two = b.Not(b.Or(stays, b.GreaterOrEqual(there, beside * alpha)));
    const Val from = b.Where(stays, i, far), to = b.Where(two, next, i);

    const Val x = Transposed(b, RowsExchanged(b, Transposed(b, RowsExchanged(b, now[0], to, from)), to, from));
    const Val x1 = ColumnAt(b, x, i), x2 = ColumnAt(b, x, next);
    const Val d11 = RowAt(b, x1, i), d21 = RowAt(b, x1, next), d22 = RowAt(b, x2, next);
    const Val det = b.Where(two, d11 * d22 - d21 * d21, one), single = b.Where(b.Equal(d11, zero), one, d11);
    const Val rest = b.Greater(rows, to);
    const Val l1 = b.Where(rest, b.Where(two, (d22 * x1 - d21 * x2) / det, x1 / single), zero);
    const Val l2 = b.Where(b.And(rest, two), (d11 * x2 - d21 * x1) / det, zero);
    const Val left = x - l1 * Transposed(b, x1) - l2 * Transposed(b, x2);

    const Val pair_row = b.And(two, b.Equal(rows, next)), pair_column = b.And(two, b.Equal(columns, next));
    const Val first = b.Where(b.Equal(rows, i), d11, b.Where(pair_row, d21, l1)), second = b.Where(b.Equal(rows, next), d22, l2);
    const Val ld = b.Where(b.Equal(columns, i), first, b.Where(pair_column, second, now[1]));
    const Val pivot = b.Where(two, b.Neg(from + step1), from + step1);
    const Val flat_two = b.Squeeze(two, {-1}), here = b.Or(b.Equal(places, i), b.And(flat_two, b.Equal(places, next)));
    const Val pivots = b.Where(here, b.Squeeze(pivot, {-1}), now[2]);
    const Val done = now[3];
    return {b.Where(done, now[0], left), b.Where(done, now[1], ld), b.Where(b.Squeeze(done, {-1}), now[2], pivots), b.And(two, b.Not(done))};
  });
  return {out[1], out[2]};
}

Val LdlInfo(Onnx& b, const Ldl& f) {
  return InfoOf(b, b.And(b.Equal(DiagonalOf(b, f.ld), b.Constant(0, f.ld.dtype())), b.Greater(f.pivots, b.IntScalar(0))));
}

// L (with its exchanges) and D are undone from the first column on, then L^T from the last one.
Val LdlSolve(Onnx& b, Val ld, Val pivots, Val rhs) {
  const SymExpr n = ld.dim(-1);
  const DimVec batch(BroadcastShape(BatchDims(ld), BatchDims(rhs)));
  ld = ToBatch(b, ld, batch);
  rhs = ToBatch(b, rhs, batch);
  const Val marks = ToBatch(b, b.Unsqueeze(b.Cast(pivots, DType::I64), {-1}), batch);
  const Val rows = RowNumbers(b, n), step1 = b.IntScalar(1), last = b.Int(n - 1), none = b.IntScalar(0);
  const Val zero = b.Constant(0, rhs.dtype()), one = b.Constant(1, rhs.dtype());
  const Val no = b.Expand(b.Constant(false, DType::Bool), Joined(batch, DimVec{1, 1}));
  const Vals forward = Steps(b, n, {rhs, no}, [&](Val i, const Vals& now) -> Vals {
    const Val next = b.Min(i + step1, last), mark = RowAt(b, marks, i), two = b.Less(mark, none), to = b.Where(two, next, i);
    const Val x = RowsExchanged(b, now[0], to, b.Abs(mark) - step1);
    const Val c1 = ColumnAt(b, ld, i), c2 = ColumnAt(b, ld, next), x1 = RowAt(b, x, i), x2 = RowAt(b, x, next);
    const Val d11 = RowAt(b, c1, i), d21 = RowAt(b, c1, next), d22 = RowAt(b, c2, next), det = b.Where(two, d11 * d22 - d21 * d21, one);
    const Val rest = b.Greater(rows, to);
    const Val l1 = b.Where(rest, c1, zero), l2 = b.Where(b.And(rest, two), c2, zero);
    const Val y1 = b.Where(two, (d22 * x1 - d21 * x2) / det, x1 / d11), y2 = (d11 * x2 - d21 * x1) / det;
    const Val left = x - l1 * x1 - l2 * x2;
    const Val solved = b.Where(b.Equal(rows, i), y1, b.Where(b.And(two, b.Equal(rows, next)), y2, left));
    return {b.Where(now[1], now[0], solved), b.And(two, b.Not(now[1]))};
  });
  return Steps(b, n, {forward[0], no}, [&](Val step, const Vals& now) -> Vals {
    const Val i = last - step, before = b.Max(i - step1, none), mark = RowAt(b, marks, i), two = b.Less(mark, none);
    const Val rest = b.Greater(rows, i);
    const auto through = [&](Val k) { return b.MatMul(Transposed(b, b.Where(rest, ColumnAt(b, ld, k), zero)), now[0]); };
    const Val x = b.Where(b.Equal(rows, i), now[0] - through(i), b.Where(b.And(two, b.Equal(rows, before)), now[0] - through(before), now[0]));
    const Val exchanged = RowsExchanged(b, x, b.Expand(i, DimVec(std::vector<SymExpr>(static_cast<size_t>(ld.rank()), 1))), b.Abs(mark) - step1);
    return {b.Where(now[1], now[0], exchanged), b.And(two, b.Not(now[1]))};
  })[0];
}

}  // namespace

void LinalgLdlRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::linalg_ldl_factor& op) {
    const Ldl f = LdlFactor(b, op.self);
    return Vals{f.ld, f.pivots};
  });
  r.On([](Onnx& b, const aten::linalg_ldl_factor_ex& op) {
    const Ldl f = LdlFactor(b, op.self);
    return Vals{f.ld, f.pivots, LdlInfo(b, f)};
  });
  r.On([](Onnx& b, const aten::linalg_ldl_solve& op) { return LdlSolve(b, op.LD, op.pivots, op.B); });
}

}  // namespace pt2onnx
