// Reductions: sums, means, products, extremes, variances, norms. No dims means all of them; `dtype` is what the elements are cast to first.
//
//   %y = aten::sum.dim_IntList(%x : bool[s0, 4], [1])    ->    %y = ReduceSum(Cast(%x, i64), axes=[1])
//   %y = aten::any.dim(%x : f32[s0, 4], -1)              ->    %y = ReduceMax(Cast(%x, bool), axes=[-1])
#include "lower/reduce.h"

#include "ir/sym_facts.h"
#include "lower/linalg_factor.h"

namespace pt2onnx {

IntVec ReducedAxes(const std::optional<Ints>& dim, int64_t rank) {
  if (rank == 0) return {};
  if (!dim || dim->empty()) return Axes(0, rank);
  IntVec axes;
  for (int64_t d : *dim) axes.push_back(Axis(d, rank));
  return axes;
}
IntVec ReducedAxes(const std::optional<int64_t>& dim, int64_t rank) {
  return rank == 0 ? IntVec() : dim ? IntVec{Axis(*dim, rank)} : Axes(0, rank);
}

SymExpr CountAlong(Val x, const IntVec& axes) {
  SymExpr n = 1;
  for (int64_t axis : axes) n *= x.dim(axis);
  return n;
}

Extreme ExtremeAlong(Onnx& b, Val x, int64_t axis, bool largest, bool keepdim) {
  if (x.IsScalar()) return {x, b.IntScalar(0)};
  const auto squeezed = [&](Val y) { return keepdim ? y : b.Squeeze(y, {axis}); };
  // The smallest is the largest of what is negated: NaN must win here too.
  const bool negated = !largest && IsFloat(x.dtype());
  const TopKOut top = b.TopK(negated ? b.Neg(x) : x, b.Ints({1}), {.axis = axis, .largest = largest || negated});
  const Val value = squeezed(top.Values);
  return {negated ? b.Neg(value) : value, squeezed(top.Indices)};
}

Val ExtremeOver(Onnx& b, Val x, IntVec axes, bool largest, bool keepdims) {
  if (axes.empty()) return x;
  if (x.dtype() == DType::Bool) return b.Cast(ExtremeOver(b, b.Cast(x, DType::U8), axes, largest, keepdims), DType::Bool);
  if (!IsFloat(x.dtype())) return largest ? b.ReduceMax(x, axes, keepdims) : b.ReduceMin(x, axes, keepdims);
  DimVec kept;
  for (int64_t d = 0; d < x.rank(); ++d) kept.push_back(std::find(axes.begin(), axes.end(), d) == axes.end() ? x.dim(d) : SymExpr(1));
  std::sort(axes.begin(), axes.end());
  const int64_t first = axes.front(), count = std::ssize(axes);
  // Neighbours are merged, so that one TopK will do.
  if (count > 1 && axes.back() - first + 1 == count) {
    const Val merged = b.Reshape(x, WithDims(x.shape(), first, count, {CountAlong(x, axes)}));
    const Val y = ExtremeAlong(b, merged, first, largest, false).value;
    return keepdims ? b.Reshape(y, kept) : y;
  }
  for (int64_t axis : axes) x = ExtremeAlong(b, x, axis, largest, true).value;
  return keepdims ? x : b.Squeeze(x, axes);
}

namespace {
// Of no elements 0 / 0, where ONNX Runtime's ReduceMean says 0.
Val MeanOver(Onnx& b, Val x, const IntVec& axes, bool keepdim) {
  const SymExpr n = CountAlong(x, axes);
  if (ProvablyPositive(n)) return b.ReduceMean(x, axes, keepdim);
  const DType wide = Accumulator(x.dtype());
  return b.Cast(b.ReduceSum(b.Cast(x, wide), axes, keepdim) / b.Number(n, wide), x.dtype());
}
}  // namespace

Variance VarianceOver(Onnx& b, Val x, const IntVec& axes, double correction, bool keepdims) {
  const DType dtype = x.dtype();
  x = b.Cast(x, Accumulator(dtype));
  const SymExpr n = CountAlong(x, axes);
  const Val mean = MeanOver(b, x, axes, true);
  const Val d = x - mean;
  const auto scaled = [&](Val squares) {
    if (n.IsConst()) return squares / b.Constant(std::max(static_cast<double>(n.Const()) - correction, 0.0), x.dtype());
    return squares / b.Max(b.Number(n, x.dtype()) - correction, b.Constant(0, x.dtype()));
  };
  const bool plain = correction == 0 && !axes.empty() && ProvablyPositive(n);
  const Val var = plain ? b.ReduceMean(d * d, axes, keepdims) : scaled(b.ReduceSumSquare(d, axes, keepdims));
  return {b.Cast(var, dtype), b.Cast(keepdims ? mean : b.Squeeze(mean, axes), dtype)};
}

Val Truth(Onnx& b, Val x) { return b.Cast(x, DType::Bool); }

namespace {
// Of bools any is the largest and all the smallest: ONNX has that from opset 20 on, ONNX Runtime where there are elements. Else any is a sum that is
// not 0, and all a product that is not: right of no elements too.
bool HasElements(Onnx& b, Val x, const IntVec& axes) { return b.opset() >= 20 && ProvablyPositive(CountAlong(x, axes)); }
}  // namespace

Val AnyOver(Onnx& b, Val x, const IntVec& axes, bool keepdim) {
  if (HasElements(b, x, axes)) return b.ReduceMax(Truth(b, x), axes, keepdim);
  return Truth(b, b.ReduceSum(b.Cast(Truth(b, x), DType::I32), axes, keepdim));
}

Val CountNumbers(Onnx& b, Val x, const IntVec& axes, bool keepdim) {
  return b.ReduceSum(b.Cast(b.Not(b.IsNaN(x)), DType::I64), axes, keepdim);
}

namespace {

using Dim = std::optional<Ints>;
constexpr std::nullopt_t kAll = std::nullopt;

// The elements in the dtype that the result is recorded with: integers are summed as int64, and `dtype` casts before.
Val InResultDType(Onnx& b, Val x) { return b.Cast(x, ResultDType(b)); }

Val Sum(Onnx& b, Val x, const Dim& dim, bool keepdim) { return b.ReduceSum(InResultDType(b, x), ReducedAxes(dim, x.rank()), keepdim); }

Val Mean(Onnx& b, Val x, const Dim& dim, bool keepdim) { return MeanOver(b, InResultDType(b, x), ReducedAxes(dim, x.rank()), keepdim); }

// NaN counts as 0, and not at all among the elements of the mean.
Val WithoutNaN(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.Where(b.IsNaN(x), b.Constant(0, x.dtype()), x) : x; }
Val NanSum(Onnx& b, Val x, const Dim& dim, bool keepdim) {
  return b.ReduceSum(b.Cast(WithoutNaN(b, x), ResultDType(b)), ReducedAxes(dim, x.rank()), keepdim);
}
Val NanMean(Onnx& b, Val x, const Dim& dim, bool keepdim) {
  x = InResultDType(b, x);
  const IntVec axes = ReducedAxes(dim, x.rank());
  return b.ReduceSum(WithoutNaN(b, x), axes, keepdim) / b.Cast(CountNumbers(b, x, axes, keepdim), x.dtype());
}

Val All(Onnx& b, Val x, const IntVec& axes, bool keepdim) {
  if (HasElements(b, x, axes)) return b.ReduceMin(Truth(b, x), axes, keepdim);
  return Truth(b, b.ReduceProd(b.Cast(Truth(b, x), DType::I32), axes, keepdim));
}
// any.dims and all.dims take an empty list at its word.
IntVec ListedAxes(const Dim& dim, int64_t rank) { return dim && dim->empty() ? IntVec() : ReducedAxes(dim, rank); }

Val CountNonzero(Onnx& b, Val x, const IntVec& axes) { return b.ReduceSum(b.Cast(Truth(b, x), DType::I64), axes); }

// The first one along dim; of the flattened tensor where there is no dim.
Val ArgExtreme(Onnx& b, Val x, std::optional<int64_t> dim, bool keepdim, bool largest) {
  if (x.IsScalar()) return b.IntScalar(0);
  const Val along = dim ? x : b.Flatten1D(x);
  const int64_t axis = dim ? Axis(*dim, x.rank()) : 0;
  if (IsFloat(x.dtype())) {
    const Val index = ExtremeAlong(b, along, axis, largest, keepdim && dim).index;
    return keepdim && !dim ? b.Reshape(index, ResultShape(b)) : index;
  }
  const Val index = largest ? b.ArgMax(along, {.axis = axis, .keepdims = keepdim && dim}) : b.ArgMin(along, {.axis = axis, .keepdims = keepdim && dim});
  return keepdim && !dim ? b.Reshape(index, ResultShape(b)) : index;
}

// Summed down to a shape that broadcasts to self's.
Val SumToSize(Onnx& b, Val self) {
  const Val x = InResultDType(b, self);
  const Dims to = ResultShape(b);
  const int64_t lead = x.rank() - std::ssize(to);
  IntVec kept;
  for (int64_t d = lead; d < x.rank(); ++d)
    if (to[static_cast<size_t>(d - lead)] == 1 && !(x.dim(d) == 1)) kept.push_back(d);
  return b.ReduceSum(b.ReduceSum(x, kept, true), Axes(0, lead));
}

Vals BothExtremes(Onnx& b, Val x, std::optional<int64_t> dim, bool keepdim) {
  const IntVec axes = ReducedAxes(dim, x.rank());
  return {ExtremeOver(b, x, axes, false, keepdim), ExtremeOver(b, x, axes, true, keepdim)};
}

template <class T>
double Correction(const T& unbiased) {
  return unbiased ? 1 : 0;
}
double Correction(const OptScalar& correction) { return correction ? correction->AsDouble() : 1; }

Val Var(Onnx& b, Val x, const Dim& dim, double correction, bool keepdim) {
  return VarianceOver(b, x, ReducedAxes(dim, x.rank()), correction, keepdim).var;
}
Vals VarMean(Onnx& b, Val x, const Dim& dim, double correction, bool keepdim) {
  const Variance out = VarianceOver(b, x, ReducedAxes(dim, x.rank()), correction, keepdim);
  return {out.var, out.mean};
}
Val Std(Onnx& b, Val x, const Dim& dim, double correction, bool keepdim) { return b.Sqrt(Var(b, x, dim, correction, keepdim)); }
Vals StdMean(Onnx& b, Val x, const Dim& dim, double correction, bool keepdim) {
  const Vals out = VarMean(b, x, dim, correction, keepdim);
  return {b.Sqrt(out[0]), out[1]};
}

// log(sum(exp(x)))
Val LogSumExp(Onnx& b, Val x, const Dim& dim, bool keepdim) {
  return b.ReduceLogSumExp(InResultDType(b, x), ReducedAxes(dim, x.rank()), keepdim);
}

// dims[0] and dims[1] become the last two.
Val MatricesAlong(Onnx& b, Val x, const IntVec& dims) {
  return b.Transpose(x, MoveDims(x.rank(), {Axis(dims[0], x.rank()), Axis(dims[1], x.rank())}, {x.rank() - 2, x.rank() - 1}));
}

// ---- Norms ----------------------------------------------------------------------------------------------------------------------------

Val NormOver(Onnx& b, Val x, double p, const IntVec& axes, bool keepdim) {
  if (!std::isinf(p)) return VectorNorm(b, x, p, axes, keepdim);
  return ExtremeOver(b, b.Abs(x), axes, p > 0, keepdim);
}
Val Norm(Onnx& b, Val x, const Scalar& p, const Dim& dim, bool keepdim) {
  return NormOver(b, InResultDType(b, x), p.AsDouble(), ReducedAxes(dim, x.rank()), keepdim);
}

Val NamedMatrixNorm(Onnx& b, Val self, std::string_view ord, const Dim& dim, bool keepdim) {
  const Val x = InResultDType(b, self);
  const IntVec axes = dim && !dim->empty() ? IntVec(*dim) : IntVec{-2, -1};
  if (ord == "fro") return NormOver(b, x, 2, ReducedAxes(Ints(axes), x.rank()), keepdim);
  const Val sum = b.ReduceSum(SingularValues(b, MatricesAlong(b, x, axes)), {-1});
  return keepdim ? b.Unsqueeze(sum, ReducedAxes(Ints(axes), x.rank())) : sum;
}

Val LinalgNorm(Onnx& b, const aten::linalg_norm& op) {
  const int64_t dims = op.dim ? std::ssize(*op.dim) : op.ord ? op.self.rank() : 1;
  const bool matrix = op.ord && dims == 2;
  if (!matrix) return Norm(b, op.self, op.ord.value_or(2), op.dim, op.keepdim);
  return MatrixNorm(b, InResultDType(b, op.self), op.ord->AsDouble(), op.dim ? IntVec(*op.dim) : IntVec{0, 1}, op.keepdim);
}

}  // namespace

Val MatrixNorm(Onnx& b, Val x, double p, const IntVec& dims, bool keepdim) {
  const bool rows = std::isinf(p);
  const int64_t summed = Axis(dims[rows ? 1 : 0], x.rank()), taken = Axis(dims[rows ? 0 : 1], x.rank());
  if (std::abs(p) == 2) {
    const Val s = ExtremeOver(b, SingularValues(b, MatricesAlong(b, x, dims)), {x.rank() - 2}, p > 0, false);
    return keepdim ? b.Unsqueeze(s, {summed, taken}) : s;
  }
  const Val out = ExtremeOver(b, b.ReduceL1(x, {summed}, true), {taken}, p > 0, true);
  return keepdim ? out : b.Squeeze(out, {summed, taken});
}

void ReduceRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::sum& op) { return Sum(b, op.self, kAll, false); });
  r.On([](Onnx& b, const aten::sum_dim_IntList& op) { return Sum(b, op.self, op.dim, op.keepdim); });
  r.On([](Onnx& b, const aten::mean& op) { return Mean(b, op.self, kAll, false); });
  r.On([](Onnx& b, const aten::mean_dim& op) { return Mean(b, op.self, op.dim, op.keepdim); });
  r.On([](Onnx& b, const aten::nansum& op) { return NanSum(b, op.self, op.dim, op.keepdim); });
  r.On([](Onnx& b, const aten::nanmean& op) { return NanMean(b, op.self, op.dim, op.keepdim); });
  r.On([](Onnx& b, const aten::prod& op) { return b.ReduceProd(InResultDType(b, op.self), Axes(0, op.self.rank())); });
  r.On([](Onnx& b, const aten::prod_dim_int& op) {
    return b.ReduceProd(InResultDType(b, op.self), ReducedAxes(std::optional(op.dim), op.self.rank()), op.keepdim);
  });
  r.On([](Onnx& b, const aten::sum_to_size& op) { return SumToSize(b, op.self); });
  r.On([](Onnx& b, const aten::trace& op) {
    const SymExpr rows = op.self.dim(0), cols = op.self.dim(1);
    const Val diagonal = b.Where(OnDiagonal(b, rows, cols, 0), InResultDType(b, op.self), b.Constant(0, ResultDType(b)));
    return b.ReduceSum(diagonal, {0, 1});
  });

  r.On([](Onnx& b, const aten::amax& op) { return ExtremeOver(b, op.self, ReducedAxes(Dim(op.dim), op.self.rank()), true, op.keepdim); });
  r.On([](Onnx& b, const aten::amin& op) { return ExtremeOver(b, op.self, ReducedAxes(Dim(op.dim), op.self.rank()), false, op.keepdim); });
  r.On([](Onnx& b, const aten::max& op) { return ExtremeOver(b, op.self, Axes(0, op.self.rank()), true, false); });
  r.On([](Onnx& b, const aten::min& op) { return ExtremeOver(b, op.self, Axes(0, op.self.rank()), false, false); });
  r.On([](Onnx& b, const aten::max_dim& op) -> Vals {
    const Extreme out = ExtremeAlong(b, op.self, Axis(op.dim, op.self.rank()), true, op.keepdim);
    return {out.value, out.index};
  });
  r.On([](Onnx& b, const aten::min_dim& op) -> Vals {
    const Extreme out = ExtremeAlong(b, op.self, Axis(op.dim, op.self.rank()), false, op.keepdim);
    return {out.value, out.index};
  });
  r.On([](Onnx& b, const aten::aminmax& op) { return BothExtremes(b, op.self, op.dim, op.keepdim); });
  r.On([](Onnx& b, const aten::_aminmax& op) { return BothExtremes(b, op.self, {}, false); });
  r.On([](Onnx& b, const aten::_aminmax_dim& op) { return BothExtremes(b, op.self, op.dim, op.keepdim); });
  r.On([](Onnx& b, const aten::argmax& op) { return ArgExtreme(b, op.self, op.dim, op.keepdim, true); });
  r.On([](Onnx& b, const aten::argmin& op) { return ArgExtreme(b, op.self, op.dim, op.keepdim, false); });

  r.On([](Onnx& b, const aten::any& op) { return AnyOver(b, op.self, Axes(0, op.self.rank()), false); });
  r.On([](Onnx& b, const aten::any_dim& op) { return AnyOver(b, op.self, ReducedAxes(std::optional(op.dim), op.self.rank()), op.keepdim); });
  r.On([](Onnx& b, const aten::any_dims& op) { return AnyOver(b, op.self, ListedAxes(op.dim, op.self.rank()), op.keepdim); });
  r.On([](Onnx& b, const aten::_is_any_true& op) { return AnyOver(b, op.self, Axes(0, op.self.rank()), false); });
  r.On([](Onnx& b, const aten::all& op) { return All(b, op.self, Axes(0, op.self.rank()), false); });
  r.On([](Onnx& b, const aten::all_dim& op) { return All(b, op.self, ReducedAxes(std::optional(op.dim), op.self.rank()), op.keepdim); });
  r.On([](Onnx& b, const aten::all_dims& op) { return All(b, op.self, ListedAxes(op.dim, op.self.rank()), op.keepdim); });
  r.On([](Onnx& b, const aten::_is_all_true& op) { return All(b, op.self, Axes(0, op.self.rank()), false); });
  r.On([](Onnx& b, const aten::count_nonzero& op) { return CountNonzero(b, op.self, ReducedAxes(op.dim, op.self.rank())); });
  r.On([](Onnx& b, const aten::count_nonzero_dim_IntList& op) { return CountNonzero(b, op.self, ReducedAxes(Dim(op.dim), op.self.rank())); });

  r.On([](Onnx& b, const aten::var& op) { return Var(b, op.self, kAll, Correction(op.unbiased), false); });
  r.On([](Onnx& b, const aten::var_dim& op) { return Var(b, op.self, op.dim, Correction(op.unbiased), op.keepdim); });
  r.On([](Onnx& b, const aten::var_correction& op) { return Var(b, op.self, op.dim, Correction(op.correction), op.keepdim); });
  r.On([](Onnx& b, const aten::std_& op) { return Std(b, op.self, kAll, Correction(op.unbiased), false); });
  r.On([](Onnx& b, const aten::std_dim& op) { return Std(b, op.self, op.dim, Correction(op.unbiased), op.keepdim); });
  r.On([](Onnx& b, const aten::std_correction& op) { return Std(b, op.self, op.dim, Correction(op.correction), op.keepdim); });
  r.On([](Onnx& b, const aten::var_mean& op) { return VarMean(b, op.self, kAll, Correction(op.unbiased), false); });
  r.On([](Onnx& b, const aten::var_mean_dim& op) { return VarMean(b, op.self, op.dim, Correction(op.unbiased), op.keepdim); });
  r.On([](Onnx& b, const aten::var_mean_correction& op) { return VarMean(b, op.self, op.dim, Correction(op.correction), op.keepdim); });
  r.On([](Onnx& b, const aten::std_mean& op) { return StdMean(b, op.self, kAll, Correction(op.unbiased), false); });
  r.On([](Onnx& b, const aten::std_mean_dim& op) { return StdMean(b, op.self, op.dim, Correction(op.unbiased), op.keepdim); });
  r.On([](Onnx& b, const aten::std_mean_correction& op) { return StdMean(b, op.self, op.dim, Correction(op.correction), op.keepdim); });

  OnEach<aten::logsumexp, aten::special_logsumexp>(r, [](Onnx& b, const auto& op) { return LogSumExp(b, op.self, op.dim, op.keepdim); });

  r.On([](Onnx& b, const aten::norm_Scalar& op) { return Norm(b, op.self, op.p, kAll, false); });
  r.On([](Onnx& b, const aten::norm_ScalarOpt_dtype& op) { return Norm(b, op.self, op.p.value_or(2), kAll, false); });
  OnEach<aten::norm_ScalarOpt_dim, aten::norm_ScalarOpt_dim_dtype>(
      r, [](Onnx& b, const auto& op) { return Norm(b, op.self, op.p.value_or(2), op.dim, op.keepdim); });
  r.On([](Onnx& b, const aten::frobenius_norm_dim& op) { return Norm(b, op.self, 2, op.dim, op.keepdim); });
  r.On([](Onnx& b, const aten::linalg_vector_norm& op) { return Norm(b, op.self, op.ord, op.dim, op.keepdim); });
  r.On([](Onnx& b, const aten::dist& op) {
    return NormOver(b, b.Cast(op.self, ResultDType(b)) - b.Cast(op.other, ResultDType(b)), op.p.AsDouble(),
                    Axes(0, std::max(op.self.rank(), op.other.rank())), false);
  });
  r.On<LinalgNorm>();
  r.On([](Onnx& b, const aten::linalg_norm_ord_str& op) { return NamedMatrixNorm(b, op.self, op.ord, op.dim, op.keepdim); });
  r.On([](Onnx& b, const aten::linalg_matrix_norm& op) { return MatrixNorm(b, InResultDType(b, op.self), op.ord.AsDouble(), IntVec(op.dim), op.keepdim); });
  r.On([](Onnx& b, const aten::nuclear_norm& op) { return NamedMatrixNorm(b, op.self, "nuc", kAll, op.keepdim); });
  r.On([](Onnx& b, const aten::nuclear_norm_dim& op) { return NamedMatrixNorm(b, op.self, "nuc", Dim(op.dim), op.keepdim); });
  r.On([](Onnx& b, const aten::linalg_matrix_norm_str_ord& op) { return NamedMatrixNorm(b, op.self, op.ord, op.dim, op.keepdim); });
}

}  // namespace pt2onnx
