// Core ATen: ops that only arrange elements anew, by permute, view, slice, expand, cat, split_with_sizes.
//
//   %y = aten::transpose.int(%x, 0, 1)    ->    %y = aten::permute(%x, [1, 0])
#include <algorithm>

#include "decomp/core.h"
#include "ir/sym_facts.h"
#include "passes/views.h"

namespace pt2onnx {
namespace {

template <class Op>
void Permuted(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) {
    const Val x = b.Permute(op.self, Permutation(*b.call().op, b.call().args, op.self.rank()));
    return b.call().op->view == ViewClass::PermuteConj && IsComplex(x.dtype()) ? b(aten::conj_physical{.self = x}) : x;
  });
}
template <class Op>
void Reshaped(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) { return b.Reshape(op.self, RecordedShape(b)); });
}
template <class Op>
void Expanded(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) { return b.Expand(op.self, RecordedShape(b)); });
}
// The same elements, perhaps in another dtype.
template <class Op>
void Converted(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) { return b.Cast(op.self, RecordedDType(b)); });
}

// Consecutive pieces along a dim, as long as recorded.
Vals Pieces(Aten& b, Val self, int64_t dim) {
  std::vector<SymExpr> sizes;
  for (const Type& type : b.call().types) sizes.push_back(type.shape[At(dim, self.rank())]);
  return b.All(aten::split_with_sizes{.self = self, .split_sizes = b.Copy(sizes), .dim = dim});
}
template <class Op>
void Split(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) {
    int64_t dim = op.self.rank() > 1 ? 1 : 0;  // hsplit
    if constexpr (requires { op.dim; }) dim = op.dim;
    const std::string_view name = b.call().op->name;
    return Pieces(b, op.self, name.starts_with("aten::vsplit") ? 0 : name.starts_with("aten::dsplit") ? 2 : dim);
  });
}

Val Narrow(Aten& b, const aten::narrow& op) {
  const SymExpr start = BoundsOf(op.start).hi && *BoundsOf(op.start).hi < 0 ? op.start + op.self.dim(op.dim) : op.start;
  return Slice(b, op.self, op.dim, start, start + op.length);
}

// Each element, or slice of a dim, so many times in a row: x[i] -> x[i], x[i], ...
Val RepeatInterleave(Aten& b, const aten::repeat_interleave_self_int& op) {
  const Val x = op.dim ? op.self : b.Reshape(op.self, {op.self.numel()});
  const int64_t dim = static_cast<int64_t>(At(op.dim.value_or(0), x.rank()));
  std::vector<SymExpr> shape(x.shape().begin(), x.shape().end());
  shape.insert(shape.begin() + dim + 1, op.repeats);
  return b.Reshape(b.Expand(Unsqueeze(b, x, dim + 1), b.Copy(shape)), RecordedShape(b));
}

Val Tile(Aten& b, const aten::tile& op) {
  std::vector<SymExpr> repeats(op.dims.begin(), op.dims.end());
  while (static_cast<int64_t>(repeats.size()) < op.self.rank()) repeats.insert(repeats.begin(), 1);
  return b(aten::repeat{.self = op.self, .repeats = b.Copy(repeats)});
}

// y[i] = x[(i - shift) mod n]: the last `shift` elements come first.
Val RollDim(Aten& b, Val x, int64_t dim, SymExpr shift) {
  const SymExpr n = x.dim(dim);
  if (n == 0 || shift == 0) return x;
  const SymExpr cut = n - Mod(shift, n);
  return b(aten::cat{.tensors = {Slice(b, x, dim, cut, n), Slice(b, x, dim, 0, cut)}, .dim = dim});
}
Val Roll(Aten& b, const aten::roll& op) {
  if (op.dims.empty()) return b.Reshape(RollDim(b, b.Reshape(op.self, {op.self.numel()}), 0, op.shifts[0]), op.self.shape());
  Val x = op.self;
  for (size_t i = 0; i < op.dims.size(); ++i) x = RollDim(b, x, op.dims[i], op.shifts[i]);
  return x;
}

Val Stack(Aten& b, const aten::stack& op) {
  Vals parts;
  for (const Val& x : op.tensors) parts.push_back(Unsqueeze(b, x, op.dim));
  return b(aten::cat{.tensors = parts, .dim = op.dim});
}

// x[..., 1:] - x[..., :-1], n times.
Val Diff(Aten& b, const aten::diff& op) {
  Val x = op.self;
  if (op.prepend) x = b(aten::cat{.tensors = {*op.prepend, x}, .dim = op.dim});
  if (op.append) x = b(aten::cat{.tensors = {x, *op.append}, .dim = op.dim});
  for (int64_t i = 0; i < op.n; ++i) {
    const Val after = Slice(b, x, op.dim, 1, x.dim(op.dim)), before = Slice(b, x, op.dim, 0, x.dim(op.dim) - 1);
    x = x.dtype() == DType::Bool ? b(aten::logical_xor{.self = after, .other = before}) : after - before;
  }
  return x;
}

void Permutations(Rules<Aten>& r) {
  Permuted<aten::adjoint>(r);
  Permuted<aten::matrix_H>(r);
  Permuted<aten::mH>(r);
  Permuted<aten::mT>(r);
  Permuted<aten::moveaxis_int>(r);
  Permuted<aten::moveaxis_intlist>(r);
  Permuted<aten::movedim_int>(r);
  Permuted<aten::movedim_intlist>(r);
  Permuted<aten::numpy_T>(r);
  Permuted<aten::swapaxes>(r);
  Permuted<aten::swapdims>(r);
  Permuted<aten::t>(r);
  Permuted<aten::transpose_int>(r);
}

void Shapes(Rules<Aten>& r) {
  Reshaped<aten::atleast_1d>(r);
  Reshaped<aten::atleast_2d>(r);
  Reshaped<aten::atleast_3d>(r);
  Reshaped<aten::flatten_using_ints>(r);
  Reshaped<aten::ravel>(r);
  Reshaped<aten::reshape_as>(r);
  Reshaped<aten::squeeze>(r);
  Reshaped<aten::unflatten_int>(r);
  Reshaped<aten::view_as>(r);
  Expanded<aten::broadcast_to>(r);
  Expanded<aten::expand_as>(r);
  r.On<Narrow>();
  r.On<RepeatInterleave>();
  r.On<Tile>();
  r.On<Roll>();
  r.On<Stack>();
  r.On<Diff>();
}

void Splits(Rules<Aten>& r) {
  Split<aten::chunk>(r);
  Split<aten::dsplit_array>(r);
  Split<aten::dsplit_int>(r);
  Split<aten::hsplit_array>(r);
  Split<aten::hsplit_int>(r);
  Split<aten::split_Tensor>(r);
  Split<aten::tensor_split_indices>(r);
  Split<aten::tensor_split_sections>(r);
  Split<aten::unsafe_chunk>(r);
  Split<aten::unsafe_split_Tensor>(r);
  Split<aten::unsafe_split_with_sizes>(r);
  Split<aten::vsplit_array>(r);
  Split<aten::vsplit_int>(r);
  r.On([](Aten& b, const aten::unbind_int& op) {
    Vals out;
    for (size_t i = 0; i < b.call().types.size(); ++i)
      out.push_back(b(aten::select_int{.self = op.self, .dim = op.dim, .index = SymExpr(static_cast<int64_t>(i))}));
    return out;
  });
}

void Copies(Rules<Aten>& r) {
  Converted<aten::contiguous>(r);
  Converted<aten::to_device>(r);
  Converted<aten::to_dtype>(r);
  Converted<aten::to_dtype_layout>(r);
  Converted<aten::to_other>(r);
  Converted<aten::type_as>(r);
  r.On([](Aten& b, const aten::lift_fresh_copy& op) { return b(aten::clone{.self = op.self}); });
  r.On([](Aten& b, const aten::real& op) {
    return IsComplex(op.self.dtype()) ? b(aten::select_int{.self = b(aten::view_as_real{.self = op.self}), .dim = -1, .index = 0}) : op.self;
  });
}

}  // namespace

void CoreViews(Rules<Aten>& r) {
  Permutations(r);
  Shapes(r);
  Splits(r);
  Copies(r);
}

}  // namespace pt2onnx
