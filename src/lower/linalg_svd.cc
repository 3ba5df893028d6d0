// Singular values and what does not depend on the signs of singular vectors: norms, condition numbers, ranks, pseudo-inverses, eigenvalues of
// symmetric matrices. By one-sided Jacobi rotations: the columns of W = A V are made orthogonal, pair by pair; then their lengths are the
// singular values. Half the columns face the other half, so one step turns n/2 pairs at once; between steps the columns move on as players
// of a round-robin tournament do, and after n - 1 steps each has met each.
//
//   %s = aten::linalg_svdvals(%a)    ->    %w, %v = Loop(%a, I, ...)    %s = TopK(ReduceL2(%w))
//
// U and V themselves are refused: their signs are LAPACK's choice, a sum over a whole computation that no other algorithm repeats.
#include "lower/linalg_factor.h"
#include "lower/reduce.h"

namespace pt2onnx {
namespace {

constexpr const char* kVectors = "the signs of singular vectors and eigenvectors are LAPACK's arbitrary choice, which a model can't repeat";
constexpr const char* kInstead = "use what does not depend on them: svdvals, eigvalsh, pinv, matrix_norm, matrix_rank, a product like U @ V.mT by polar";

// A = W V^T: W's columns are orthogonal, V is too. float64, whatever A is. There may be a column of zeros more than A has.
struct Jacobi {
  Val w, v;      // [..., m, n], [..., n, n]
  Val length;    // [..., n], of W's columns: the singular values, in no order
  Val scale;     // [..., 1, 1], what A was divided by
};

Val Any(Onnx& b, Val truth) {
  const Val all = b.Concat({b.Flatten1D(b.Cast(truth, DType::I64)), b.Ints({0})}, 0);
  return b.Greater(b.ReduceMax(all, {0}), b.IntScalar(0));
}

Jacobi Orthogonalized(Onnx& b, Val a) {
  constexpr int64_t kSweeps = 30;
  const bool wide = a.dtype() == DType::F64;
  const double close = wide ? 4e-16 : 1e-10;  // cosine of two columns that count as orthogonal
  const double small = 1e-32;                 // product of two columns that are nothing beside the largest
  const int64_t last = a.rank() - 1;
  const SymExpr m = a.dim(-2), columns = a.dim(-1), h = FloorDiv(columns + 1, 2), n = h * 2;
  const DimVec batch = BatchDims(a);
  const DType dtype = DType::F64;
  const Val zero = b.Constant(0, dtype), one = b.Constant(1, dtype);

  // The largest element becomes 1, so that squares neither overflow nor vanish.
  const Val flat = b.Reshape(b.Abs(b.Cast(a, dtype)), Joined(batch, DimVec{m * columns}));
  const Val largest = b.Unsqueeze(b.ReduceMax(b.Concat({flat, b.Zeros(Joined(batch, DimVec{1}), dtype)}, -1), {last - 1}, true), {-1});
  const Val scale = b.Where(b.Equal(largest, zero), one, largest);
  Val w = b.Cast(a, dtype) / scale;
  if (!(n == columns)) w = b.Concat({w, b.Zeros(Joined(batch, DimVec{m, n - columns}), dtype)}, last);
  w = Known(b, w, Joined(batch, DimVec{m, n}));
  const Val v = ToBatch(b, UnitMatrix(b, n, n, dtype), batch);

  // 0 | 1 2 .. h-1 / h .. n-1: the first stays, the others go round.
  const Val place = Iota(b, n), step = b.IntScalar(1), half = b.Int(h);
  const Val round = b.Where(b.Less(place, half), place - step, b.Where(b.Equal(place, b.Int(n - 1)), half - step, place + step));
  const Val next = b.Where(b.Equal(place, b.IntScalar(0)), place, b.Where(b.Equal(place, step), half, round));

  const SymExpr steps = Max(n - 1, 0);
  const Val quiet = b.IntScalar(0), needed = b.Int(steps);
  const Vals out = b.Loop(b.Int(steps * kSweeps), {}, {w, v, quiet}, [&](Onnx&, Val, const Vals& now) -> LoopStep {
    const auto left = [&](Val x) { return b.Slice(x, last, 0, h); };
    const auto right = [&](Val x) { return b.Slice(x, last, h, n); };
    const Val p = left(now[0]), q = right(now[0]);
    const Val alpha = b.ReduceSumSquare(p, {last - 1}, true), beta = b.ReduceSumSquare(q, {last - 1}, true), gamma = b.ReduceSum(p * q, {last - 1}, true);
    const Val bound = b.Max(b.Sqrt(alpha) * b.Sqrt(beta) * close, b.Constant(small, dtype));
    const Val turn = b.Greater(b.Abs(gamma), bound);
    // tan of the angle that makes p and q orthogonal, the smaller one
    const Val zeta = (beta - alpha) / (b.Where(turn, gamma, one) * 2);
    const Val t = b.Where(b.Less(zeta, zero), b.Constant(-1, dtype), one) / (b.Abs(zeta) + b.Sqrt(zeta * zeta + 1));
    const Val c = b.Where(turn, b.Reciprocal(b.Sqrt(t * t + 1)), one), s = b.Where(turn, c * t, zero);
    const auto rotated = [&](Val x) {
      const Val turned = b.Gather(b.Concat({c * left(x) - s * right(x), s * left(x) + c * right(x)}, last), next, last);
      return Known(b, turned, DimVec(x.shape()));
    };
    const Val still = b.Where(Any(b, turn), b.IntScalar(0), now[2] + b.IntScalar(1));
    return {b.Less(still, needed), {rotated(now[0]), rotated(now[1]), still}, {}};
  });
  w = Known(b, out[0], DimVec(w.shape()));
  return {w, Known(b, out[1], DimVec(v.shape())), b.ReduceL2(w, {last - 1}), scale};
}

// Of a matrix with more columns than rows the transposed one has the same singular values and fewer columns.
bool IsWide(Val a) { return a.dim(-2).IsConst() && a.dim(-1).IsConst() && a.dim(-2).Const() < a.dim(-1).Const(); }

// f(s) of each singular value, where s is above the bound; else 0. Columns of A's scale.
Val Above(Onnx& b, Val s, Val bound, Val f) { return b.Where(b.Greater(s, bound), f, b.Constant(0, s.dtype())); }
Val OverRows(Onnx& b, Val factor) { return b.Unsqueeze(factor, {-2}); }

// ---- Symmetric matrices, of which one triangle is read ----------------------------------------------------------------------------------------

Val Symmetric(Onnx& b, Val a, bool upper = false) { return upper ? Upper(b, a) + Transposed(b, Upper(b, a, 1)) : Lower(b, a) + Transposed(b, Lower(b, a, -1)); }

// Ascending. A + c, with c at least A's norm, has no negative eigenvalue, so its singular values are its eigenvalues.
Val Eigenvalues(Onnx& b, Val a, std::string_view uplo) {
  const Val x = b.Cast(Symmetric(b, a, uplo == "U" || uplo == "u"), DType::F64);
  const SymExpr n = a.dim(-1);
  const Val sums = b.Concat({b.ReduceL1(x, {a.rank() - 1}), b.Zeros(Joined(BatchDims(a), DimVec{1}), DType::F64)}, -1);
  const Val c = b.ReduceMax(sums, {a.rank() - 2}, true);
  const Val shifted = x + UnitMatrix(b, n, n, DType::F64) * b.Unsqueeze(c, {-1});
  const Val values = SingularValues(b, Known(b, shifted, DimVec(a.shape()))) - c;
  const Val reversed = b.Gather(values, Progression(b, n - 1, -1, n), values.rank() - 1);
  return b.Cast(reversed, a.dtype());
}

// ---- Ranks and pseudo-inverses -----------------------------------------------------------------------------------------------------------------

struct Tolerance {
  OptVal absolute, relative;  // of any shape that broadcasts to the batch
};
// max(absolute, relative * largest). With no absolute one the relative one is eps * max(m, n) unless given.
Val Bound(Onnx& b, Val a, Val largest, const Tolerance& tolerance) {
  const DType dtype = largest.dtype();
  const Val zero = b.Constant(0, dtype);
  const OptVal absolute = tolerance.absolute ? OptVal(b.Cast(*tolerance.absolute, dtype)) : OptVal();
  const Val eps = b.Cast(b.Int(Max(a.dim(-2), a.dim(-1))), dtype) * (a.dtype() == DType::F64 ? 0x1p-52 : 0x1p-23);
  const Val usual = absolute ? b.Where(b.Greater(*absolute, zero), zero, eps) : eps;
  const Val relative = (tolerance.relative ? b.Cast(*tolerance.relative, dtype) : usual) * largest;
  return absolute ? b.Max(*absolute, relative) : relative;
}
Val LargestOf(Onnx& b, Val s) {
  DimVec one(s.shape());
  one.back() = 1;
  return b.ReduceMax(b.Concat({s, b.Zeros(one, s.dtype())}, -1), {s.rank() - 1});
}

Val Rank(Onnx& b, Val a, const Tolerance& tolerance, bool hermitian) {
  const Val s = SingularValues(b, hermitian ? Symmetric(b, a) : a);
  const Val bound = Bound(b, a, LargestOf(b, s), tolerance);
  return b.ReduceSum(b.Cast(b.Greater(s, b.Unsqueeze(bound, {-1})), DType::I64), {-1});
}

// V (1/s^2) W^T, without what is below the bound
Val PseudoInverse(Onnx& b, Val a, const Tolerance& tolerance, bool hermitian) {
  const Val x = hermitian ? Symmetric(b, a) : a;
  const bool wide = IsWide(x);
  const Jacobi j = Orthogonalized(b, wide ? Transposed(b, x) : x);
  const Val scale = b.Squeeze(j.scale, {-1});
  const Val s = j.length * scale;
  const Val bound = b.Unsqueeze(Bound(b, a, LargestOf(b, s), tolerance), {-1});
  const Val kept = Above(b, s, bound, b.Reciprocal(j.length));
  const SymExpr n = wide ? x.dim(-2) : x.dim(-1);
  const Val v = b.Slice(j.v * OverRows(b, kept), a.rank() - 2, 0, n), u = j.w * OverRows(b, kept) / j.scale;
  return b.Cast(wide ? b.MatMul(u, Transposed(b, v)) : b.MatMul(v, Transposed(b, u)), a.dtype());
}

OptVal Number(Onnx& b, const std::optional<double>& x) { return x ? OptVal(b.Constant(*x, DType::F64)) : OptVal(); }

// ---- Condition numbers, roots ------------------------------------------------------------------------------------------------------------------


// largest / smallest, or the other way round
Val SpectralCondition(Onnx& b, Val a, bool inverse) {
  const Val s = SingularValues(b, a);
  const Val largest = b.Select(s, s.rank() - 1, 0), smallest = b.Select(s, s.rank() - 1, Min(a.dim(-2), a.dim(-1)) - 1);
  return inverse ? smallest / largest : largest / smallest;
}
// |A| |A^-1|, infinite if A has no inverse
template <class Norm>
Val Condition(Onnx& b, Val a, Norm norm) {
  const Solution inverse = Inverse(b, a);
  const Val singular = b.Greater(InfoOf(b, b.Equal(DiagonalOf(b, inverse.lu), b.Constant(0, a.dtype()))), b.Constant(0, DType::I32));
  return norm(a) * b.Where(singular, b.Constant(INFINITY, a.dtype()), norm(inverse.x));
}
Val Cond(Onnx& b, Val a, const OptScalar& p) {
  if (a.numel() == 0) return b.Zeros(ResultShape(b), a.dtype());
  if (!p || std::abs(p->AsDouble()) == 2) return SpectralCondition(b, a, p && p->AsDouble() < 0);
  return Condition(b, a, [&](Val x) { return MatrixNorm(b, x, p->AsDouble(), {-2, -1}, false); });
}
Val NamedCond(Onnx& b, Val a, std::string_view p) {
  if (a.numel() == 0) return b.Zeros(ResultShape(b), a.dtype());
  if (p == "fro") return Condition(b, a, [&](Val x) { return b.ReduceL2(x, {-2, -1}); });
  return Condition(b, a, [&](Val x) { return b.ReduceSum(SingularValues(b, x), {-1}); });
}

// V sqrt(s) V^T
Val RootOf(Onnx& b, Val a) {
  const Jacobi j = Orthogonalized(b, Symmetric(b, a));
  const Val v = b.Slice(j.v, a.rank() - 2, 0, a.dim(-1));
  return b.Cast(b.MatMul(v * OverRows(b, b.Sqrt(j.length)), Transposed(b, v)) * b.Sqrt(j.scale), a.dtype());
}
// A = U H: U = W / s V^T, H = V s V^T
Vals Polar(Onnx& b, Val a) {
  const Jacobi j = Orthogonalized(b, a);
  const Val v = b.Slice(j.v, a.rank() - 2, 0, a.dim(-1));
  const Val inverse = Above(b, j.length, b.Constant(0, DType::F64), b.Reciprocal(j.length));
  return {b.MatMul(j.w * OverRows(b, inverse), Transposed(b, v)), b.MatMul(v * OverRows(b, j.length), Transposed(b, v)) * j.scale};
}

}  // namespace

Val SingularValues(Onnx& b, Val a) {
  const Jacobi j = Orthogonalized(b, IsWide(a) ? Transposed(b, a) : a);
  const SymExpr k = Min(a.dim(-2), a.dim(-1));
  const Val sorted = b.TopK(j.length, b.Int1(k)).Values;
  return b.Cast(Known(b, sorted * b.Squeeze(j.scale, {-1}), Joined(BatchDims(a), DimVec{k})), a.dtype());
}

void LinalgSvdRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::linalg_svdvals& op) { return SingularValues(b, op.A); });
  OnEach<aten::linalg_svd, aten::_linalg_svd>(
      r, [](Onnx& b, const auto& op) { return Vals{LaterUnsupported(b, 0, kVectors, kInstead), SingularValues(b, op.A), LaterUnsupported(b, 2, kVectors, kInstead)}; });
  r.On([](Onnx& b, const aten::svd& op) {
    if (!op.compute_uv) return Vals{b.Zeros(ResultShape(b, 0), op.self.dtype()), SingularValues(b, op.self), b.Zeros(ResultShape(b, 2), op.self.dtype())};
    return Vals{LaterUnsupported(b, 0, kVectors, kInstead), SingularValues(b, op.self), LaterUnsupported(b, 2, kVectors, kInstead)};
  });

  r.On([](Onnx& b, const aten::linalg_eigvalsh& op) { return Eigenvalues(b, op.self, op.UPLO); });
  r.On([](Onnx& b, const aten::linalg_eigh& op) { return Vals{Eigenvalues(b, op.self, op.UPLO), LaterUnsupported(b, 1, kVectors, kInstead)}; });
  r.On([](Onnx& b, const aten::_linalg_eigh& op) {
    return Vals{Eigenvalues(b, op.A, op.UPLO), op.compute_v ? LaterUnsupported(b, 1, kVectors, kInstead) : b.Zeros(ResultShape(b, 1), op.A.dtype())};
  });

  r.On([](Onnx& b, const aten::linalg_matrix_rank& op) { return Rank(b, op.self, {b.Constant(op.tol, DType::F64), b.Constant(0, DType::F64)}, op.hermitian); });
  r.On([](Onnx& b, const aten::linalg_matrix_rank_tol_tensor& op) { return Rank(b, op.input, {op.tol, b.Constant(0, DType::F64)}, op.hermitian); });
  r.On([](Onnx& b, const aten::linalg_matrix_rank_atol_rtol_float& op) { return Rank(b, op.self, {Number(b, op.atol), Number(b, op.rtol)}, op.hermitian); });
  r.On([](Onnx& b, const aten::linalg_matrix_rank_atol_rtol_tensor& op) { return Rank(b, op.input, {op.atol, op.rtol}, op.hermitian); });

  r.On([](Onnx& b, const aten::linalg_pinv& op) { return PseudoInverse(b, op.self, {{}, b.Constant(op.rcond, DType::F64)}, op.hermitian); });
  r.On([](Onnx& b, const aten::pinverse& op) { return PseudoInverse(b, op.self, {{}, b.Constant(op.rcond, DType::F64)}, false); });
  r.On([](Onnx& b, const aten::linalg_pinv_rcond_tensor& op) { return PseudoInverse(b, op.self, {{}, op.rcond}, op.hermitian); });
  r.On([](Onnx& b, const aten::linalg_pinv_atol_rtol_float& op) { return PseudoInverse(b, op.self, {Number(b, op.atol), Number(b, op.rtol)}, op.hermitian); });
  r.On([](Onnx& b, const aten::linalg_pinv_atol_rtol_tensor& op) { return PseudoInverse(b, op.self, {op.atol, op.rtol}, op.hermitian); });

  r.On([](Onnx& b, const aten::linalg_cond& op) { return Cond(b, op.self, op.p); });
  r.On([](Onnx& b, const aten::linalg_cond_p_str& op) { return NamedCond(b, op.self, op.p); });
  r.On([](Onnx& b, const aten::linalg_matrix_sqrth& op) { return RootOf(b, op.self); });
  r.On([](Onnx& b, const aten::linalg_polar& op) {
    Vals out = Polar(b, op.A);
    for (Val& x : out) x = b.Cast(x, op.A.dtype());
    return out;
  });
}

}  // namespace pt2onnx
