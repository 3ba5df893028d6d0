// Ops that move elements about. On pairs the dims keep their places and the last one stays the pair; where that does not hold, on each part.
//
//   %y : c64[3, 8] = aten::cat([%a, %b], -1)    ->    %y' : f32[3, 8, 2] = aten::cat([%a', %b'], 1)
#include "complex/rules.h"

namespace pt2onnx {
namespace {

template <class... Ops>
void EachPart(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops&) { return b.EachPart(); }), ...);
}
template <class... Ops>
void OnPairs(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops&) { return b.OnPairs(); }), ...);
}

// The complex tensors of a list as pairs; none if one of them is in parts, or of another dtype.
std::optional<Vals> AsPairs(Pairs& b, const Vals& list) {
  Vals pairs;
  for (const Val& x : list) {
    if (x.dtype() != b.complex() || !b.HasPair(x)) return std::nullopt;
    pairs.push_back(b.Pair(x));
  }
  return pairs;
}

// A new dim before the pair's.
Answer Stack(Pairs& b, const aten::stack& op) {
  const std::optional<Vals> pairs = AsPairs(b, op.tensors);
  if (!pairs) return b.EachPart();
  return b.FromPair(b(aten::stack{.tensors = *pairs, .dim = op.dim < 0 ? op.dim + op.tensors[0].rank() + 1 : op.dim}));
}

// Pads are given from the last dim on: none of the pair's.
Answer PadConstant(Pairs& b, Val x, Dims pad, const Scalar& value) {
  if (!b.HasPair(x) || !value.Is(0)) return b.EachPart();
  std::vector<SymExpr> all = {0, 0};
  all.insert(all.end(), pad.begin(), pad.end());
  return b.FromPair(b(aten::constant_pad_nd{.self = b.Pair(x), .pad = b.Copy(all), .value = value}));
}

Answer Repeat(Pairs& b, const aten::repeat& op) {
  if (!b.HasPair(op.self)) return b.EachPart();
  std::vector<SymExpr> repeats(op.repeats.begin(), op.repeats.end());
  repeats.push_back(1);
  return b.FromPair(b(aten::repeat{.self = b.Pair(op.self), .repeats = b.Copy(repeats)}));
}

// alpha, if complex, turns the source first.
Answer IndexAdd(Pairs& b, const aten::index_add& op) {
  if (!op.alpha.IsComplex()) return b.EachPart();
  const Val source = b(aten::mul_Scalar{.self = op.source, .other = op.alpha});
  return b(aten::index_add{.self = op.self, .dim = op.dim, .index = op.index, .source = source});
}

Answer ReduceInto(Pairs& b, std::string_view reduce) {
  if (reduce == "sum" || reduce == "mean" || reduce == "add") return b.EachPart();
  return b.Unsupported("complex numbers are scattered by sum and mean only", "scatter the parts that torch.view_as_real gives");
}

// The same memory as real numbers of the parts' dtype, or those as complex ones.
Val OtherDType(Pairs& b, const aten::view_dtype& op) {
  const Type& type = b.call().types[0];
  if (type.dtype == op.self.dtype()) return op.self;
  if (type.dtype == RealOf(op.self.dtype())) return b.Reshape(b.Pair(op.self), type.shape);
  if (RealOf(type.dtype) == op.self.dtype()) {
    std::vector<SymExpr> shape(type.shape.begin(), type.shape.end());
    shape.push_back(2);
    return b.FromPair(b.Reshape(op.self, b.Copy(shape)));
  }
  return b.Unsupported("bits of complex numbers seen as another dtype", "go through torch.view_as_real");
}

Val SameNumbers(Pairs&, Val x) { return x; }
Val Reshaped(Pairs& b, Val x) { return b.Reshape(x, b.call().types[0].shape); }

}  // namespace

void ComplexStructure(Rules<Pairs>& r) {
  // self[index]: indices come first, the pair's dim is never indexed
  OnPairs<aten::cat, aten::concat, aten::concatenate, aten::flip, aten::index_Tensor, aten::index_select, aten::select_scatter, aten::slice_scatter,
          aten::index_copy>(r);
  r.On([](Pairs& b, const aten::roll& op) { return op.dims.empty() ? b.EachPart() : b.OnPairs(); });
  r.On<OtherDType>();
  r.On<Stack>();
  r.On<Repeat>();
  r.On<IndexAdd>();
  // the condition is laid along the pair
  r.On([](Pairs& b, const aten::where_self& op) -> Answer {
    const std::optional<Vals> pairs = AsPairs(b, {op.self, op.other});
    if (!pairs) return b.EachPart();
    const Val condition = op.condition.IsScalar() ? op.condition : b(aten::unsqueeze{.self = op.condition, .dim = -1});
    return b.FromPair(b(aten::where_self{.condition = condition, .self = (*pairs)[0], .other = (*pairs)[1]}));
  });
  r.On([](Pairs& b, const aten::constant_pad_nd& op) { return PadConstant(b, op.self, op.pad, op.value); });
  r.On([](Pairs& b, const aten::pad& op) {
    return op.mode == "constant" ? PadConstant(b, op.self, op.pad_, op.value.value_or(0)) : b.EachPart();
  });

  OnPairs<aten::unsafe_chunk, aten::unsafe_split_Tensor, aten::unsafe_split_with_sizes, aten::narrow_copy, aten::select_copy_int,
          aten::slice_copy_Tensor, aten::split_copy_Tensor, aten::split_with_sizes_copy, aten::unbind_copy_int>(r);
  OfSelf<Reshaped, aten::view_copy, aten::squeeze_copy, aten::squeeze_copy_dim, aten::squeeze_copy_dims, aten::unsqueeze_copy>(r);

  EachPart<aten::gather, aten::scatter_src, aten::scatter_value, aten::scatter_add, aten::index_put, aten::index_fill_int_Scalar,
           aten::index_fill_int_Tensor, aten::masked_fill_Scalar, aten::masked_fill_Tensor, aten::masked_scatter, aten::masked_select,
           aten::where_ScalarSelf, aten::where_ScalarOther, aten::where_Scalar, aten::take, aten::take_along_dim, aten::put,
           aten::embedding, aten::_unsafe_masked_index, aten::_unsafe_masked_index_put_accumulate>(r);
  EachPart<aten::diag, aten::diag_embed, aten::diagflat, aten::diagonal_scatter, aten::as_strided_scatter, aten::tril, aten::triu, aten::trace,
           aten::rot90, aten::tile, aten::fliplr, aten::flipud, aten::hstack, aten::vstack, aten::dstack, aten::column_stack, aten::row_stack,
           aten::block_diag, aten::cartesian_prod, aten::combinations, aten::broadcast_tensors, aten::meshgrid, aten::meshgrid_indexing,
           aten::repeat_interleave_self_int, aten::repeat_interleave_self_Tensor, aten::nan_to_num, aten::im2col, aten::col2im>(r);
  EachPart<aten::reflection_pad1d, aten::reflection_pad2d, aten::reflection_pad3d, aten::replication_pad1d, aten::replication_pad2d,
           aten::replication_pad3d, aten::pixel_shuffle, aten::pixel_unshuffle, aten::channel_shuffle>(r);
  EachPart<aten::unfold_copy, aten::as_strided_copy, aten::diagonal_copy, aten::expand_copy, aten::permute_copy, aten::t_copy,
           aten::transpose_copy_int>(r);
  r.On([](Pairs& b, const aten::scatter_reduce& op) { return ReduceInto(b, op.reduce); });
  r.On([](Pairs& b, const aten::scatter_reduce_two& op) { return ReduceInto(b, op.reduce); });
  OfSelf<SameNumbers, aten::alias, aten::alias_copy, aten::clone, aten::contiguous, aten::detach, aten::detach_copy, aten::lift, aten::lift_fresh,
         aten::lift_fresh_copy, aten::positive, aten::resolve_conj, aten::resolve_neg>(r);
}

}  // namespace pt2onnx
