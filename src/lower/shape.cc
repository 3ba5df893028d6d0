// Views and shapes as values: reshape, permute, expand, squeeze and their kin. Sizes may be symbolic everywhere.
//
//   %y = aten::permute(%x, [0, 2, 1])    ->    %y = Transpose(%x, perm=[0, 2, 1])
#include "lower/indexing.h"
#include "passes/views.h"

namespace pt2onnx {
namespace {

// The recorded shape says it all.
constexpr auto kReshaped = [](Onnx& b, const auto& op) { return b.Reshape(op.self, ResultShape(b)); };
constexpr auto kExpanded = [](Onnx& b, const auto& op) { return b.Expand(op.self, ResultShape(b)); };
constexpr auto kSame = [](Onnx&, const auto& op) { return op.self; };
constexpr auto kPermuted = [](Onnx& b, const auto& op) { return b.Transpose(op.self, Permutation(*b.call().op, b.call().args, op.self.rank())); };

// Without those of `dims` that are 1. What the program found to be 1 stands in the recorded shape.
Val Squeezed(Onnx& b, Val self, const IntVec& dims) {
  IntVec axes;
  for (int64_t i = 0; i < self.rank(); ++i) {
    const bool named = std::any_of(dims.begin(), dims.end(), [&](int64_t d) { return Axis(d, self.rank()) == i; });
    if (named && self.dim(i) == 1) axes.push_back(i);
  }
  return self.rank() - std::ssize(axes) == std::ssize(ResultShape(b)) ? b.Squeeze(self, axes) : b.Reshape(self, ResultShape(b));
}

// Elements keep their bits: each becomes several narrower ones, or the last dim's groups become one.
Val Bitcast(Onnx& b, Val self, DType dtype) {
  if (self.dtype() == dtype) return self;
  const int from = ItemSize(self.dtype()), to = ItemSize(dtype);
  if (from == to && b.opset() >= 26) return b.BitCast(self, {.to = dtype});
  const bool integers = (IsIntegral(self.dtype()) || self.dtype() == DType::Bool) && IsIntegral(dtype);
  // Integers of one width: ONNX Runtime's cast keeps the bits, as C's does; ONNX leaves it open.
  if (from == to && integers) return b.Cast(self, dtype);
  if (from == to)
    return b.Unsupported("no ONNX form for view(" + std::string(Facts(dtype).torch) + ") of " + std::string(Facts(self.dtype()).torch) +
                             " at opset " + std::to_string(b.opset()), "--opset 26 has BitCast");
  if (!integers) return b.Unsupported("view as a dtype of another width has an ONNX form for integers only", "view integers, or use to(dtype) if the values are meant");
  // Little endian: part k holds the bits from k * 8 * width on. Sums in int64 are exact modulo 2^64.
  const int64_t ratio = std::max(from, to) / std::min(from, to), bits = 8 * std::min(from, to);
  IntVec shifts;
  for (int64_t k = 0; k < ratio; ++k) shifts.push_back(k * bits);
  const Val by = b.Cast(b.Ints(shifts), DType::U64);
  if (from > to) {
    const Val parts = b.BitShift(b.Unsqueeze(b.Cast(self, DType::U64), {-1}), by, {.direction = std::string_view("RIGHT")});
    return b.Reshape(b.Cast(b.BitwiseAnd(parts, b.Constant(int64_t{(int64_t{1} << bits) - 1}, DType::U64)), dtype), ResultShape(b));
  }
  const DType narrow = std::min(from, to) == 1 ? DType::U8 : std::min(from, to) == 2 ? DType::U16 : DType::U32;
  DimVec grouped(ResultShape(b));
  grouped.push_back(ratio);
  const Val parts = b.Reshape(b.Cast(b.Cast(self, narrow), DType::U64), grouped);
  return b.Cast(b.ReduceSum(b.Cast(b.BitShift(parts, by, {.direction = std::string_view("LEFT")}), DType::I64), {-1}), dtype);
}

Vals ReshapedList(Onnx& b, const Vals& tensors) {
  Vals out;
  for (size_t i = 0; i < tensors.size(); ++i) out.push_back(b.Reshape(tensors[i], ResultShape(b, i)));
  return out;
}
Vals ExpandedList(Onnx& b, const Vals& tensors) {
  Vals out;
  for (size_t i = 0; i < tensors.size(); ++i) out.push_back(b.Expand(tensors[i], ResultShape(b, i)));
  return out;
}

// Each vector along its own dim, expanded over the others'; "xy" swaps the first two dims.
Vals Meshgrid(Onnx& b, const Vals& tensors, std::string_view indexing) {
  const int64_t rank = std::ssize(tensors);
  Vals out;
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t axis = indexing == "xy" && rank > 1 && i < 2 ? 1 - i : i;
    out.push_back(b.Expand(LaidAlong(b, AtLeast1D(b, tensors[static_cast<size_t>(i)]), axis, rank), ResultShape(b, static_cast<size_t>(i))));
  }
  return out;
}

}  // namespace

void ShapeRules(Rules<Onnx>& r) {
  OnEach<aten::reshape, aten::view, aten::_unsafe_view, aten::_reshape_alias, aten::_reshape_copy, aten::_reshape_alias_copy, aten::view_copy, aten::view_as,
         aten::reshape_as, aten::flatten_using_ints, aten::unflatten_int, aten::ravel, aten::atleast_1d, aten::atleast_2d, aten::atleast_3d>(r, kReshaped);
  OnEach<aten::expand, aten::expand_copy, aten::expand_as, aten::broadcast_to>(r, kExpanded);
  OnEach<aten::permute, aten::transpose_int, aten::swapaxes, aten::swapdims, aten::t, aten::mT, aten::mH, aten::adjoint, aten::matrix_H, aten::numpy_T,
         aten::movedim_int, aten::movedim_intlist, aten::moveaxis_int, aten::moveaxis_intlist>(r, kPermuted);

  OnEach<aten::alias, aten::alias_copy, aten::detach, aten::detach_copy, aten::lift, aten::lift_fresh, aten::lift_fresh_copy>(r, kSame);

  r.On([](Onnx& b, const aten::permute_copy& op) { return b.Transpose(op.self, op.dims); });
  r.On([](Onnx& b, const aten::t_copy& op) { return op.self.rank() < 2 ? op.self : b.Transpose(op.self, {1, 0}); });
  r.On([](Onnx& b, const aten::transpose_copy_int& op) {
    IntVec perm = Axes(0, op.self.rank());
    if (!perm.empty()) std::swap(perm[static_cast<size_t>(Axis(op.dim0, op.self.rank()))], perm[static_cast<size_t>(Axis(op.dim1, op.self.rank()))]);
    return b.Transpose(op.self, perm);
  });

  OnEach<aten::unsqueeze, aten::unsqueeze_copy>(r, [](Onnx& b, const auto& op) { return b.Unsqueeze(op.self, {op.dim}); });
  OnEach<aten::squeeze, aten::squeeze_copy>(r, [](Onnx& b, const auto& op) { return Squeezed(b, op.self, Axes(0, op.self.rank())); });
  OnEach<aten::squeeze_dim, aten::squeeze_copy_dim>(r, [](Onnx& b, const auto& op) { return Squeezed(b, op.self, {op.dim}); });
  OnEach<aten::squeeze_dims, aten::squeeze_copy_dims>(r, [](Onnx& b, const auto& op) { return Squeezed(b, op.self, op.dim); });

  OnEach<aten::view_dtype, aten::view_copy_dtype>(r, [](Onnx& b, const auto& op) { return Bitcast(b, op.self, op.dtype); });

  OnEach<aten::atleast_1d_Sequence, aten::atleast_2d_Sequence, aten::atleast_3d_Sequence>(
      r, [](Onnx& b, const auto& op) { return ReshapedList(b, op.tensors); });
  r.On([](Onnx& b, const aten::broadcast_tensors& op) { return ExpandedList(b, op.tensors); });
  r.On([](Onnx& b, const aten::meshgrid& op) { return Meshgrid(b, op.tensors, "ij"); });
  r.On([](Onnx& b, const aten::meshgrid_indexing& op) { return Meshgrid(b, op.tensors, op.indexing); });
}

}  // namespace pt2onnx
