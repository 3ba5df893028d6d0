// Parts of a tensor, and parts written back: slices, selects, splits, diagonals, windows and strided views.
//
//   %y = aten::slice.Tensor(%x, 1, -3, 9223372036854775807)      ->    %y = Slice(%x, starts=[-3], ends=[INT64_MAX], axes=[1])
//   %z = aten::slice_scatter(%x, %y, 0, 2, 4)                    ->    %z = Concat(Slice(%x, 0, 2), %y, Slice(%x, 4, INT64_MAX))
//
// ONNX clips a slice's bounds as Python does, whatever their signs: a bound goes into the model as it is.
#include "ir/sym_facts.h"
#include "lower/indexing.h"

namespace pt2onnx {
namespace {

// self[start:end:step] along dim
Val Slice(Onnx& b, Val self, int64_t dim, std::optional<SymExpr> start, std::optional<SymExpr> end, SymExpr step) {
  const int64_t axis = Axis(dim, self.rank());
  // As many elements as there are, in steps of 1: all of them.
  if (step == 1 && ResultShape(b)[static_cast<size_t>(axis)] == self.dim(axis)) return self;
  return b.Slice(self, axis, start.value_or(0), end.value_or(INT64_MAX), step);
}

// self[start:start+length] along dim; -k counts from the end.
Val Narrow(Onnx& b, Val self, int64_t dim, SymExpr start, SymExpr length) {
  const int64_t axis = Axis(dim, self.rank());
  const SymExpr from = FrontIndex(start, self.dim(axis));
  return b.Slice(self, axis, from, from + length);
}

// Consecutive parts, as long along dim as the recorded results.
Vals SplitUp(Onnx& b, Val self, int64_t dim) {
  const int64_t axis = Axis(dim, self.rank());
  DimVec sizes;
  for (size_t i = 0; i < b.call().types.size(); ++i) sizes.push_back(ResultShape(b, i)[static_cast<size_t>(axis)]);
  return b.Split(self, sizes, axis);
}

// Cut where a tensor says: self[:at[0]], self[at[0]:at[1]], ..., self[at[k]:]. A tensor of rank 0 says how many equal parts.
Vals SplitAt(Onnx& b, Val self, Val at, int64_t dim) {
  if (at.IsScalar()) return SplitUp(b, self, dim);
  const Val axis = b.Ints({Axis(dim, self.rank())});
  Vals out;
  Val start = b.Ints({0});
  const int64_t parts = std::ssize(b.call().types);
  for (int64_t i = 0; i < parts; ++i) {
    const Val end = i + 1 < parts ? b.Slice(at, 0, i, i + 1) : b.Ints({INT64_MAX});
    out.push_back(b.OnnxOps::Slice(self, start, end, axis));
    start = end;
  }
  return out;
}

Vals Unbind(Onnx& b, Val self, int64_t dim) {
  Vals out;
  for (size_t i = 0; i < b.call().types.size(); ++i) out.push_back(b.Select(self, Axis(dim, self.rank()), static_cast<int64_t>(i)));
  return out;
}

// dim1 and dim2 last, then merged: the diagonal is every (columns + 1)-th element. `front` are the other dims.
struct FlatDiagonal {
  Val flat;
  IntVec perm;
  DimVec front, matrix;
  SymExpr start, step;
};
FlatDiagonal Flattened(Onnx& b, Val self, int64_t offset, int64_t dim1, int64_t dim2) {
  const IntVec perm = MoveDims(self.rank(), {dim1, dim2}, {-2, -1});
  const Val last = b.Transpose(self, perm);
  const SymExpr rows = last.dim(-2), cols = last.dim(-1);
  const DimVec front(last.shape().first(static_cast<size_t>(self.rank() - 2)));
  DimVec shape = front;
  shape.push_back(rows * cols);
  return {b.Reshape(last, shape), perm, front, DimVec(last.shape()), offset >= 0 ? SymExpr(offset) : cols * -offset, cols + 1};
}

Val Diagonal(Onnx& b, Val self, int64_t offset, int64_t dim1, int64_t dim2) {
  const FlatDiagonal d = Flattened(b, self, offset, dim1, dim2);
  return b.Slice(d.flat, d.flat.rank() - 1, d.start, d.start + ResultShape(b).back() * d.step, d.step);
}

Val DiagonalScatter(Onnx& b, Val self, Val src, int64_t offset, int64_t dim1, int64_t dim2) {
  const FlatDiagonal d = Flattened(b, self, offset, dim1, dim2);
  const Val positions = Progression(b, d.start, d.step, src.dim(-1));
  const Val written = ReplaceAlong(b, d.flat, d.flat.rank() - 1, positions, src);
  return b.Transpose(b.Reshape(written, d.matrix), InversePerm(d.perm));
}

// Windows of `size` every `step` along dim, their elements in a last dim of their own.
Val Windows(Onnx& b, Val self, int64_t dim, int64_t size, int64_t step) {
  if (self.IsScalar()) return b.Slice(b.Reshape(self, {1}), 0, 0, size);
  const int64_t axis = Axis(dim, self.rank());
  const SymExpr count = ResultShape(b)[static_cast<size_t>(axis)];
  Val windows = self;
  if (size == step) {  // they lie side by side
    windows = b.Reshape(b.Slice(self, axis, 0, count * size), WithDims(self.shape(), axis, 1, {count, size}));
  } else {
    windows = b.Gather(self, b.Unsqueeze(Progression(b, 0, step, count), {1}) + b.Unsqueeze(Iota(b, size), {0}), axis);
  }
  return b.Transpose(windows, MoveDims(self.rank() + 1, {axis + 1}, {-1}));
}

// Where the elements of a strided view lie in the memory: offset + i * stride[0] + j * stride[1] + ...; flattened.
Val StridedPositions(Onnx& b, Dims size, Dims stride, SymExpr offset) {
  const int64_t rank = std::ssize(size);
  Val positions = b.Reshape(b.Int(offset), {1});
  IntVec constant = {offset.IsConst() ? offset.Const() : 0};
  bool known = offset.IsConst();
  for (int64_t i = 0; i < rank; ++i) {
    const SymExpr n = size[static_cast<size_t>(i)], by = stride[static_cast<size_t>(i)];
    known = known && n.IsConst() && by.IsConst();
    if (!known) break;
    IntVec next;
    for (int64_t at : constant)
      for (int64_t k = 0; k < n.Const(); ++k) next.push_back(at + k * by.Const());
    constant = next;
  }
  if (known) return b.Ints(constant);
  for (int64_t i = 0; i < rank; ++i)
    positions = b.Unsqueeze(positions, {-1}) + Progression(b, 0, stride[static_cast<size_t>(i)], size[static_cast<size_t>(i)]);
  return b.Reshape(positions, {Product(size)});
}

bool RowMajor(Dims size, Dims stride) {
  SymExpr run = 1;
  for (size_t i = size.size(); i-- > 0;) {
    if (!(size[i] == 1) && !(stride[i] == run)) return false;
    run = run * size[i];
  }
  return true;
}

Val AsStrided(Onnx& b, Val self, Dims size, Dims stride, SymExpr offset) {
  const Val memory = b.Flatten1D(self);
  if (RowMajor(size, stride)) return b.Reshape(b.Slice(memory, 0, offset, offset + Product(size)), DimVec(size));
  return b.Reshape(b.Gather(memory, StridedPositions(b, size, stride, offset), 0), DimVec(size));
}

Val AsStridedScatter(Onnx& b, Val self, Val src, Dims size, Dims stride, SymExpr offset) {
  const Val written = ReplaceAlong(b, b.Flatten1D(self), 0, StridedPositions(b, size, stride, offset), b.Flatten1D(src));
  return b.Reshape(written, DimVec(self.shape()));
}

// self[:start] ++ src ++ self[start + len(src):], without parts that are empty. 0 <= start.
Val Inserted(Onnx& b, Val self, Val src, int64_t axis, SymExpr start) {
  const SymExpr n = self.dim(axis), end = start + src.dim(axis);
  Vals parts;
  if (!ProvablyLessEqual(start, 0)) parts.push_back(b.Slice(self, axis, 0, start));
  parts.push_back(src);
  if (!ProvablyLessEqual(n, end)) parts.push_back(b.Slice(self, axis, end, INT64_MAX));
  return b.Concat(parts, axis);
}

// How many elements are written is src's size.
Val SliceScatter(Onnx& b, Val self, Val src, int64_t dim, SymExpr first, SymExpr step) {
  const int64_t axis = Axis(dim, self.rank());
  const SymExpr n = self.dim(axis), m = src.dim(axis);
  if (m == 0) return self;
  if (step == 1 && m == n) return src;
  const SymExpr start = ClipBound(first, n);
  if (step == 1) return Inserted(b, self, src, axis, start);
  return ReplaceAlong(b, self, axis, Progression(b, start, step, m), src);
}

Val SelectScatter(Onnx& b, Val self, Val src, int64_t dim, SymExpr index) {
  const int64_t axis = Axis(dim, self.rank());
  return Inserted(b, self, b.Unsqueeze(src, {axis}), axis, FrontIndex(index, self.dim(axis)));
}

}  // namespace

void SliceRules(Rules<Onnx>& r) {
  OnEach<aten::slice_Tensor, aten::slice_copy_Tensor>(r, [](Onnx& b, const auto& op) { return Slice(b, op.self, op.dim, op.start, op.end, op.step); });
  OnEach<aten::narrow, aten::narrow_copy>(r, [](Onnx& b, const auto& op) { return Narrow(b, op.self, op.dim, op.start, op.length); });
  r.On([](Onnx& b, const aten::narrow_Tensor& op) {
    const int64_t axis = Axis(op.dim, op.self.rank());
    const Val start = b.Reshape(Wrapped(b, AsIndex(b, op.start), op.self.dim(axis)), {1});
    return b.Slice(op.self, start, start + b.Int1(op.length), b.Ints({axis}));
  });
  OnEach<aten::select_int, aten::select_copy_int>(
      r, [](Onnx& b, const auto& op) { return b.Select(op.self, Axis(op.dim, op.self.rank()), op.index); });

  OnEach<aten::split_Tensor, aten::split_copy_Tensor, aten::split_sizes, aten::split_with_sizes, aten::split_with_sizes_copy, aten::chunk,
         aten::unsafe_split_Tensor, aten::unsafe_split_with_sizes, aten::unsafe_chunk, aten::tensor_split_sections, aten::tensor_split_indices>(
      r, [](Onnx& b, const auto& op) { return SplitUp(b, op.self, op.dim); });
  r.On([](Onnx& b, const aten::tensor_split_tensor_indices_or_sections& op) { return SplitAt(b, op.self, op.tensor_indices_or_sections, op.dim); });
  OnEach<aten::hsplit_int, aten::hsplit_array>(r, [](Onnx& b, const auto& op) { return SplitUp(b, op.self, op.self.rank() == 1 ? 0 : 1); });
  OnEach<aten::vsplit_int, aten::vsplit_array>(r, [](Onnx& b, const auto& op) { return SplitUp(b, op.self, 0); });
  OnEach<aten::dsplit_int, aten::dsplit_array>(r, [](Onnx& b, const auto& op) { return SplitUp(b, op.self, 2); });
  OnEach<aten::unbind_int, aten::unbind_copy_int>(r, [](Onnx& b, const auto& op) { return Unbind(b, op.self, op.dim); });

  OnEach<aten::diagonal, aten::diagonal_copy>(r, [](Onnx& b, const auto& op) { return Diagonal(b, op.self, op.offset, op.dim1, op.dim2); });
  r.On([](Onnx& b, const aten::linalg_diagonal& op) { return Diagonal(b, op.A, op.offset, op.dim1, op.dim2); });
  OnEach<aten::unfold, aten::unfold_copy>(r, [](Onnx& b, const auto& op) { return Windows(b, op.self, op.dimension, op.size, op.step); });
  OnEach<aten::as_strided, aten::as_strided_copy>(
      r, [](Onnx& b, const auto& op) { return AsStrided(b, op.self, op.size, op.stride, op.storage_offset.value_or(0)); });

  r.On([](Onnx& b, const aten::slice_scatter& op) { return SliceScatter(b, op.self, op.src, op.dim, op.start.value_or(0), op.step); });
  r.On([](Onnx& b, const aten::select_scatter& op) { return SelectScatter(b, op.self, op.src, op.dim, op.index); });
  r.On([](Onnx& b, const aten::diagonal_scatter& op) { return DiagonalScatter(b, op.self, op.src, op.offset, op.dim1, op.dim2); });
  r.On([](Onnx& b, const aten::as_strided_scatter& op) {
    return AsStridedScatter(b, op.self, op.src, op.size, op.stride, op.storage_offset.value_or(0));
  });
}

}  // namespace pt2onnx
