// Windows that slide over the spatial dims of [batch, channels, spatial...]: the one arithmetic of convolutions and pools. Window i along a dim
// takes the places i * stride + j * dilation - pad_begin, j < kernel.
//
// Where ONNX Runtime has a kernel, a layer is one node with these numbers as attributes. Where it has none (float64, integers, windows of
// uneven length), the elements are gathered window by window and reduced by ordinary operators:
//
//   x [N, C, H, W]  --Gather at place [oh, ow, K]-->  [N, C, oh, ow, K]
#pragma once

#include "lower/network.h"

namespace pt2onnx {

struct Window {
  IntVec kernel, stride, dilation, pad_begin, pad_end;
  bool ceil = false;

  int64_t dims() const { return std::ssize(kernel); }
  IntVec pads() const {
    IntVec out = pad_begin;
    out.insert(out.end(), pad_end.begin(), pad_end.end());
    return out;
  }
};

// A list of torch's, where one number stands for all dims; `missing` where it is empty.
IntVec PerDim(Ints list, int64_t dims, int64_t missing = 0);
// The same of sizes, which an attribute needs to know: noted as a problem of the builder if they are symbolic.
IntVec PerDim(Onnx& b, Dims list, int64_t dims, int64_t missing = 0);

Window PoolWindow(int64_t dims, Ints kernel, Ints stride, Ints padding, Ints dilation, bool ceil);

// The places that each window of one dim takes: places int64 [windows, longest]. Windows may differ in length: then `inside` (bool, same
// shape) says which places count; the others repeat one of the window's own places, which a maximum does not mind.
struct DimWindows {
  SymExpr windows, longest;
  Val places;
  OptVal inside = {};
};
// i * stride + j * dilation, of an input that is padded already.
DimWindows RegularWindows(Onnx& b, SymExpr windows, int64_t kernel, int64_t stride, int64_t dilation);
// Window i is from floor(i * in / out) to ceil((i + 1) * in / out).
DimWindows AdaptiveWindows(Onnx& b, SymExpr in, SymExpr out);

// Flat places in a channel whose spatial sizes are `sizes`: [o0, o1, ..., K], the elements of a window in row-major order. shift: subtracted
// from the places of each dim (indices of the input before padding).
Val FlatPlaces(Onnx& b, const std::vector<DimWindows>& windows, Dims sizes, const IntVec& shift = {});

// x with its spatial dims padded by `value` such that every window that counts lies inside, without a rest at the end.
Val PadForWindows(Onnx& b, Val x, const Window& w, Dims out, Scalar value);
// [N, C, spatial...] -> [N, C, o..., K]
Val GatherWindows(Onnx& b, Val x, Val places);

// f(x with a batch dim), without the batch dim again where x had none.
template <class F>
auto Batched(Onnx& b, Val x, int64_t dims, F f) {
  if (x.rank() != dims + 1) return f(x);
  auto y = f(b.Unsqueeze(x, {0}));
  if constexpr (std::is_same_v<decltype(y), Val>) {
    return b.Squeeze(y, {0});
  } else {
    for (Val& v : y) v = b.Squeeze(v, {0});
    return y;
  }
}

}  // namespace pt2onnx
