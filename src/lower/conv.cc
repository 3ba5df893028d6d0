// Convolutions, forward and transposed, of one to three spatial dims, with or without a batch dim.
//
//   %y = aten::conv2d.padding(%x, %w, %b, [1, 1], "same", [1, 1], 1)    ->    %y = Conv(%x, %w, %b, pads=[1, 1, 1, 1], ...)
//
// "same" pads dilation * (kernel - 1) in total, the odd one at the end. ONNX Runtime convolves float32 and float16; float64 and integers are
// products of the gathered windows with the kernel, exact in their own dtype.
#include <algorithm>

#include "lower/window.h"

namespace pt2onnx {
namespace {

struct Convolution {
  Val x, weight;
  OptVal bias;
  Window window;
  SymExpr groups;
};

bool HasKernel(DType d) { return d != DType::F64 && !IsIntegral(d); }

// y[n, g, o, m] = sum over c, k of windows[n, g, o, (c, k)] * weight[g, m, (c, k)]; weight: [out channels, in channels / groups, kernel...]
Val GatheredConv(Onnx& b, const Convolution& c, Dims out) {
  const SymExpr g = c.groups, in = c.weight.dim(1), m = c.weight.dim(0);
  std::vector<DimWindows> windows;
  const Val x = PadForWindows(b, c.x, c.window, out, 0);
  for (size_t d = 0; d < out.size(); ++d)
    windows.push_back(RegularWindows(b, out[d], c.window.kernel[d], c.window.stride[d], c.window.dilation[d]));
  const Val gathered = GatherWindows(b, x, FlatPlaces(b, windows, x.shape().subspan(2)));
  const SymExpr n = c.x.dim(0), places = Product(out), taps = Product(c.weight.shape().subspan(2)), per_group = FloorDiv(m, g);
  const Val rows = b.Reshape(b.Transpose(b.Reshape(gathered, {n, g, in, places, taps}), {0, 1, 3, 2, 4}), {n, g, places, in * taps});
  const Val kernel = b.Transpose(b.Reshape(c.weight, {g, per_group, in * taps}), {0, 2, 1});
  const Val y = b.Transpose(b.MatMul(rows, kernel), {0, 1, 3, 2});
  const Val whole = b.Reshape(y, Joined(std::vector<SymExpr>{n, m}, out));
  return c.bias ? whole + b.Unsqueeze(*c.bias, Axes(1, whole.rank() - 1)) : whole;
}

// Between neighbours along each spatial dim stride - 1 zeros are put.
Val Spread(Onnx& b, Val x, const IntVec& stride) {
  for (int64_t d = 0; d < std::ssize(stride); ++d) {
    const int64_t s = stride[static_cast<size_t>(d)], axis = d + 2;
    if (s == 1) continue;
    IntVec pads(std::vector<int64_t>(static_cast<size_t>(2 * x.rank() + 2), 0));
    pads[static_cast<size_t>(x.rank() + 1 + axis + 1)] = s - 1;
    DimVec shape(x.shape());
    SymExpr& n = shape[static_cast<size_t>(axis)];
    n *= s;
    const SymExpr end = n - (s - 1);
    x = b.Slice(b.Reshape(b.Pad(b.Unsqueeze(x, {axis + 1}), b.Ints(pads), b.Constant(0, x.dtype())), shape), axis, 0, end);
  }
  return x;
}

// A transposed convolution is a convolution of the spread input by the mirrored kernel with in and out channels exchanged.
Val GatheredTranspose(Onnx& b, Convolution c, Dims out) {
  Window& w = c.window;
  const Val x = Spread(b, c.x, w.stride);
  Val k = c.weight;  // [in, out / groups, kernel...]
  const SymExpr g = c.groups, in = FloorDiv(k.dim(0), g), m = k.dim(1);
  for (int64_t d = 2; d < k.rank(); ++d) k = b.OnnxOps::Slice(k, b.Ints({-1}), b.Ints({INT64_MIN}), b.Ints({d}), b.Ints({-1}));
  const Dims taps = c.weight.shape().subspan(2);
  k = b.Reshape(k, Joined(std::vector<SymExpr>{g, in, m}, taps));
  IntVec perm = Axes(0, k.rank());
  std::swap(perm[1], perm[2]);
  k = b.Reshape(b.Transpose(k, perm), Joined(std::vector<SymExpr>{g * m, in}, taps));
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    w.pad_begin[d] = w.dilation[d] * (w.kernel[d] - 1) - w.pad_begin[d];
    w.stride[d] = 1;
  }
  return GatheredConv(b, {x, k, c.bias, w, g}, out);
}

// The weight's kernel sizes as numbers.
IntVec KernelOf(Onnx& b, Val weight) { return PerDim(b, weight.shape().subspan(2), weight.rank() - 2, 1); }

// What eager accepts is padded by at least 0; groups are constants in every program.
int64_t GroupsOf(Onnx& b, SymExpr groups) {
  if (!groups.IsConst()) b.Unsupported("the number of groups of a convolution is symbolic; ONNX needs it as a constant");
  return groups.IsConst() ? groups.Const() : 1;
}

// The spatial sizes of the recorded result.
std::vector<SymExpr> OutSizes(const Onnx& b, int64_t dims) {
  const Dims shape = ResultShape(b);
  return {shape.end() - dims, shape.end()};
}

Val Conv(Onnx& b, const Convolution& c) {
  const int64_t dims = c.weight.rank() - 2;
  const int64_t group = GroupsOf(b, c.groups);
  return Batched(b, c.x, dims, [&](Val x) {
    if (!HasKernel(x.dtype())) return GatheredConv(b, {x, c.weight, c.bias, c.window, c.groups}, OutSizes(b, dims));
    const Window& w = c.window;
    return b.Conv(x, c.weight, c.bias,
                  {.dilations = w.dilation, .group = group, .kernel_shape = w.kernel, .pads = w.pads(), .strides = w.stride});
  });
}

Val ConvTransposed(Onnx& b, const Convolution& c, const IntVec& output_padding) {
  const int64_t dims = c.weight.rank() - 2;
  const int64_t group = GroupsOf(b, c.groups);
  // ONNX Runtime wants output_padding below the stride; PyTorch takes it up to the dilation too.
  const bool has_form = std::ranges::equal(output_padding, c.window.stride, std::ranges::less());
  return Batched(b, c.x, dims, [&](Val x) {
    if (!has_form || !HasKernel(x.dtype())) return GatheredTranspose(b, {x, c.weight, c.bias, c.window, c.groups}, OutSizes(b, dims));
    const Window& w = c.window;
    return b.ConvTranspose(x, c.weight, c.bias, {.dilations = w.dilation, .group = group, .kernel_shape = w.kernel,
                                                 .output_padding = output_padding, .pads = w.pads(), .strides = w.stride});
  });
}

Window ConvWindow(Onnx& b, Val weight, Dims stride, Dims dilation) {
  const int64_t dims = weight.rank() - 2;
  Window w;
  w.kernel = KernelOf(b, weight);
  w.stride = PerDim(b, stride, dims, 1);
  w.dilation = PerDim(b, dilation, dims, 1);
  return w;
}

Val Plain(Onnx& b, Val x, Val weight, const OptVal& bias, Dims stride, Dims padding, Dims dilation, SymExpr groups) {
  Window w = ConvWindow(b, weight, stride, dilation);
  w.pad_begin = w.pad_end = PerDim(b, padding, weight.rank() - 2);
  return Conv(b, {x, weight, bias, w, groups});
}

Val Named(Onnx& b, Val x, Val weight, const OptVal& bias, Dims stride, std::string_view padding, Dims dilation, SymExpr groups) {
  Window w = ConvWindow(b, weight, stride, dilation);
  for (size_t d = 0; d < w.kernel.size(); ++d) {
    const int64_t total = padding == "same" ? w.dilation[d] * (w.kernel[d] - 1) : 0;
    w.pad_begin.push_back(total / 2);
    w.pad_end.push_back(total - total / 2);
  }
  return Conv(b, {x, weight, bias, w, groups});
}

Val Transposed(Onnx& b, Val x, Val weight, const OptVal& bias, Dims stride, Dims padding, Dims output_padding, SymExpr groups, Dims dilation) {
  Window w = ConvWindow(b, weight, stride, dilation);
  w.pad_begin = w.pad_end = PerDim(b, padding, weight.rank() - 2);
  return ConvTransposed(b, {x, weight, bias, w, groups}, PerDim(b, output_padding, weight.rank() - 2));
}

template <class Op>
Val PlainRule(Onnx& b, const Op& op) { return Plain(b, op.input, op.weight, op.bias, op.stride, op.padding, op.dilation, op.groups); }
template <class Op>
Val NamedRule(Onnx& b, const Op& op) { return Named(b, op.input, op.weight, op.bias, op.stride, op.padding, op.dilation, op.groups); }
template <class Op>
Val TransposedRule(Onnx& b, const Op& op) {
  return Transposed(b, op.input, op.weight, op.bias, op.stride, op.padding, op.output_padding, op.groups, op.dilation);
}
template <class Op>
Val EitherRule(Onnx& b, const Op& op) { return op.transposed ? TransposedRule(b, op) : PlainRule(b, op); }

}  // namespace

void ConvRules(Rules<Onnx>& r) {
  r.On<PlainRule<aten::conv1d>>();
  r.On<PlainRule<aten::conv2d>>();
  r.On<PlainRule<aten::conv3d>>();
  r.On<NamedRule<aten::conv1d_padding>>();
  r.On<NamedRule<aten::conv2d_padding>>();
  r.On<NamedRule<aten::conv3d_padding>>();
  r.On<TransposedRule<aten::conv_transpose1d>>();
  r.On<TransposedRule<aten::conv_transpose2d_input>>();
  r.On<TransposedRule<aten::conv_transpose3d_input>>();
  r.On<EitherRule<aten::convolution>>();
  r.On<EitherRule<aten::_convolution>>();
  r.On<EitherRule<aten::convolution_overrideable>>();

  // [time, batch, in] by [kernel, in, out], padded at both ends
  r.On([](Onnx& b, const aten::conv_tbc& op) {
    const SymExpr pad[] = {op.pad}, one[] = {1};
    const Val y = Plain(b, b.Transpose(op.self, {1, 2, 0}), b.Transpose(op.weight, {2, 1, 0}), op.bias, one, pad, one, 1);
    return b.Transpose(y, {2, 0, 1});
  });
}

}  // namespace pt2onnx
