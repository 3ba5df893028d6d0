// Tensors put together, repeated, turned and cut to triangles.
//
//   %y = aten::stack([%a, %b], 1)        ->    %y = Concat(Unsqueeze(%a, 1), Unsqueeze(%b, 1), axis=1)
//   %y = aten::roll(%x, [1], [0])        ->    %y = Gather(%x, [n - 1, 0, 1, ...])
#include <algorithm>

#include "ir/sym_facts.h"
#include "lower/indexing.h"

namespace pt2onnx {
namespace {

// Joined along dim, in the recorded dtype. Empty tensors count for nothing, whatever their rank (torch's legacy).
Val Cat(Onnx& b, const Vals& tensors, int64_t dim) {
  const int64_t rank = std::ssize(ResultShape(b)), axis = Axis(dim, rank);
  Vals parts;
  for (const Val& x : tensors) {
    const bool empty = x.rank() != rank || x.dim(axis) == 0;
    if (!empty) parts.push_back(b.Cast(x, ResultDType(b)));
  }
  if (parts.empty()) return b.Zeros(DimVec(ResultShape(b)), ResultDType(b));
  return b.Concat(parts, axis);
}

Val Stack(Onnx& b, const Vals& tensors, int64_t dim) {
  const int64_t axis = Axis(dim, tensors[0].rank() + 1);
  Vals parts;
  for (const Val& x : tensors) parts.push_back(b.Unsqueeze(b.Cast(x, ResultDType(b)), {axis}));
  return b.Concat(parts, axis);
}

// x with dims of 1 put in front, up to `rank`; dstack's vectors become [1, n, 1].
Vals AtLeast(Onnx& b, const Vals& tensors, int64_t rank) {
  Vals out;
  for (Val x : tensors) {
    if (rank == 3 && x.rank() > 0 && x.rank() < 3) x = b.Unsqueeze(x, {x.rank()});
    out.push_back(WithRank(b, x, rank));
  }
  return out;
}

// Vectors become columns.
Val ColumnStack(Onnx& b, const Vals& tensors) {
  Vals columns;
  for (const Val& x : tensors) columns.push_back(x.rank() < 2 ? b.Reshape(x, {x.numel(), 1}) : x);
  return Cat(b, columns, 1);
}

// Each tensor padded along dim to num_chunks equal chunks; chunk k of the result is all tensors' chunks k, flattened.
Val ChunkCat(Onnx& b, const Vals& tensors, int64_t dim, int64_t num_chunks) {
  Vals parts;
  for (const Val& tensor : tensors) {
    const int64_t axis = Axis(dim, tensor.rank());
    const SymExpr chunk = CeilDiv(tensor.dim(axis), num_chunks);
    DimVec pads(std::vector<SymExpr>(static_cast<size_t>(2 * tensor.rank()), 0));
    pads[static_cast<size_t>(tensor.rank() + axis)] = chunk * num_chunks - tensor.dim(axis);
    const Val padded = pads[static_cast<size_t>(tensor.rank() + axis)] == 0 ? tensor : b.Pad(tensor, b.Shape(pads));
    const SymExpr rest = Product(tensor.shape().subspan(static_cast<size_t>(axis + 1)));
    DimVec shape(tensor.shape().first(static_cast<size_t>(axis)));
    shape.push_back(num_chunks);
    shape.push_back(chunk * rest);
    parts.push_back(b.Cast(b.Reshape(padded, shape), ResultDType(b)));
  }
  return b.Concat(parts, -1);
}

// The whole tensor, repeats[i] times along dim i.
Val Repeat(Onnx& b, Val self, DimVec repeats) {
  if (std::ssize(repeats) < self.rank()) repeats.insert(repeats.begin(), static_cast<size_t>(self.rank() - std::ssize(repeats)), SymExpr(1));
  const Val x = WithRank(b, self, std::ssize(repeats));
  bool single = true, once = true;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const SymExpr times = repeats[static_cast<size_t>(i)];
    once = once && times == 1;
    single = single && (times == 1 || x.dim(i) == 1);
  }
  if (once) return x;
  return single ? b.Expand(x, DimVec(ResultShape(b))) : b.Tile(x, b.Shape(repeats));
}

// Each element `repeats` times in a row.
Val RepeatEach(Onnx& b, Val self, SymExpr repeats, std::optional<int64_t> dim) {
  const Val x = dim ? AtLeast1D(b, self) : b.Flatten1D(self);
  const int64_t axis = Axis(dim.value_or(0), x.rank());
  const SymExpr n = x.dim(axis);
  if (repeats == 1) return x;
  if (n == 1) return b.Expand(x, WithDims(x.shape(), axis, 1, {repeats}));
  const Val each = b.Expand(b.Unsqueeze(x, {axis + 1}), WithDims(x.shape(), axis, 1, {n, repeats}));
  return b.Reshape(each, WithDims(x.shape(), axis, 1, {n * repeats}));
}

// repeats = [2, 0, 1] -> [0, 0, 2]: the rows of the true elements of (column < repeats[row]).
Val RepeatedIndices(Onnx& b, Val repeats) {
  const Val counts = b.Unsqueeze(AsIndex(b, repeats), {1});
  const Val most = b.ReduceMax(b.Concat({b.Ints({0}), AsIndex(b, repeats)}, 0), {0});
  const Val columns = b.Unsqueeze(b.Range(b.IntScalar(0), most, b.IntScalar(1)), {0});
  return b.Select(b.NonZero(b.Less(columns, counts)), 0, 0);
}

Val RepeatByTensor(Onnx& b, Val self, Val repeats, std::optional<int64_t> dim) {
  const Val x = dim ? AtLeast1D(b, self) : b.Flatten1D(self);
  const int64_t axis = Axis(dim.value_or(0), x.rank());
  Val counts = AtLeast1D(b, repeats);
  if (counts.dim(0) == 1) counts = b.Expand(counts, {x.dim(axis)});
  return b.Gather(x, RepeatedIndices(b, counts), axis);
}

// Element i goes to (i + shift) mod n, so element (i - shift) mod n stands at i.
Val RollAlong(Onnx& b, Val x, int64_t axis, SymExpr shift) {
  const SymExpr n = x.dim(axis);
  if (n.IsConst()) {
    if (n.Const() == 0) return x;
    shift = Mod(shift, n);
    if (shift == 0) return x;
    if (shift.IsConst()) {
      IntVec from;
      for (int64_t i = 0; i < n.Const(); ++i) from.push_back((i + n.Const() - shift.Const()) % n.Const());
      return b.Gather(x, b.Ints(from), axis);
    }
  } else {
    shift = Mod(shift, Max(n, 1));
  }
  return b.Concat({b.Slice(x, axis, n - shift, INT64_MAX), b.Slice(x, axis, 0, n - shift)}, axis);
}

Val Roll(Onnx& b, Val self, Dims shifts, Ints dims) {
  if (self.IsScalar()) return self;
  if (dims.empty()) return b.Reshape(RollAlong(b, b.Flatten1D(self), 0, shifts[0]), DimVec(self.shape()));
  for (size_t i = 0; i < dims.size(); ++i) self = RollAlong(b, self, Axis(dims[i], self.rank()), shifts[i]);
  return self;
}

Val Flip(Onnx& b, Val self, IntVec dims) {
  if (self.IsScalar() || dims.empty()) return self;
  for (int64_t& d : dims) d = Axis(d, self.rank());
  const auto each = [&](int64_t value) { return b.Ints(std::vector<int64_t>(dims.size(), value)); };
  return b.OnnxOps::Slice(self, each(-1), each(INT64_MIN), b.Ints(dims), each(-1));
}

// A quarter turn from the first dim to the second, k times.
Val Rot90(Onnx& b, Val self, int64_t k, Ints dims) {
  const int64_t from = Axis(dims[0], self.rank()), to = Axis(dims[1], self.rank());
  IntVec swap = Axes(0, self.rank());
  std::swap(swap[static_cast<size_t>(from)], swap[static_cast<size_t>(to)]);
  switch ((k % 4 + 4) % 4) {
    case 1: return b.Transpose(Flip(b, self, {to}), swap);
    case 2: return Flip(b, self, {from, to});
    case 3: return b.Transpose(Flip(b, self, {from}), swap);
    default: return self;
  }
}

// All tuples of one element of each vector, the last one fastest.
Val CartesianProduct(Onnx& b, const Vals& tensors) {
  if (tensors.size() == 1) return tensors[0];
  DimVec grid;
  for (const Val& x : tensors) grid.push_back(x.dim(0));
  Vals columns;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Val laid = LaidAlong(b, b.Cast(tensors[i], ResultDType(b)), static_cast<int64_t>(i), std::ssize(tensors));
    columns.push_back(b.Reshape(b.Expand(laid, grid), {Product(grid), 1}));
  }
  return b.Concat(columns, 1);
}

// All index tuples i0 < i1 < ... (<= with replacement), in lexicographic order: where that holds in an n x n x ... grid.
Val Combinations(Onnx& b, Val self, int64_t r, bool with_replacement) {
  if (r == 0) return b.Zeros({0}, self.dtype());
  const Val range = Iota(b, self.dim(0));
  OptVal mask;
  for (int64_t i = 0; i + 1 < r; ++i) {
    const Val left = LaidAlong(b, range, i, r), right = LaidAlong(b, range, i + 1, r);
    const Val ordered = with_replacement ? b.LessOrEqual(left, right) : b.Less(left, right);
    mask = mask ? b.And(*mask, ordered) : ordered;
  }
  if (!mask) return b.Reshape(self, {self.dim(0), 1});
  return b.Gather(self, b.Transpose(b.NonZero(*mask), {1, 0}), 0);
}

// x with `before` and `after` zeros along axis
Val ZeroPad(Onnx& b, Val x, int64_t axis, SymExpr before, SymExpr after) {
  if (before == 0 && after == 0) return x;
  DimVec pads(std::vector<SymExpr>(static_cast<size_t>(2 * x.rank()), 0));
  pads[static_cast<size_t>(axis)] = before;
  pads[static_cast<size_t>(x.rank() + axis)] = after;
  return b.Pad(x, b.Shape(pads));
}

Val BlockDiag(Onnx& b, const Vals& tensors) {
  const SymExpr width = ResultShape(b)[1];
  SymExpr at = 0;
  Vals rows;
  for (const Val& tensor : tensors) {
    const Val block = WithRank(b, b.Cast(tensor, ResultDType(b)), 2);
    rows.push_back(ZeroPad(b, block, 1, at, width - at - block.dim(1)));
    at = at + block.dim(1);
  }
  return b.Concat(rows, 0);
}

// out[..., i, i + offset] = self[..., i], else 0. Its two dims come to stand at dim1 and dim2.
Val DiagEmbed(Onnx& b, Val self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t rank = self.rank() + 1, shift = offset < 0 ? -offset : offset;
  const SymExpr n = self.dim(-1) + shift;
  // Column j of the matrix holds self[j - max(offset, 0)].
  const Val row = ZeroPad(b, self, self.rank() - 1, offset > 0 ? shift : 0, offset > 0 ? 0 : shift);
  const Val matrix = b.Where(OnDiagonal(b, n, n, offset), b.Unsqueeze(row, {-2}), b.Constant(0, self.dtype()));
  return b.Transpose(matrix, MoveDims(rank, {-2, -1}, {dim1, dim2}));
}

Val Diag(Onnx& b, Val self, int64_t offset) {
  if (self.rank() == 1) return DiagEmbed(b, self, offset, 0, 1);
  const SymExpr cols = self.dim(1), start = offset >= 0 ? SymExpr(offset) : cols * -offset;
  return b.Slice(b.Flatten1D(self), 0, start, start + ResultShape(b)[0] * (cols + 1), cols + 1);
}

// x ** [0, 1, ..., n - 1], one power a column
Val Vander(Onnx& b, Val x, bool increasing) {
  const SymExpr n = ResultShape(b).back();
  const Val powers = increasing ? Iota(b, n) : Progression(b, n - 1, -1, n);
  const Val base = b.Unsqueeze(b.Cast(AtLeast1D(b, x), ResultDType(b)), {-1});
  return b.Pow(base, b.Cast(powers, ResultDType(b)));
}

// x[1:] and x[:-1] along axis
struct Neighbours {
  Val next, previous;
};
Neighbours NeighboursAlong(Onnx& b, Val x, int64_t axis) { return {b.Slice(x, axis, 1, INT64_MAX), b.Slice(x, axis, 0, -1)}; }

// (y[1:] + y[:-1]) / 2 * dx: the areas under the steps.
Val Trapezoids(Onnx& b, Val y, int64_t axis, OptVal x, const Scalar& dx) {
  const DType dtype = ResultDType(b);
  const auto [next, previous] = NeighboursAlong(b, b.Cast(y, dtype), axis);
  if (!x) return (next + previous) * b.Constant(dx.AsDouble() / 2, dtype);
  const Val points = b.Cast(*x, dtype);
  const Val laid = points.rank() == 1 ? LaidAlong(b, points, axis, y.rank()) : WithRank(b, points, y.rank());
  const auto [to, from] = NeighboursAlong(b, laid, axis);
  return (next + previous) * (to - from) / 2;
}

Val Trapezoid(Onnx& b, Val y, int64_t dim, OptVal x, const Scalar& dx) {
  const int64_t axis = Axis(dim, y.rank());
  return b.ReduceSum(Trapezoids(b, y, axis, x, dx), {axis});
}

Val CumulativeTrapezoid(Onnx& b, Val y, int64_t dim, OptVal x, const Scalar& dx) {
  const int64_t axis = Axis(dim, y.rank());
  return b.CumSum(Trapezoids(b, y, axis, x, dx), b.IntScalar(axis));
}

// n times x[1:] - x[:-1]; of bool: where they differ.
Val Diff(Onnx& b, const aten::diff& op) {
  const int64_t axis = Axis(op.dim, op.self.rank());
  Vals parts;
  if (op.prepend) parts.push_back(b.Cast(*op.prepend, ResultDType(b)));
  parts.push_back(b.Cast(op.self, ResultDType(b)));
  if (op.append) parts.push_back(b.Cast(*op.append, ResultDType(b)));
  Val x = b.Concat(parts, axis);
  const SymExpr result = ResultShape(b)[static_cast<size_t>(axis)];
  if (result == 0) return b.Zeros(DimVec(ResultShape(b)), ResultDType(b));
  for (int64_t i = 0; i < op.n; ++i) {
    const auto [next, previous] = NeighboursAlong(b, x, axis);
    x = x.dtype() == DType::Bool ? b.Xor(next, previous) : next - previous;
  }
  return x;
}

// [..., c * r * r, h, w] -> [..., c, h * r, w * r]
Val PixelShuffle(Onnx& b, Val self, int64_t r) {
  const SymExpr channels = self.dim(-3), c = ResultShape(b)[static_cast<size_t>(self.rank() - 3)], h = self.dim(-2), w = self.dim(-1);
  const SymExpr n = Product(self.shape().first(static_cast<size_t>(self.rank() - 3)));
  if (IsFloat(self.dtype()))  // what ONNX Runtime has a kernel for
    return b.Reshape(b.DepthToSpace(b.Reshape(self, {n, channels, h, w}), {.blocksize = r, .mode = "CRD"}), DimVec(ResultShape(b)));
  return b.Reshape(b.Transpose(b.Reshape(self, {n, c, r, r, h, w}), {0, 1, 4, 2, 5, 3}), DimVec(ResultShape(b)));
}

// [..., c, h * r, w * r] -> [..., c * r * r, h, w]
Val PixelUnshuffle(Onnx& b, Val self, int64_t r) {
  const SymExpr n = Product(self.shape().first(static_cast<size_t>(self.rank() - 3))), c = self.dim(-3);
  const SymExpr h = ResultShape(b)[static_cast<size_t>(self.rank() - 2)], w = ResultShape(b).back();
  return b.Reshape(b.Transpose(b.Reshape(self, {n, c, h, r, w, r}), {0, 1, 3, 5, 2, 4}), DimVec(ResultShape(b)));
}

// [n, groups * c, ...] -> [n, c * groups, ...]
Val ChannelShuffle(Onnx& b, Val self, SymExpr groups) {
  const Val split = b.Reshape(self, WithDims(self.shape(), 1, 1, {groups, FloorDiv(self.dim(1), groups)}));
  return b.Reshape(b.Transpose(split, MoveDims(split.rank(), {1}, {2})), DimVec(self.shape()));
}
// All as long as the longest, with padding behind or before, side by side.
Val PadSequence(Onnx& b, const aten::pad_sequence& op) {
  SymExpr longest = 0;
  for (const Val& x : op.sequences) longest = Max(longest, x.dim(0));
  const int64_t axis = op.batch_first ? 0 : 1;
  Vals rows;
  for (const Val& x : op.sequences) {
    DimVec rest(x.shape());
    rest[0] = longest - x.dim(0);
    const Val filler = b.Full(rest, op.padding_value, x.dtype());
    const Val padded = rest[0] == 0 ? x : b.Concat(op.padding_side == "left" ? Vals{filler, x} : Vals{x, filler}, 0);
    rows.push_back(b.Unsqueeze(padded, {axis}));
  }
  return b.Concat(rows, axis);
}

}  // namespace

void JoinRules(Rules<Onnx>& r) {
  r.On<PadSequence>();
  OnEach<aten::cat, aten::concat, aten::concatenate>(r, [](Onnx& b, const auto& op) { return Cat(b, op.tensors, op.dim); });
  OnEach<aten::stack, aten::_stack>(r, [](Onnx& b, const auto& op) { return Stack(b, op.tensors, op.dim); });
  r.On([](Onnx& b, const aten::_chunk_cat& op) { return ChunkCat(b, op.tensors, op.dim, op.num_chunks); });
  r.On([](Onnx& b, const aten::hstack& op) { return Cat(b, AtLeast(b, op.tensors, 1), op.tensors[0].rank() < 2 ? 0 : 1); });
  OnEach<aten::vstack, aten::row_stack>(r, [](Onnx& b, const auto& op) { return Cat(b, AtLeast(b, op.tensors, 2), 0); });
  r.On([](Onnx& b, const aten::dstack& op) { return Cat(b, AtLeast(b, op.tensors, 3), 2); });
  r.On([](Onnx& b, const aten::column_stack& op) { return ColumnStack(b, op.tensors); });
  r.On([](Onnx& b, const aten::block_diag& op) { return BlockDiag(b, op.tensors); });
  r.On([](Onnx& b, const aten::cartesian_prod& op) { return CartesianProduct(b, op.tensors); });
  r.On([](Onnx& b, const aten::combinations& op) { return Combinations(b, op.self, op.r, op.with_replacement); });

  r.On([](Onnx& b, const aten::repeat& op) { return Repeat(b, op.self, DimVec(op.repeats)); });
  r.On([](Onnx& b, const aten::tile& op) { return Repeat(b, op.self, DimVec(op.dims)); });
  r.On([](Onnx& b, const aten::repeat_interleave_self_int& op) { return RepeatEach(b, op.self, op.repeats, op.dim); });
  r.On([](Onnx& b, const aten::repeat_interleave_self_Tensor& op) { return RepeatByTensor(b, op.self, op.repeats, op.dim); });
  r.On([](Onnx& b, const aten::repeat_interleave_Tensor& op) { return RepeatedIndices(b, op.repeats); });

  r.On([](Onnx& b, const aten::roll& op) { return Roll(b, op.self, op.shifts, op.dims); });
  r.On([](Onnx& b, const aten::flip& op) { return Flip(b, op.self, op.dims); });
  r.On([](Onnx& b, const aten::fliplr& op) { return Flip(b, op.self, {1}); });
  r.On([](Onnx& b, const aten::flipud& op) { return Flip(b, op.self, {0}); });
  r.On([](Onnx& b, const aten::rot90& op) { return Rot90(b, op.self, op.k, op.dims); });

  r.On([](Onnx& b, const aten::diag& op) { return Diag(b, op.self, op.diagonal); });
  r.On([](Onnx& b, const aten::diag_embed& op) { return DiagEmbed(b, op.self, op.offset, op.dim1, op.dim2); });
  r.On([](Onnx& b, const aten::diagflat& op) { return DiagEmbed(b, b.Flatten1D(op.self), op.offset, 0, 1); });
  r.On([](Onnx& b, const aten::tril& op) { return b.Trilu(op.self, b.Int(op.diagonal), {.upper = 0}); });
  r.On([](Onnx& b, const aten::triu& op) { return b.Trilu(op.self, b.Int(op.diagonal), {.upper = 1}); });

  r.On([](Onnx& b, const aten::vander& op) { return Vander(b, op.x, op.increasing); });
  r.On([](Onnx& b, const aten::linalg_vander& op) { return Vander(b, op.x, true); });
  OnEach<aten::trapezoid_dx, aten::trapz_dx>(r, [](Onnx& b, const auto& op) { return Trapezoid(b, op.y, op.dim, {}, op.dx); });
  OnEach<aten::trapezoid_x, aten::trapz_x>(r, [](Onnx& b, const auto& op) { return Trapezoid(b, op.y, op.dim, op.x, 1); });
  r.On([](Onnx& b, const aten::cumulative_trapezoid_dx& op) { return CumulativeTrapezoid(b, op.y, op.dim, {}, op.dx); });
  r.On([](Onnx& b, const aten::cumulative_trapezoid_x& op) { return CumulativeTrapezoid(b, op.y, op.dim, op.x, 1); });
  r.On<Diff>();

  r.On([](Onnx& b, const aten::pixel_shuffle& op) { return PixelShuffle(b, op.self, op.upscale_factor); });
  r.On([](Onnx& b, const aten::pixel_unshuffle& op) { return PixelUnshuffle(b, op.self, op.downscale_factor); });
  OnEach<aten::channel_shuffle, aten::native_channel_shuffle>(r, [](Onnx& b, const auto& op) { return ChannelShuffle(b, op.self, op.groups); });
}

}  // namespace pt2onnx
