// Pools: maximum and average, over windows of one size or adaptive ones, with indices where asked for, and the way back (max_unpool).
//
//   %y, %i = aten::max_pool2d_with_indices(%x, [2, 2])    ->    %y, %k = MaxPool(%x, kernel_shape=[2, 2], ...)   %i = Mod(%k, h * w)
//
// ONNX Runtime's ceil_mode is torch's: the last window must begin inside the input or the padding before it, and an average counts the
// padding but not what lies behind it.
#include "lower/window.h"

namespace pt2onnx {
namespace {

bool HasMaxPool(DType d) { return IsFloat(d) || d == DType::I8 || d == DType::U8; }
bool HasAveragePool(DType d) { return IsFloat(d) && d != DType::F64; }

// The lowest value of a dtype: -infinity of floats.
Scalar Lowest(DType d) {
  switch (d) {
    case DType::I8: return INT8_MIN;
    case DType::I16: return INT16_MIN;
    case DType::I32: return INT32_MIN;
    case DType::I64: return INT64_MIN;
    default: return IsFloat(d) ? Scalar(-INFINITY) : Scalar(0);
  }
}

// The sizes that the recorded result has behind batch and channels.
std::vector<SymExpr> OutSizes(const Onnx& b, int64_t dims) {
  const Dims shape = ResultShape(b);
  return {shape.end() - dims, shape.end()};
}

// The window as attributes say it: rounded down where that gives as many windows, rounded up where every reader of models counts as torch
// does (some don't look where the last window begins), else, if padding does not count, padded at the end as far as the last window goes.
std::optional<Window> AsAttributes(Window w, Dims in, Dims out, bool padding_counts) {
  if (!w.ceil) return w;
  bool down = true, up = true, padded = !padding_counts;
  Window p = w;
  for (size_t d = 0; d < out.size(); ++d) {
    const SymExpr reach = w.dilation[d] * (w.kernel[d] - 1) + 1, room = in[d] + w.pad_begin[d] + w.pad_end[d] - reach;
    down = down && FloorDiv(room, w.stride[d]) + 1 == out[d];
    up = up && (!in[d].IsConst() || CeilDiv(room, w.stride[d]) + 1 == out[d]);
    const SymExpr end = (out[d] - 1) * w.stride[d] + reach - in[d] - w.pad_begin[d];
    if (end.IsConst()) p.pad_end[d] = std::max(p.pad_end[d], end.Const());
    padded = padded && end.IsConst() && p.pad_end[d] < w.kernel[d];
  }
  w.ceil = !down;
  p.ceil = false;
  return down || up ? std::optional(w) : padded ? std::optional(p) : std::nullopt;
}

// The maximum of windows gathered at `places`, and at which of `indices` (same shape) it is. Both [N, C, o...].
Vals MaxOfWindows(Onnx& b, Val x, Val places, Val indices) {
  const Val windows = GatherWindows(b, x, places);
  const int64_t last = windows.rank() - 1;
  const Val y = b.ReduceMax(windows, {last});
  const Val tap = b.ArgMax(windows, {.axis = last});
  const DimVec shape = Joined(tap.shape().first(static_cast<size_t>(last)), std::vector<SymExpr>{places.dim(-1)});
  return {y, b.Squeeze(b.GatherElements(b.Expand(indices, shape), tap, {.axis = last}), {last})};
}

Vals MaxPool(Onnx& b, Val input, const Window& w) {
  const std::vector<SymExpr> out = OutSizes(b, w.dims());
  return Batched(b, input, w.dims(), [&](Val x) -> Vals {
    const Dims sizes = x.shape().subspan(2);
    if (const auto a = AsAttributes(w, sizes, out, false); a && HasMaxPool(x.dtype())) {
      const MaxPoolOut y = b.MaxPool(x, {.ceil_mode = a->ceil, .dilations = a->dilation, .kernel_shape = a->kernel, .pads = a->pads(), .strides = a->stride});
      return {y.Y, b.Mod(y.Indices, b.Int(Product(sizes)))};  // ONNX counts through batch and channels
    }
    const Val padded = PadForWindows(b, x, w, out, Lowest(x.dtype()));
    std::vector<DimWindows> windows;
    for (size_t d = 0; d < out.size(); ++d) windows.push_back(RegularWindows(b, out[d], w.kernel[d], w.stride[d], w.dilation[d]));
    return MaxOfWindows(b, padded, FlatPlaces(b, windows, padded.shape().subspan(2)), FlatPlaces(b, windows, sizes, w.pad_begin));
  });
}

// The sum of windows of a float or integer dtype without a kernel; padding is 0.
Val SumOfWindows(Onnx& b, Val x, const Window& w, Dims out) {
  const Val padded = PadForWindows(b, x, w, out, 0);
  std::vector<DimWindows> windows;
  for (size_t d = 0; d < out.size(); ++d) windows.push_back(RegularWindows(b, out[d], w.kernel[d], w.stride[d], 1));
  const Val gathered = GatherWindows(b, padded, FlatPlaces(b, windows, padded.shape().subspan(2)));
  return b.ReduceSum(gathered, {gathered.rank() - 1});
}

Val AveragePool(Onnx& b, Val input, const Window& w, bool count_include_pad, std::optional<int64_t> divisor) {
  const std::vector<SymExpr> out = OutSizes(b, w.dims());
  int64_t size = 1;
  for (int64_t k : w.kernel) size *= k;
  return Batched(b, input, w.dims(), [&](Val x) {
    if (const auto a = AsAttributes(w, x.shape().subspan(2), out, count_include_pad); HasAveragePool(x.dtype()) && (a || divisor)) {
      AveragePoolAttrs attrs = {.count_include_pad = count_include_pad, .kernel_shape = w.kernel, .strides = w.stride};
      if (!divisor) {
        attrs.ceil_mode = a->ceil;
        attrs.pads = a->pads();
        return b.AveragePool(x, attrs);
      }
      // Whole windows, their mean times size / divisor: what a last window of ceil_mode lacks is padded beforehand.
      const Val whole = w.ceil ? PadForWindows(b, x, w, out, 0) : x;
      attrs.count_include_pad = 1;
      if (!w.ceil) attrs.pads = w.pads();
      return b.AveragePool(whole, attrs) * (static_cast<double>(size) / static_cast<double>(*divisor));
    }
    const Val sum = SumOfWindows(b, x, w, out);
    if (divisor) return sum / *divisor;
    // The divisor is the sum over ones that stand where an element counts.
    DimVec ones = {1, 1}, inner = {1, 1}, begin = {0, 0}, end = {0, 0};
    for (size_t d = 0; d < out.size(); ++d) {
      inner.push_back(x.dim(static_cast<int64_t>(d) + 2));
      begin.push_back(w.pad_begin[d]);
      end.push_back(w.pad_end[d]);
    }
    Val counted = b.Ones(inner, x.dtype());
    Window rest = w;
    if (count_include_pad) {
      counted = b.Pad(counted, b.Shape(Joined(begin, end)), b.Constant(1, x.dtype()));
      rest.pad_begin = rest.pad_end = PerDim(Ints(), w.dims());
    }
    return sum / SumOfWindows(b, counted, rest, out);
  });
}

// y[indices] = x in each channel, 0 elsewhere.
Val MaxUnpool(Onnx& b, Val x, Val indices, int64_t dims) {
  const DimVec shape(ResultShape(b));
  const size_t lead = shape.size() - static_cast<size_t>(dims);
  const DimVec front(Dims(shape).first(lead));
  const auto flat = [&](Val v) { return b.Reshape(v, Joined(front, std::vector<SymExpr>{Product(v.shape().subspan(lead))})); };
  const Val zeros = b.Zeros(Joined(front, std::vector<SymExpr>{Product(Dims(shape).subspan(lead))}), x.dtype());
  return b.Reshape(b.ScatterElements(zeros, flat(indices), flat(x), {.axis = static_cast<int64_t>(lead)}), shape);
}

// The gradient of a max pool: each one is added where its maximum was.
Val MaxPoolBackward(Onnx& b, Val grad, Val indices, int64_t dims) {
  const DimVec shape(ResultShape(b));
  const size_t lead = shape.size() - static_cast<size_t>(dims);
  const DimVec front(Dims(shape).first(lead));
  const auto flat = [&](Val v) { return b.Reshape(v, Joined(front, std::vector<SymExpr>{Product(v.shape().subspan(lead))})); };
  const Val zeros = b.Zeros(Joined(front, std::vector<SymExpr>{Product(Dims(shape).subspan(lead))}), grad.dtype());
  return b.Reshape(b.ScatterElements(zeros, flat(indices), flat(grad), {.axis = static_cast<int64_t>(lead), .reduction = "add"}), shape);
}

// Adaptive windows that are all of one length and one distance: a pool of that kernel and stride.
std::optional<Window> EvenWindows(Dims in, Dims out) {
  Window w;
  for (size_t d = 0; d < in.size(); ++d) {
    if (!in[d].IsConst() || !out[d].IsConst()) return std::nullopt;
    const int64_t n = in[d].Const(), m = out[d].Const();
    if (n == 0 || m == 0) return std::nullopt;
    const int64_t kernel = (n + m - 1) / m, stride = m == 1 ? n : n / m;
    for (int64_t i = 0; i < m; ++i)
      if (i * n / m != i * stride || ((i + 1) * n + m - 1) / m != i * stride + kernel) return std::nullopt;
    w.kernel.push_back(kernel);
    w.stride.push_back(stride);
    w.dilation.push_back(1);
  }
  w.pad_begin = w.pad_end = PerDim(Ints(), std::ssize(in));
  return w;
}

bool AllOnes(Dims out) {
  return std::all_of(out.begin(), out.end(), [](const SymExpr& e) { return e == 1; });
}

Val AdaptiveAverage(Onnx& b, Val input, int64_t dims) {
  const std::vector<SymExpr> out = OutSizes(b, dims);
  if (AllOnes(out)) {
    const bool global = HasAveragePool(input.dtype()) && input.rank() == dims + 2;
    return global ? b.GlobalAveragePool(input) : b.ReduceMean(input, Axes(input.rank() - dims, input.rank()), true);
  }
  return Batched(b, input, dims, [&](Val x) {
    const Dims in = x.shape().subspan(2);
    if (const auto w = EvenWindows(in, out); w && HasAveragePool(x.dtype())) return b.AveragePool(x, {.kernel_shape = w->kernel, .strides = w->stride});
    // Rows, then columns: the mean of a box is the mean of means.
    for (int64_t d = 0; d < dims; ++d) {
      const SymExpr n = in[static_cast<size_t>(d)], m = out[static_cast<size_t>(d)];
      const int64_t axis = d + 2;
      if (n == m) continue;
      if (m == 1) {
        x = b.ReduceMean(x, {axis}, true);
        continue;
      }
      const DimWindows w = AdaptiveWindows(b, n, m);
      const Val windows = b.Gather(x, w.places, axis);  // [..., m, longest, ...]
      if (!w.inside) {
        x = b.ReduceMean(windows, {axis + 1});
        continue;
      }
      const IntVec behind = Axes(2, 2 + windows.rank() - axis - 2);
      const Val inside = b.Unsqueeze(*w.inside, behind);
      const Val sum = b.ReduceSum(b.Where(inside, windows, b.Constant(0, x.dtype())), {axis + 1});
      x = sum / b.ReduceSum(b.Cast(inside, x.dtype()), {1});
    }
    return x;
  });
}

Vals AdaptiveMax(Onnx& b, Val input, int64_t dims) {
  const std::vector<SymExpr> out = OutSizes(b, dims);
  if (const auto w = EvenWindows(input.shape().last(static_cast<size_t>(dims)), out)) return MaxPool(b, input, *w);
  return Batched(b, input, dims, [&](Val x) -> Vals {
    const Dims in = x.shape().subspan(2);
    std::vector<DimWindows> windows;
    for (size_t d = 0; d < out.size(); ++d) windows.push_back(AdaptiveWindows(b, in[d], out[d]));
    const Val places = FlatPlaces(b, windows, in);
    return MaxOfWindows(b, x, places, places);
  });
}

// Window i of a dim begins at floor((i + u) * alpha) - floor(u * alpha), alpha = (n - k) / (m - 1), the last one at n - k; u is random and
// differs by channel: places [N, C, m, k].
Val FractionalPlaces(Onnx& b, SymExpr n, int64_t k, int64_t m, Val u) {
  const DType dtype = u.dtype();
  const Val room = b.Int(n - k);
  if (m == 1) return b.Unsqueeze(b.Expand(room + b.Ints(Axes(0, k)), {u.dim(0), u.dim(1), k}), {2});
  const Val alpha = b.Number(n - k, dtype) / b.Constant(m - 1, dtype);
  std::vector<double> counts;
  for (int64_t i = 0; i + 1 < m; ++i) counts.push_back(static_cast<double>(i));
  const Val sample = b.Unsqueeze(u, {2});
  const Val begin = b.Cast((b.Tensor({m - 1}, counts, dtype) + sample) * alpha, DType::I64) - b.Cast(sample * alpha, DType::I64);
  const Val begins = b.Concat({begin, b.Expand(room, {u.dim(0), u.dim(1), 1})}, 2);
  return b.Unsqueeze(begins, {3}) + b.Ints(Axes(0, k));
}

// samples: [N, C, dims], the last dim of the input first (2-D: width, height; 3-D: time, height, width as they stand).
Vals FractionalMaxPool(Onnx& b, Val input, Ints kernel, Ints output, Val samples) {
  const int64_t dims = std::ssize(output);
  const IntVec k = PerDim(kernel, dims);
  return Batched(b, input, dims, [&](Val x) -> Vals {
    const Dims in = x.shape().subspan(2);
    OptVal flat;
    DimVec shape = {x.dim(0), x.dim(1)};
    int64_t taps = 1;
    for (int64_t d = 0; d < dims; ++d) {
      const size_t i = static_cast<size_t>(d);
      const Val u = b.Select(samples, 2, dims == 2 ? 1 - d : d);
      Val places = FractionalPlaces(b, in[i], k[i], output[i], u);
      const SymExpr step = Product(in.subspan(i + 1));
      if (!(step == 1)) places = places * b.Int(step);
      IntVec ones;
      for (int64_t a = 0; a < 2 * dims; ++a)
        if (a != d && a != dims + d) ones.push_back(a + 2);
      places = b.Unsqueeze(places, ones);
      flat = flat ? *flat + places : places;
      shape.push_back(output[i]);
      taps *= k[i];
    }
    shape.push_back(taps);
    const SymExpr all = Product(Dims(shape).subspan(2));
    const Val places = b.Reshape(*flat, shape);
    const Val values = b.GatherElements(b.Reshape(x, {x.dim(0), x.dim(1), Product(in)}), b.Reshape(places, {x.dim(0), x.dim(1), all}), {.axis = 2});
    const Val windows = b.Reshape(values, shape);
    const int64_t last = windows.rank() - 1;
    const Val tap = b.ArgMax(windows, {.axis = last});
    return {b.ReduceMax(windows, {last}), b.Squeeze(b.GatherElements(places, tap, {.axis = last}), {last})};
  });
}

template <class Op, int64_t dims>
Vals MaxPoolRule(Onnx& b, const Op& op) {
  Vals out = MaxPool(b, op.self, PoolWindow(dims, op.kernel_size, op.stride, op.padding, op.dilation, op.ceil_mode));
  out.erase(out.begin() + std::ssize(b.call().types), out.end());
  return out;
}
template <class Op, int64_t dims>
Val AveragePoolRule(Onnx& b, const Op& op) {
  std::optional<int64_t> divisor;
  if constexpr (requires { op.divisor_override; }) divisor = op.divisor_override;
  return AveragePool(b, op.self, PoolWindow(dims, op.kernel_size, op.stride, op.padding, {}, op.ceil_mode), op.count_include_pad, divisor);
}
template <class Op, int64_t dims>
Val AdaptiveAverageRule(Onnx& b, const Op& op) { return AdaptiveAverage(b, op.self, dims); }
template <class Op, int64_t dims>
Vals AdaptiveMaxRule(Onnx& b, const Op& op) { return AdaptiveMax(b, op.self, dims); }

}  // namespace

void PoolRules(Rules<Onnx>& r) {
  r.On<MaxPoolRule<aten::max_pool1d, 1>>();
  r.On<MaxPoolRule<aten::max_pool2d, 2>>();
  r.On<MaxPoolRule<aten::max_pool3d, 3>>();
  r.On<MaxPoolRule<aten::max_pool1d_with_indices, 1>>();
  r.On<MaxPoolRule<aten::max_pool2d_with_indices, 2>>();
  r.On<MaxPoolRule<aten::max_pool3d_with_indices, 3>>();
  r.On<AveragePoolRule<aten::avg_pool1d, 1>>();
  r.On<AveragePoolRule<aten::avg_pool2d, 2>>();
  r.On<AveragePoolRule<aten::avg_pool3d, 3>>();
  r.On<AdaptiveAverageRule<aten::adaptive_avg_pool1d, 1>>();
  r.On<AdaptiveAverageRule<aten::adaptive_avg_pool2d, 2>>();
  r.On<AdaptiveAverageRule<aten::adaptive_avg_pool3d, 3>>();
  r.On<AdaptiveAverageRule<aten::_adaptive_avg_pool2d, 2>>();
  r.On<AdaptiveAverageRule<aten::_adaptive_avg_pool3d, 3>>();
  r.On<AdaptiveMaxRule<aten::adaptive_max_pool1d, 1>>();
  r.On<AdaptiveMaxRule<aten::adaptive_max_pool2d, 2>>();
  r.On<AdaptiveMaxRule<aten::adaptive_max_pool3d, 3>>();
  r.On([](Onnx& b, const aten::max_unpool2d& op) { return MaxUnpool(b, op.self, op.indices, 2); });
  r.On([](Onnx& b, const aten::max_unpool3d& op) { return MaxUnpool(b, op.self, op.indices, 3); });
  r.On([](Onnx& b, const aten::max_pool2d_with_indices_backward& op) { return MaxPoolBackward(b, op.grad_output, op.indices, 2); });
  r.On([](Onnx& b, const aten::max_pool3d_with_indices_backward& op) { return MaxPoolBackward(b, op.grad_output, op.indices, 3); });
  r.On([](Onnx& b, const aten::fractional_max_pool2d& op) { return FractionalMaxPool(b, op.self, op.kernel_size, op.output_size, op.random_samples); });
  r.On([](Onnx& b, const aten::fractional_max_pool3d& op) { return FractionalMaxPool(b, op.self, op.kernel_size, op.output_size, op.random_samples); });
}

}  // namespace pt2onnx
