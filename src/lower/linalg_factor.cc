// The pieces of factorizations, triangular systems and LU; see linalg_factor.h.
//
//   %x = aten::linalg_solve(%a, %b)    ->    %lu, %perm = Loop(n, ...)   %y = Loop(n, %lu, GatherElements(%b, %perm))   %x = Loop(n, %lu, %y)
#include "lower/linalg_factor.h"

#include "ir/infer.h"

namespace pt2onnx {

Val Known(Onnx& b, Val x, const DimVec& shape) {
  x.value->type.shape = b.context().arena.Copy(shape);
  return x;
}

Val Transposed(Onnx& b, Val x) {
  IntVec perm = Axes(0, x.rank());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return b.Transpose(x, perm);
}

DimVec BatchDims(Val x) { return DimVec(x.shape().first(static_cast<size_t>(x.rank() - 2))); }

Val RowNumbers(Onnx& b, SymExpr rows) { return b.Unsqueeze(Iota(b, rows), {1}); }
Val ColumnNumbers(Onnx& b, SymExpr columns) { return b.Unsqueeze(Iota(b, columns), {0}); }
Val ColumnAt(Onnx& b, Val x, Val i) { return b.Gather(x, b.Unsqueeze(i, {0}), x.rank() - 1); }
Val RowAt(Onnx& b, Val x, Val i) { return b.Gather(x, b.Unsqueeze(i, {0}), x.rank() - 2); }

Val DiagonalOf(Onnx& b, Val x) {
  const SymExpr n = Min(x.dim(-2), x.dim(-1));
  x = b.Slice(b.Slice(x, x.rank() - 2, 0, n), x.rank() - 1, 0, n);
  return Known(b, b.ReduceSum(b.Where(OnDiagonal(b, n, n, 0), x, b.Constant(0, x.dtype())), {x.rank() - 1}), Joined(BatchDims(x), DimVec{n}));
}

Val UnitMatrix(Onnx& b, SymExpr rows, SymExpr columns, DType dtype) { return b.Cast(OnDiagonal(b, rows, columns, 0), dtype); }

Val Lower(Onnx& b, Val x, int64_t diagonal) { return b.Trilu(x, b.IntScalar(diagonal), {.upper = 0}); }
Val Upper(Onnx& b, Val x, int64_t diagonal) { return b.Trilu(x, b.IntScalar(diagonal), {.upper = 1}); }

Val ToBatch(Onnx& b, Val x, const DimVec& batch) {
  DimVec shape = batch;
  shape.push_back(x.dim(-2));
  shape.push_back(x.dim(-1));
  return b.Expand(x, shape);
}

Val InfoOf(Onnx& b, Val bad) {
  const SymExpr n = bad.dim(-1);
  const Val last = b.Int1(n);
  const Val place = b.Where(bad, Iota(b, n), last);
  DimVec shape(bad.shape());
  shape.back() = 1;
  // An element behind the last makes the minimum of none.
  const Val first = b.ReduceMin(b.Concat({place, b.Expand(last, shape)}, -1), {bad.rank() - 1});
  return b.Cast(b.Where(b.Equal(first, b.Int(n)), b.IntScalar(0), first + b.IntScalar(1)), DType::I32);
}

Vals Steps(Onnx& b, SymExpr count, const Vals& carried, const std::function<Vals(Val i, const Vals&)>& step) {
  return b.Loop(b.Int(count), {}, carried, [&](Onnx&, Val i, const Vals& now) -> LoopStep {
    const Vals next = step(i, now);
    // What broadcasting of dynamic dims leaves open is known here.
    for (size_t k = 0; k < next.size(); ++k) Known(b, next[k], DimVec(carried[k].shape()));
    return {b.Constant(true, DType::Bool), next, {}};
  });
}

// Column by column: x_k = rhs_k / a_kk, then rhs -= a_k x_k in the rows that are left.
Val SolveTriangular(Onnx& b, Val a, Val rhs, bool upper, bool unit) {
  const SymExpr n = a.dim(-1);
  rhs = ToBatch(b, rhs, DimVec(BroadcastShape(BatchDims(a), BatchDims(rhs))));
  const Val rows = RowNumbers(b, n), last = b.Int(n - 1);
  return Steps(b, n, {rhs}, [&](Val i, const Vals& now) -> Vals {
    const Val k = upper ? last - i : i;
    const Val column = ColumnAt(b, a, k);
    Val x = RowAt(b, now[0], k);
    if (!unit) x = x / RowAt(b, column, k);
    const Val rest = upper ? b.Less(rows, k) : b.Greater(rows, k);
    const Val kept = unit ? now[0] : b.Where(b.Equal(rows, k), x, now[0]);
    return {b.Where(rest, now[0] - column * x, kept)};
  })[0];
}

// Step k brings the largest element of column k that is not above row k to row k, the first one of several, and subtracts multiples of
// that row from those below. A column of zeros stays one: L has zeros there.
Lu LuFactor(Onnx& b, Val a) {
  const SymExpr m = a.dim(-2), n = a.dim(-1);
  const Val rows = RowNumbers(b, m), columns = ColumnNumbers(b, n), places = Iota(b, Min(m, n));
  const Val zero = b.Constant(0, a.dtype()), before = b.Constant(-1, a.dtype());
  const DimVec batch = BatchDims(a);
  const Val perm = ToBatch(b, rows, batch);
  const Val pivots = b.Expand(places, Joined(batch, DimVec{Min(m, n)}));
  const Vals out = Steps(b, Min(m, n), {a, perm, pivots}, [&](Val k, const Vals& now) -> Vals {
    const Val candidates = b.Where(b.GreaterOrEqual(rows, k), b.Abs(ColumnAt(b, now[0], k)), before);
    const Val pivot = b.ArgMax(candidates, {.axis = a.rank() - 2});
    const Val taken = b.Where(b.Equal(rows, k), pivot, b.Where(b.Equal(rows, pivot), k, rows));
    const Val x = b.GatherElements(now[0], b.Expand(taken, a.shape()), {.axis = a.rank() - 2});
    const Val row = RowAt(b, x, k), top = ColumnAt(b, row, k), below = b.Greater(rows, k);
    const Val factor = b.Where(b.Equal(top, zero), zero, ColumnAt(b, x, k) / top);
    const Val next = b.Where(b.Equal(columns, k), factor, x - factor * row);
    return {b.Where(b.And(below, b.GreaterOrEqual(columns, k)), next, x), b.GatherElements(now[1], taken, {.axis = a.rank() - 2}),
            b.Where(b.Equal(places, k), b.Squeeze(pivot, {-1}), now[2])};
  });
  return {out[0], out[2], b.Squeeze(out[1], {-1})};
}

Val PermOf(Onnx& b, Val pivots, SymExpr rows) {
  const Val numbers = Iota(b, rows);
  const DimVec batch(pivots.shape().first(static_cast<size_t>(pivots.rank() - 1)));
  return Steps(b, pivots.dim(-1), {b.Expand(numbers, Joined(batch, DimVec{rows}))}, [&](Val k, const Vals& now) -> Vals {
    const Val pivot = ColumnAt(b, pivots, k);
    const Val taken = b.Where(b.Equal(numbers, k), pivot, b.Where(b.Equal(numbers, pivot), k, numbers));
    return {b.GatherElements(now[0], taken, {.axis = pivots.rank() - 1})};
  })[0];
}

// A = P L U with P the permutation that takes row i to row perm[i]
Val LuSolve(Onnx& b, Val lu, Val perm, Val rhs, bool adjoint) {
  const DimVec batch = DimVec(BroadcastShape(BatchDims(lu), BatchDims(rhs)));
  rhs = ToBatch(b, rhs, batch);
  const Val places = ToBatch(b, b.Unsqueeze(perm, {-1}), batch);
  const Val index = b.Expand(places, rhs.shape());
  if (!adjoint) {
    const Val y = SolveTriangular(b, lu, b.GatherElements(rhs, index, {.axis = rhs.rank() - 2}), false, true);
    return SolveTriangular(b, lu, y, true, false);
  }
  const Val transposed = Transposed(b, lu);
  const Val z = SolveTriangular(b, transposed, SolveTriangular(b, transposed, rhs, false, false), true, true);
  return b.ScatterElements(z, index, z, {.axis = rhs.rank() - 2});
}

Solution Solve(Onnx& b, Val a, Val rhs, bool left) {
  const Lu f = LuFactor(b, a);
  if (left) return {LuSolve(b, f.lu, f.perm, rhs), f.lu};
  return {Transposed(b, LuSolve(b, f.lu, f.perm, Transposed(b, rhs), true)), f.lu};  // A^T X^T = rhs^T
}

Solution Inverse(Onnx& b, Val a) { return Solve(b, a, UnitMatrix(b, a.dim(-1), a.dim(-1), a.dtype())); }

}  // namespace pt2onnx
