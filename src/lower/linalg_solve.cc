// Determinants, inverses and linear systems: everything that an LU or Cholesky factorization or a triangular matrix answers.
//
//   %y = aten::linalg_det(%a : f32)     ->    %y = Det(%a)
//   %y = aten::linalg_inv(%a)           ->    LU of %a, two triangular systems with the unit matrix
//
// A matrix without an inverse: eager raises where the op checks (inv, solve, cholesky, lu_solve); a model can't, its numbers are infinities
// and NaN there. The *_ex forms tell by info, as in eager.
#include "ir/infer.h"
#include "lower/linalg_factor.h"
#include "lower/reduce.h"

namespace pt2onnx {
namespace {

constexpr const char* kNoPivot = "an LU factorization without pivoting is one of PyTorch's for GPUs only";

// ---- LU --------------------------------------------------------------------------------------------------------------------------------

Val OneBased(Onnx& b, Val pivots) { return b.Cast(pivots + b.IntScalar(1), DType::I32); }
Val ZeroBased(Onnx& b, Val pivots) { return b.Cast(pivots, DType::I64) - b.IntScalar(1); }
Val IsZero(Onnx& b, Val x) { return b.Equal(x, b.Constant(0, x.dtype())); }
Val SingularInfo(Onnx& b, Val lu) { return InfoOf(b, IsZero(b, DiagonalOf(b, lu))); }

// LU, pivots, info
Vals LuFactorEx(Onnx& b, Val a, bool pivot) {
  if (!pivot) return Vals(3, b.Unsupported(kNoPivot, "factor with pivot=True"));
  const Lu f = LuFactor(b, a);
  return {f.lu, OneBased(b, f.pivots), SingularInfo(b, f.lu)};
}

// P[perm[i], i] = 1
Val PermutationMatrix(Onnx& b, Val perm, DType dtype) {
  return b.Cast(b.Equal(RowNumbers(b, perm.dim(-1)), b.Unsqueeze(perm, {-2})), dtype);
}
// L, with ones on its diagonal, and U of m x n packed ones.
Vals Unpacked(Onnx& b, Val lu) {
  const SymExpr m = lu.dim(-2), n = lu.dim(-1), k = Min(m, n);
  const Val left = b.Slice(lu, lu.rank() - 1, 0, k), top = b.Slice(lu, lu.rank() - 2, 0, k);
  return {b.Where(OnDiagonal(b, m, k, 0), b.Constant(1, lu.dtype()), Lower(b, left, -1)), Upper(b, top)};
}
// P, L, U; one that is not asked for is empty
Vals LuUnpack(Onnx& b, Val lu, Val perm, bool data, bool pivots) {
  const Vals parts = data ? Unpacked(b, lu) : Vals{b.Zeros({0}, lu.dtype()), b.Zeros({0}, lu.dtype())};
  return {pivots ? PermutationMatrix(b, perm, lu.dtype()) : b.Zeros({0}, lu.dtype()), parts[0], parts[1]};
}

// ---- Determinants ------------------------------------------------------------------------------------------------------------------------

// -1 for each exchange of rows, and the elements of U's diagonal
struct SignAndDiagonal {
  Val sign, diagonal;
};
SignAndDiagonal Determinant(Onnx& b, Val a) {
  const Lu f = LuFactor(b, a);
  const Val moved = b.Cast(b.Not(b.Equal(f.pivots, Iota(b, f.pivots.dim(-1)))), DType::I64);
  const Val odd = b.Mod(b.ReduceSum(moved, {f.pivots.rank() - 1}), b.IntScalar(2));
  return {b.Cast(b.IntScalar(1) - odd * b.IntScalar(2), a.dtype()), DiagonalOf(b, f.lu)};
}
Val Det(Onnx& b, Val a) {
  if (a.dtype() == DType::F32 && a.dim(-1).IsConst() && a.dim(-1).Const() > 0) return b.Det(a);
  const SignAndDiagonal d = Determinant(b, a);
  return d.sign * b.ReduceProd(d.diagonal, {d.diagonal.rank() - 1});
}
// sign, log |det|
Vals SlogDet(Onnx& b, Val a) {
  const SignAndDiagonal d = Determinant(b, a);
  const IntVec last = {d.diagonal.rank() - 1};
  return {d.sign * b.ReduceProd(b.Sign(d.diagonal), last), b.ReduceSum(b.Log(b.Abs(d.diagonal)), last)};
}
Val LogDet(Onnx& b, Val a) {
  const Vals d = SlogDet(b, a);
  return b.Where(b.Equal(d[0], b.Constant(-1, a.dtype())), b.Constant(NAN, a.dtype()), d[1]);
}

// ---- Systems -----------------------------------------------------------------------------------------------------------------------------

// rhs: a matrix, or a vector, of which the result has one dim less than A.
Solution SolveEx(Onnx& b, Val a, Val rhs, bool left) {
  if (std::ssize(ResultShape(b)) >= a.rank()) return Solve(b, a, rhs, left);
  const Solution out = Solve(b, a, b.Unsqueeze(rhs, {-1}));
  return {b.Squeeze(out.x, {-1}), out.lu};
}

Val LinalgLuSolve(Onnx& b, Val lu, Val pivots, Val rhs, bool left, bool adjoint) {
  const Val perm = PermOf(b, ZeroBased(b, pivots), lu.dim(-1));
  if (left) return LuSolve(b, lu, perm, rhs, adjoint);
  return Transposed(b, LuSolve(b, lu, perm, Transposed(b, rhs), !adjoint));
}

// X A = rhs is A^T X^T = rhs^T
Val LinalgSolveTriangular(Onnx& b, Val a, Val rhs, bool upper, bool left, bool unit) {
  if (left) return SolveTriangular(b, a, rhs, upper, unit);
  return Transposed(b, SolveTriangular(b, Transposed(b, a), Transposed(b, rhs), !upper, unit));
}

// The dims from `ind` on, merged, against those before.
Val TensorInv(Onnx& b, Val x, int64_t ind) {
  const Dims shape = x.shape();
  const SymExpr n = Product(shape.first(static_cast<size_t>(ind)));
  return b.Reshape(Inverse(b, b.Reshape(x, {n, n})).x, ResultShape(b));
}
// Dims `dims` of self go to the end; then self is a matrix whose rows count the elements of other.
Val TensorSolve(Onnx& b, Val self, Val other, const std::optional<Ints>& dims) {
  if (dims) {
    IntVec from;
    for (const int64_t d : *dims) from.push_back(Axis(d, self.rank()));
    self = b.Transpose(self, MoveDims(self.rank(), from, Axes(self.rank() - std::ssize(from), self.rank())));
  }
  const SymExpr n = other.numel();
  const Val x = Solve(b, b.Reshape(self, {n, n}), b.Reshape(other, {n, 1})).x;
  return b.Reshape(x, ResultShape(b));
}

// ---- Cholesky ----------------------------------------------------------------------------------------------------------------------------

Val CholeskyOf(Onnx& b, Val a, bool upper) { return upper ? Transposed(b, Cholesky(b, Transposed(b, a))) : Cholesky(b, a); }
// X of L L^T X = rhs, or U^T U X = rhs
Val CholeskySolve(Onnx& b, Val rhs, Val factor, bool upper) {
  const Val other = Transposed(b, factor);
  const Val y = SolveTriangular(b, upper ? other : factor, rhs, false, false);
  return SolveTriangular(b, upper ? factor : other, y, true, false);
}

}  // namespace

// Step k: column k is divided by the root of its diagonal element; what it explains is subtracted to the right of it.
Val Cholesky(Onnx& b, Val a) {
  const SymExpr n = a.dim(-1);
  const Val columns = ColumnNumbers(b, n);
  const Val out = Steps(b, n, {a}, [&](Val k, const Vals& now) -> Vals {
    const Val column = ColumnAt(b, now[0], k);
    const Val l = column / b.Sqrt(RowAt(b, column, k));
    const Val next = b.Where(b.Equal(columns, k), l, now[0]);
    return {b.Where(b.Greater(columns, k), now[0] - l * Transposed(b, l), next)};
  })[0];
  return Lower(b, out);
}

void LinalgSolveRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::linalg_lu_factor_ex& op) { return LuFactorEx(b, op.A, op.pivot); });
  r.On([](Onnx& b, const aten::_lu_with_info& op) { return LuFactorEx(b, op.self, op.pivot); });
  r.On([](Onnx& b, const aten::linalg_lu_factor& op) {
    const Vals out = LuFactorEx(b, op.A, op.pivot);
    return Vals{out[0], out[1]};
  });
  r.On([](Onnx& b, const aten::linalg_lu& op) {
    if (!op.pivot) return Vals(3, b.Unsupported(kNoPivot, "factor with pivot=True"));
    const Lu f = LuFactor(b, op.A);
    return LuUnpack(b, f.lu, f.perm, true, true);
  });
  r.On([](Onnx& b, const aten::lu_unpack& op) {
    const Val perm = op.unpack_pivots ? PermOf(b, ZeroBased(b, op.LU_pivots), op.LU_data.dim(-2)) : op.LU_pivots;
    return LuUnpack(b, op.LU_data, perm, op.unpack_data, op.unpack_pivots);
  });
  r.On([](Onnx& b, const aten::linalg_lu_solve& op) { return LinalgLuSolve(b, op.LU, op.pivots, op.B, op.left, op.adjoint); });
  r.On([](Onnx& b, const aten::lu_solve& op) { return LinalgLuSolve(b, op.LU_data, op.LU_pivots, op.self, true, false); });

  r.On([](Onnx& b, const aten::linalg_det& op) { return Det(b, op.A); });
  r.On([](Onnx& b, const aten::det& op) { return Det(b, op.self); });
  r.On([](Onnx& b, const aten::_linalg_det& op) {
    return Vals{Det(b, op.A), LaterUnsupported(b, 1, "the factors of _linalg_det depend on how the matrix lies in memory"),
                LaterUnsupported(b, 2, "the factors of _linalg_det depend on how the matrix lies in memory")};
  });
  r.On([](Onnx& b, const aten::linalg_slogdet& op) { return SlogDet(b, op.A); });
  r.On([](Onnx& b, const aten::slogdet& op) { return SlogDet(b, op.self); });
  r.On([](Onnx& b, const aten::_linalg_slogdet& op) {
    const Vals d = SlogDet(b, op.A);
    return Vals{d[0], d[1], LaterUnsupported(b, 2, "the factors of _linalg_slogdet depend on how the matrix lies in memory"),
                LaterUnsupported(b, 3, "the factors of _linalg_slogdet depend on how the matrix lies in memory")};
  });
  r.On([](Onnx& b, const aten::logdet& op) { return LogDet(b, op.self); });

  r.On([](Onnx& b, const aten::linalg_inv& op) { return Inverse(b, op.A).x; });
  r.On([](Onnx& b, const aten::inverse& op) { return Inverse(b, op.self).x; });
  r.On([](Onnx& b, const aten::linalg_inv_ex& op) {
    const Solution out = Inverse(b, op.A);
    return Vals{out.x, SingularInfo(b, out.lu)};
  });
  r.On([](Onnx& b, const aten::linalg_solve& op) { return SolveEx(b, op.A, op.B, op.left).x; });
  r.On([](Onnx& b, const aten::linalg_solve_ex& op) {
    const Solution out = SolveEx(b, op.A, op.B, op.left);
    return Vals{out.x, SingularInfo(b, out.lu)};
  });
  r.On([](Onnx& b, const aten::_linalg_solve_ex& op) {
    const Solution out = SolveEx(b, op.A, op.B, op.left);
    return Vals{out.x, LaterUnsupported(b, 1, "the factors of _linalg_solve_ex depend on how the matrix lies in memory"),
                LaterUnsupported(b, 2, "the factors of _linalg_solve_ex depend on how the matrix lies in memory"), SingularInfo(b, out.lu)};
  });
  r.On([](Onnx& b, const aten::linalg_tensorinv& op) { return TensorInv(b, op.self, op.ind); });
  r.On([](Onnx& b, const aten::linalg_tensorsolve& op) { return TensorSolve(b, op.self, op.other, op.dims); });

  r.On([](Onnx& b, const aten::linalg_solve_triangular& op) {
    return LinalgSolveTriangular(b, op.self, op.B, op.upper, op.left, op.unitriangular);
  });
  // the solution, and A itself
  r.On([](Onnx& b, const aten::triangular_solve& op) {
    const Val a = op.transpose ? Transposed(b, op.A) : op.A;
    const DimVec batch(BroadcastShape(BatchDims(op.A), BatchDims(op.self)));
    return Vals{SolveTriangular(b, a, op.self, op.upper != op.transpose, op.unitriangular), ToBatch(b, op.A, batch)};
  });

  r.On([](Onnx& b, const aten::linalg_cholesky& op) { return CholeskyOf(b, op.self, op.upper); });
  r.On([](Onnx& b, const aten::cholesky& op) { return CholeskyOf(b, op.self, op.upper); });
  r.On([](Onnx& b, const aten::linalg_cholesky_ex& op) {
    const Val l = CholeskyOf(b, op.self, op.upper);
    return Vals{l, InfoOf(b, b.IsNaN(DiagonalOf(b, l)))};
  });
  r.On([](Onnx& b, const aten::cholesky_solve& op) { return CholeskySolve(b, op.self, op.input2, op.upper); });
  // (L L^T)^-1
  r.On([](Onnx& b, const aten::cholesky_inverse& op) {
    return CholeskySolve(b, UnitMatrix(b, op.self.dim(-1), op.self.dim(-1), op.self.dtype()), op.self, op.upper);
  });
}

}  // namespace pt2onnx
