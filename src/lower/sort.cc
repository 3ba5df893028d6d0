// Order: sort, topk, unique and what is read off a sorted row. TopK orders as PyTorch does: NaN above all numbers, equal values by index.
//
//   %v, %i = aten::sort(%x : f32[s0, n], 1)    ->    %v, %i = TopK(%x, n, axis=1, largest=0)
#include "ir/sym_facts.h"
#include "lower/reduce.h"

namespace pt2onnx {
namespace {

Extreme Sorted(Onnx& b, Val x, int64_t dim, bool descending) {
  if (x.IsScalar()) return {x, b.IntScalar(0)};
  const int64_t axis = Axis(dim, x.rank());
  const TopKOut out = b.TopK(x, b.Int1(x.dim(axis)), {.axis = axis, .largest = descending});
  return {out.Values, out.Indices};
}
Vals Both(const Extreme& x) { return {x.value, x.index}; }

// Sorted always: any order will do where none is asked for.
Vals TopK(Onnx& b, Val x, SymExpr k, int64_t dim, bool largest) {
  if (x.IsScalar()) return {x, b.IntScalar(0)};
  const TopKOut out = b.TopK(x, b.Int1(k), {.axis = Axis(dim, x.rank()), .largest = largest});
  return {out.Values, out.Indices};
}

// The last of the k smallest.
Extreme KthValue(Onnx& b, Val x, SymExpr k, int64_t dim, bool keepdim) {
  if (x.IsScalar()) return {x, b.IntScalar(0)};
  const int64_t axis = Axis(dim, x.rank());
  const TopKOut out = b.TopK(x, b.Int1(k), {.axis = axis, .largest = 0});
  const auto last = [&](Val y) { return keepdim ? b.Slice(y, axis, k - 1, INT64_MAX) : b.Select(y, axis, k - 1); };
  return {last(out.Values), last(out.Indices)};
}

// The lower one of two in the middle. A NaN is the median of its row, unless they are ignored: in ascending order the first one stands
// behind all numbers.
Extreme Median(Onnx& b, Val x, int64_t dim, bool keepdim, bool ignore_nan) {
  if (x.IsScalar()) return {x, b.IntScalar(0)};
  const int64_t axis = Axis(dim, x.rank());
  const SymExpr n = x.dim(axis), middle = FloorDiv(n - 1, 2);
  if (!IsFloat(x.dtype())) return KthValue(b, x, middle + 1, axis, keepdim);
  const Extreme sorted = Sorted(b, x, axis, false);
  const Val numbers = CountNumbers(b, x, {axis}, true);
  const Val place = ignore_nan ? (b.Max(numbers, b.IntScalar(1)) - 1) / 2 : b.Where(b.Less(numbers, b.Int(n)), numbers, b.Int(middle));
  const auto at = [&](Val y) {
    const Val found = b.GatherElements(y, place, {.axis = axis});
    return keepdim ? found : b.Squeeze(found, {axis});
  };
  return {at(sorted.value), at(sorted.index)};
}

// The smallest of the most frequent values, and where it occurs last: in a sorted row the first place with the highest count, and the last
// one of its run.
Extreme Mode(Onnx& b, Val self, int64_t dim, bool keepdim) {
  if (self.IsScalar()) return {self, b.IntScalar(0)};
  const int64_t axis = Axis(dim, self.rank()), last = self.rank() - 1;
  const Extreme sorted = Sorted(b, b.Transpose(self, MoveDims(self.rank(), {axis}, {last})), last, false);
  const Val alike = b.Equal(b.Unsqueeze(sorted.value, {last + 1}), b.Unsqueeze(sorted.value, {last}));
  const Val counts = b.Max(b.ReduceSum(b.Cast(alike, DType::I64), {last + 1}), b.IntScalar(1));  // NaN equals nothing
  const Val first = b.ArgMax(counts, {.axis = last});
  const Val end = first + b.ReduceMax(counts, {last}, true) - 1;
  const auto at = [&](Val y, Val place) {
    const Val found = b.Squeeze(b.GatherElements(y, place, {.axis = last}), {last});
    return keepdim ? b.Unsqueeze(found, {axis}) : found;
  };
  return {at(sorted.value, first), at(sorted.index, end)};
}

// ---- Quantiles ------------------------------------------------------------------------------------------------------------------------

// Between the elements at floor(r) and ceil(r) of the sorted row, r = q * (n - 1). n counts all elements, and a NaN among them is the answer;
// or only those that are not NaN.
Val Quantile(Onnx& b, Val self, Val q, std::optional<int64_t> dim, std::string_view interpolation, bool ignore_nan) {
  const DType dtype = self.dtype();
  const Val x = dim ? AtLeast1D(b, self) : b.Flatten1D(self);
  const int64_t axis = dim ? Axis(*dim, self.rank()) : 0;
  const Val sorted = Sorted(b, x, axis, false).value;
  const Val parts = LaidAlong(b, AtLeast1D(b, b.Cast(q, dtype)), axis, x.rank());
  Val rank = parts;
  if (ignore_nan) rank = parts * b.Cast(b.Max(CountNumbers(b, x, {axis}, true) - 1, b.IntScalar(0)), dtype);
  else rank = parts * b.Number(x.dim(axis) - 1, dtype);
  if (interpolation == "lower") rank = b.Floor(rank);
  if (interpolation == "higher") rank = b.Ceil(rank);
  if (interpolation == "nearest") rank = b.Round(rank);
  const auto at = [&](Val place) {
    const Val index = AsIndex(b, place);
    return ignore_nan ? b.GatherElements(sorted, index, {.axis = axis}) : b.Gather(sorted, b.Flatten1D(index), axis);
  };
  const Val floor = b.Floor(rank);
  Val y = at(floor);
  if (interpolation == "linear" || interpolation == "midpoint") {
    const Val weight = interpolation == "midpoint" ? b.Constant(0.5, dtype) : rank - floor;
    y = y + weight * (at(b.Ceil(rank)) - y);
  }
  if (!ignore_nan) y = b.Where(b.IsNaN(b.Slice(sorted, axis, -1, INT64_MAX)), b.Constant(NAN, dtype), y);
  return b.Reshape(q.IsScalar() ? y : b.Transpose(y, MoveDims(x.rank(), {axis}, {0})), ResultShape(b));
}

// ---- Unique ---------------------------------------------------------------------------------------------------------------------------

// What was not asked for is recorded as empty.
OptVals Asked(Onnx& b, Val values, Val inverse, Val counts) {
  const auto asked = [&](size_t i) { return ResultShape(b, i).size() != 1 || !(ResultShape(b, i)[0] == 0); };
  const Val empty = b.Zeros({0}, DType::I64);
  return {values, asked(1) ? b.Reshape(inverse, ResultShape(b, 1)) : empty, asked(2) ? counts : empty};
}

OptVals Unique(Onnx& b, Val x, std::optional<int64_t> axis) {
  const UniqueOut out = b.Unique(x, {.axis = axis});
  return Asked(b, out.Y, out.inverse_indices, out.counts);
}

// Each run of equal slices once. A run starts at the first slice and at each one that differs from the slice before it.
OptVals UniqueConsecutive(Onnx& b, Val self, std::optional<int64_t> dim) {
  const Val x = dim ? AtLeast1D(b, self) : b.Flatten1D(self);
  const int64_t axis = dim ? Axis(*dim, self.rank()) : 0;
  const SymExpr n = x.dim(axis);
  IntVec others = Axes(0, x.rank());
  others.erase(others.begin() + axis);
  const Val changed = AnyOver(b, b.Not(b.Equal(b.Slice(x, axis, 1, INT64_MAX), b.Slice(x, axis, 0, -1))), others, false);
  const Val first = b.Full({ProvablyPositive(n) ? SymExpr(1) : Min(n, 1)}, true, DType::Bool);
  const Val starts = b.Concat({first, changed}, 0);
  const Val places = b.Squeeze(b.NonZero(starts), {0});
  const Val ends = b.Concat({b.Slice(places, 0, 1, INT64_MAX), b.Slice(b.Int1(n), 0, 0, ProvablyPositive(n) ? SymExpr(1) : Min(n, 1))}, 0);
  const Val inverse = b.CumSum(b.Cast(starts, DType::I64), b.IntScalar(0)) - 1;
  return Asked(b, b.Compress(x, starts, {.axis = axis}), inverse, ends - places);
}

}  // namespace

void SortRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::sort& op) { return Both(Sorted(b, op.self, op.dim, op.descending)); });
  r.On([](Onnx& b, const aten::sort_stable& op) { return Both(Sorted(b, op.self, op.dim, op.descending)); });
  r.On([](Onnx& b, const aten::argsort& op) { return Sorted(b, op.self, op.dim, op.descending).index; });
  r.On([](Onnx& b, const aten::argsort_stable& op) { return Sorted(b, op.self, op.dim, op.descending).index; });
  r.On([](Onnx& b, const aten::msort& op) { return Sorted(b, op.self, 0, false).value; });
  r.On([](Onnx& b, const aten::topk& op) { return TopK(b, op.self, op.k, op.dim, op.largest); });
  r.On([](Onnx& b, const aten::kthvalue& op) { return Both(KthValue(b, op.self, op.k, op.dim, op.keepdim)); });
  r.On([](Onnx& b, const aten::median& op) { return Median(b, b.Flatten1D(op.self), 0, false, false).value; });
  r.On([](Onnx& b, const aten::median_dim& op) { return Both(Median(b, op.self, op.dim, op.keepdim, false)); });
  r.On([](Onnx& b, const aten::nanmedian& op) { return Median(b, b.Flatten1D(op.self), 0, false, true).value; });
  r.On([](Onnx& b, const aten::nanmedian_dim& op) { return Both(Median(b, op.self, op.dim, op.keepdim, true)); });
  r.On([](Onnx& b, const aten::mode& op) { return Both(Mode(b, op.self, op.dim, op.keepdim)); });

  r.On([](Onnx& b, const aten::quantile& op) { return Quantile(b, op.self, op.q, op.dim, op.interpolation, false); });
  r.On([](Onnx& b, const aten::quantile_scalar& op) {
    return Quantile(b, op.self, b.Constant(op.q, op.self.dtype()), op.dim, op.interpolation, false);
  });
  r.On([](Onnx& b, const aten::nanquantile& op) { return Quantile(b, op.self, op.q, op.dim, op.interpolation, true); });
  r.On([](Onnx& b, const aten::nanquantile_scalar& op) {
    return Quantile(b, op.self, b.Constant(op.q, op.self.dtype()), op.dim, op.interpolation, true);
  });

  r.On([](Onnx& b, const aten::_unique2& op) { return Unique(b, op.self, {}); });
  r.On([](Onnx& b, const aten::unique_dim& op) { return Unique(b, op.self, Axis(op.dim, op.self.rank())); });
  r.On([](Onnx& b, const aten::unique_consecutive& op) { return UniqueConsecutive(b, op.self, op.dim); });
  r.On([](Onnx& b, const aten::unique_dim_consecutive& op) { return UniqueConsecutive(b, op.self, op.dim); });
}

}  // namespace pt2onnx
