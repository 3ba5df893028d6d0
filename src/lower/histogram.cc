// Counts in bins, and reductions of segments.
//
//   %h, %e = aten::histogram.bins_tensor(%x, %edges)    ->    bin of x = how many edges are at most x, less one; then ScatterElements adds
#include "lower/reduce.h"

namespace pt2onnx {
namespace {

// bins + 1 edges from lo to hi: counted from both ends, as torch.linspace does.
Val EvenEdges(Onnx& b, Val lo, Val hi, int64_t bins) {
  const DType dtype = lo.dtype();
  const Val flat = b.Equal(lo, hi);
  lo = b.Where(flat, lo - 0.5, lo);
  hi = b.Where(flat, hi + 0.5, hi);
  const Val step = (hi - lo) / b.Constant(bins, dtype);
  std::vector<double> from_lo, from_hi, first;
  for (int64_t i = 0; i <= bins; ++i) {
    first.push_back(i < (bins + 1) / 2);
    from_lo.push_back(static_cast<double>(i));
    from_hi.push_back(static_cast<double>(bins - i));
  }
  const Val mask = b.Tensor({bins + 1}, first, DType::Bool);
  return b.Where(mask, lo + step * b.Tensor({bins + 1}, from_lo, dtype), hi - step * b.Tensor({bins + 1}, from_hi, dtype));
}

// Points are the rows of x [N, D]; edges of each column. The last bin is closed. density: divided by the sum and by each bin's volume.
Val CountInBins(Onnx& b, Val x, const Vals& edges, const OptVal& weight, bool density) {
  const DType dtype = x.dtype();
  OptVal flat, inside;
  DimVec shape;
  for (size_t d = 0; d < edges.size(); ++d) {
    const Val column = b.Select(x, 1, static_cast<int64_t>(d));
    const SymExpr bins = edges[d].dim(0) - 1;
    const Val last = b.Slice(edges[d], 0, -1, INT64_MAX), first = b.Slice(edges[d], 0, 0, 1);
    const Val below = b.ReduceSum(b.Cast(b.LessOrEqual(b.Unsqueeze(edges[d], {1}), column), DType::I64), {0});
    const Val bin = b.Max(b.Min(below - 1, b.Int(bins - 1)), b.IntScalar(0));
    const Val within = b.And(b.GreaterOrEqual(column, first), b.LessOrEqual(column, last));
    flat = flat ? *flat * b.Int(bins) + bin : bin;
    inside = inside ? b.And(*inside, within) : within;
    shape.push_back(bins);
  }
  Val counted = b.Cast(*inside, dtype);
  if (weight) counted = b.Where(*inside, b.Flatten1D(b.Cast(*weight, dtype)), b.Constant(0, dtype));
  Val hist = b.Reshape(ScatterAt(b, b.Zeros({Product(shape)}, dtype), 0, *flat, counted, "add"), shape);
  if (!density) return hist;
  const int64_t dims = std::ssize(shape);
  hist = hist / b.ReduceSum(hist, Axes(0, dims));
  for (size_t d = 0; d < edges.size(); ++d)
    hist = hist / LaidAlong(b, b.Slice(edges[d], 0, 1, INT64_MAX) - b.Slice(edges[d], 0, 0, -1), static_cast<int64_t>(d), dims);
  return hist;
}

// The edges of each column that only their number is known of: over the given ranges, or from the smallest to the largest value.
Vals EdgesOf(Onnx& b, Val x, const IntVec& bins, const std::optional<Doubles>& range) {
  Vals edges;
  for (size_t d = 0; d < bins.size(); ++d) {
    const Val column = b.Select(x, 1, static_cast<int64_t>(d));
    const auto bound = [&](bool largest) {
      if (range && !range->empty()) return b.Constant((*range)[2 * d + largest], x.dtype());
      return largest ? b.ReduceMax(column, {0}) : b.ReduceMin(column, {0});
    };
    edges.push_back(EvenEdges(b, bound(false), bound(true), bins[d]));
  }
  return edges;
}

Vals Histogram(Onnx& b, Val x, const Vals& edges, const OptVal& weight, bool density) {
  Vals out = {CountInBins(b, x, edges, weight, density)};
  out.insert(out.end(), edges.begin(), edges.end());
  return out;
}

Val Column(Onnx& b, Val x) { return b.Unsqueeze(b.Flatten1D(x), {1}); }
Val Points(Onnx& b, Val x) { return b.Reshape(x, {Product(x.shape().first(static_cast<size_t>(x.rank() - 1))), x.dim(-1)}); }

// ---- Segments -------------------------------------------------------------------------------------------------------------------------

// out[s] = initial (+) data[start of s : end of s] along axis, for each s; the dims before axis have segments of their own.
Val SegmentReduce(Onnx& b, const aten::segment_reduce& op) {
  const Val data = op.data;
  const DType dtype = data.dtype();
  const int64_t axis = Axis(op.axis, data.rank());
  if (!op.lengths && !op.offsets) return b.Unsupported("segment_reduce by indices has no ONNX form", "give lengths or offsets");
  const auto bounds = [&]() -> std::array<Val, 2> {
    if (op.offsets) {
      const Val offsets = AsIndex(b, *op.offsets);
      return {b.Slice(offsets, axis, 0, -1), b.Slice(offsets, axis, 1, INT64_MAX)};
    }
    const Val lengths = AsIndex(b, *op.lengths), ends = b.CumSum(lengths, b.IntScalar(axis));
    return {ends - lengths, ends};
  };
  const auto [starts, ends] = bounds();
  const Val place = Iota(b, data.dim(axis));
  Val inside = b.And(b.GreaterOrEqual(place, b.Unsqueeze(starts, {axis + 1})), b.Less(place, b.Unsqueeze(ends, {axis + 1})));
  inside = b.Unsqueeze(inside, Axes(axis + 2, data.rank() + 1));  // [..., segments, n, 1...]
  const bool prod = op.reduce == "prod", extreme = op.reduce == "max" || op.reduce == "min", mean = op.reduce == "mean";
  const bool largest = op.reduce == "max";
  const Val neutral = b.Constant(extreme ? ExtremeOf(dtype, !largest) : Scalar(prod ? 1 : 0), dtype);
  const Val start = op.initial ? b.Constant(*op.initial, dtype) : neutral;
  const Val x = b.Where(inside, b.Unsqueeze(data, {axis}), neutral);
  if (prod) return b.ReduceProd(x, {axis + 1}) * start;
  if (extreme) {
    const Val y = ExtremeOver(b, x, {axis + 1}, largest, false);
    return op.initial ? (largest ? b.Max(y, start) : b.Min(y, start)) : y;
  }
  const Val sum = b.ReduceSum(x, {axis + 1}) + start;
  if (!mean) return sum;
  const Val count = b.ReduceSum(b.Cast(inside, dtype), {axis + 1});
  return sum / (op.initial ? b.Max(count, b.Constant(1, dtype)) : count);  // nothing with an initial value is that value, else 0 / 0
}

}  // namespace

void HistogramRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::histogram_bin_ct& op) {
    const Val x = Column(b, op.self);
    return Histogram(b, x, EdgesOf(b, x, {op.bins}, op.range), op.weight, op.density);
  });
  r.On([](Onnx& b, const aten::histogram_bins_tensor& op) { return Histogram(b, Column(b, op.self), {op.bins}, op.weight, op.density); });
  r.On([](Onnx& b, const aten::histogramdd& op) {
    const Val x = Points(b, op.self);
    return Histogram(b, x, EdgesOf(b, x, op.bins, op.range), op.weight, op.density);
  });
  r.On([](Onnx& b, const aten::histogramdd_int_bins& op) {
    const Val x = Points(b, op.self);
    const IntVec bins(std::vector<int64_t>(b.call().types.size() - 1, op.bins));
    return Histogram(b, x, EdgesOf(b, x, bins, op.range), op.weight, op.density);
  });
  r.On([](Onnx& b, const aten::histogramdd_TensorList_bins& op) { return Histogram(b, Points(b, op.self), op.bins, op.weight, op.density); });
  r.On<SegmentReduce>();
}

}  // namespace pt2onnx
