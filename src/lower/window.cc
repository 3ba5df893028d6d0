#include "lower/window.h"

namespace pt2onnx {

IntVec PerDim(Ints list, int64_t dims, int64_t missing) {
  if (list.empty()) return std::vector<int64_t>(static_cast<size_t>(dims), missing);
  if (std::ssize(list) == 1) return std::vector<int64_t>(static_cast<size_t>(dims), list[0]);
  return list;
}

IntVec PerDim(Onnx& b, Dims list, int64_t dims, int64_t missing) {
  std::vector<int64_t> numbers;
  for (const SymExpr& e : list) {
    if (!e.IsConst()) {
      b.Unsupported("a stride, padding or dilation depends on a size of the input; ONNX needs it as a constant");
      return PerDim(Ints(), dims, 1);
    }
    numbers.push_back(e.Const());
  }
  return PerDim(Ints(numbers), dims, missing);
}

Window PoolWindow(int64_t dims, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil) {
  Window w;
  w.kernel = PerDim(kernel, dims);
  w.stride = stride.empty() ? w.kernel : PerDim(stride, dims);
  w.dilation = PerDim(dilation, dims, 1);
  w.pad_begin = w.pad_end = PerDim(padding, dims);
  w.ceil = ceil;
  return w;
}

namespace {

Val Column(Onnx& b, Val x) { return b.Unsqueeze(x, {1}); }
Val Row(Onnx& b, Val x) { return b.Unsqueeze(x, {0}); }

}  // namespace

DimWindows RegularWindows(Onnx& b, SymExpr windows, int64_t kernel, int64_t stride, int64_t dilation) {
  IntVec taps;
  for (int64_t j = 0; j < kernel; ++j) taps.push_back(j * dilation);
  return {windows, kernel, Column(b, Iota(b, windows) * stride) + Row(b, b.Ints(taps))};
}

DimWindows AdaptiveWindows(Onnx& b, SymExpr in, SymExpr out) {
  if (in.IsConst() && out.IsConst()) {
    const int64_t n = in.Const(), m = out.Const();
    const auto begin = [&](int64_t i) { return i * n / m; };
    const auto end = [&](int64_t i) { return ((i + 1) * n + m - 1) / m; };
    int64_t longest = 0;
    bool even = true;
    for (int64_t i = 0; i < m; ++i) {
      even = even && (i == 0 || end(i) - begin(i) == longest);
      longest = std::max(longest, end(i) - begin(i));
    }
    std::vector<double> places, inside;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < longest; ++j) {
        places.push_back(static_cast<double>(std::min(begin(i) + j, end(i) - 1)));
        inside.push_back(begin(i) + j < end(i));
      }
    return {out, longest, b.Tensor({m, longest}, places, DType::I64), even ? OptVal() : b.Tensor({m, longest}, inside, DType::Bool)};
  }
  const SymExpr longest = FloorDiv(in + out - 1, out) + 1;
  const Val n = b.Int(in), m = b.Int(out), i = Iota(b, out);
  const Val begin = Column(b, i * n / m);
  const Val end = Column(b, ((i + 1) * n + (m - 1)) / m);
  const Val places = begin + Row(b, Iota(b, longest));
  return {out, longest, b.Min(places, end - 1), b.Less(places, end)};
}

Val FlatPlaces(Onnx& b, const std::vector<DimWindows>& windows, Dims sizes, const IntVec& shift) {
  const int64_t dims = std::ssize(windows);
  OptVal flat;
  DimVec shape;
  SymExpr elements = 1;
  for (int64_t d = 0; d < dims; ++d) {
    const DimWindows& w = windows[static_cast<size_t>(d)];
    Val places = w.places;
    if (!shift.empty() && shift[static_cast<size_t>(d)] != 0) places = places - shift[static_cast<size_t>(d)];
    const SymExpr step = Product(sizes.subspan(static_cast<size_t>(d) + 1));
    if (!(step == 1)) places = places * b.Int(step);
    IntVec ones;  // [o, k] -> [1.., o, 1.., k, 1..] among 2 * dims axes
    for (int64_t a = 0; a < 2 * dims; ++a)
      if (a != d && a != dims + d) ones.push_back(a);
    places = b.Unsqueeze(places, ones);
    flat = flat ? *flat + places : places;
    shape.push_back(w.windows);
    elements *= w.longest;
  }
  shape.push_back(elements);
  return b.Reshape(*flat, shape);
}

Val PadForWindows(Onnx& b, Val x, const Window& w, Dims out, Scalar value) {
  DimVec begin(std::vector<SymExpr>(2, 0)), end = begin;
  bool any = false;
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    // The last window ends at (out - 1) * stride + dilation * (kernel - 1) + 1, counted from the padding's begin. What is over is cut off.
    begin.push_back(w.pad_begin[d]);
    end.push_back((out[d] - 1) * w.stride[d] + w.dilation[d] * (w.kernel[d] - 1) + 1 - w.pad_begin[d] - x.dim(static_cast<int64_t>(d) + 2));
    any = any || !(begin.back() == 0) || !(end.back() == 0);
  }
  if (!any) return x;
  return b.Pad(x, b.Shape(Joined(begin, end)), b.Constant(value, x.dtype()));
}

Val GatherWindows(Onnx& b, Val x, Val places) {
  return b.Gather(b.Reshape(x, {x.dim(0), x.dim(1), Product(x.shape().subspan(2))}), places, 2);
}

}  // namespace pt2onnx
