// Reading by index tensors and masks: index, gather, take, nonzero, embeddings.
//
//   %y = aten::index.Tensor(%x, [None, %i])     ->    %y = Gather(%x, %i, axis=1)
//   %y = aten::index.Tensor(%x, [%mask])        ->    %y = Compress(%x, %mask, axis=0)
#include <algorithm>
#include <cmath>

#include "ir/infer.h"
#include "lower/addressing.h"

namespace pt2onnx {
namespace {

Val IndexSelect(Onnx& b, const aten::index_select& op) {
  const Val picked = GatherAlong(b, AtLeast1D(b, op.self), AtLeast1D(b, AsIndex(b, op.index)), Axis(op.dim, op.self.rank()));
  return op.self.IsScalar() ? b.Reshape(picked, DimVec()) : picked;
}

// out[i][j] = self[index[i][j]][j]; index may be smaller than self, or empty of any rank.
Val Gather(Onnx& b, Val self, int64_t dim, Val index) {
  if (index.numel() == 0) return b.Zeros(DimVec(ResultShape(b)), self.dtype());
  const Val picked = b.GatherElements(AtLeast1D(b, self), AtLeast1D(b, AsIndex(b, index)), {.axis = Axis(dim, self.rank())});
  return b.Reshape(picked, DimVec(ResultShape(b)));
}

// As gather, but self and index broadcast in the other dims.
Val TakeAlongDim(Onnx& b, const aten::take_along_dim& op) {
  if (!op.dim) return b.Gather(b.Flatten1D(op.self), b.Flatten1D(AsIndex(b, op.indices)), 0);
  const int64_t axis = Axis(*op.dim, op.self.rank());
  const DimVec shape(ResultShape(b));
  const Val self = b.Expand(op.self, WithDims(shape, axis, 1, {op.self.dim(axis)}));
  return b.GatherElements(self, b.Expand(AsIndex(b, op.indices), shape), {.axis = axis});
}

// [how many, rank]; of a rank-0 tensor [how many, 0].
Val NonZero(Onnx& b, Val self) {
  if (!self.IsScalar()) return b.Transpose(b.NonZero(self), {1, 0});
  const Val count = b.Cast(b.Cast(b.Reshape(self, {1}), DType::Bool), DType::I64);
  return b.ConstantOfShape(b.Concat({count, b.Ints({0})}, 0), 0, DType::I64);
}

// One vector for each dim.
Vals NonZeroNumpy(Onnx& b, Val self) {
  const Val where = b.NonZero(AtLeast1D(b, self));
  Vals out;
  for (int64_t i = 0; i < std::max<int64_t>(self.rank(), 1); ++i) out.push_back(b.Select(where, 0, i));
  return out;
}

// The first `size` ones, filled up with fill_value.
Val NonZeroStatic(Onnx& b, const aten::nonzero_static& op) {
  const int64_t rank = op.self.rank();
  const Val found = NonZero(b, op.self);
  return b.Slice(b.Concat({found, b.Full({op.size, rank}, op.fill_value, DType::I64)}, 0), 0, 0, op.size);
}

// Both broadcast; the elements where mask is true.
Val MaskedSelect(Onnx& b, Val self, Val mask) {
  const std::vector<SymExpr> shape = BroadcastShape(self.shape(), mask.shape());
  return b.Compress(b.Flatten1D(b.Expand(self, shape)), b.Flatten1D(b.Expand(mask, shape)), {.axis = 0});
}

// Indices that a mask leaves out may lie anywhere: into the range first.
OptVals Clamped(Onnx& b, Val self, const OptVals& indices) {
  OptVals out;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) {
      out.push_back(std::nullopt);
      continue;
    }
    const SymExpr n = self.dim(static_cast<int64_t>(i));
    out.push_back(b.Clip(AsIndex(b, *indices[i]), b.Int(-n), b.Int(n - 1)));
  }
  return out;
}

// mask ? self[indices] : fill
Val UnsafeMaskedIndex(Onnx& b, const aten::_unsafe_masked_index& op) {
  const Val fill = b.Constant(op.fill, op.self.dtype());
  if (op.self.numel() == 0) return b.Expand(fill, DimVec(ResultShape(b)));
  return b.Where(op.mask, IndexInto(b, op.self, Clamped(b, op.self, op.indices)), fill);
}

// ---- Bags of embeddings -----------------------------------------------------------------------------------------------------------------

struct Bags {
  Val weight, indices, offsets;
  int64_t mode;            // 0 sum, 1 mean, 2 max
  OptVal per_sample_weights;
  bool include_last_offset;
  std::optional<int64_t> padding_idx;
};

// rows [..., n, d] of bags, those of padding left out; counted [..., n, 1]: 1 for each row that counts.
struct BagRows {
  Val rows;
  OptVal counted;
};
BagRows RowsOf(Onnx& b, const Bags& op) {
  const DType dtype = op.weight.dtype();
  const Val indices = AsIndex(b, op.indices);
  Val rows = b.Gather(op.weight, indices, 0);
  if (op.per_sample_weights) rows = rows * b.Unsqueeze(*op.per_sample_weights, {-1});
  if (!op.padding_idx) return {rows, std::nullopt};
  const SymExpr n = op.weight.dim(0);
  const SymExpr padding = *op.padding_idx < 0 ? n + *op.padding_idx : SymExpr(*op.padding_idx);
  const Val is_padding = b.Unsqueeze(b.Equal(indices, b.Int(padding)), {-1});
  const Val nothing = b.Constant(op.mode == 2 ? -INFINITY : 0.0, dtype);
  return {b.Where(is_padding, nothing, rows), b.Cast(b.Not(is_padding), dtype)};
}

// Combined to one row for each bag: `sum` of x over each bag's rows, `most` likewise the largest.
template <class Sum, class Most>
Val Combine(Onnx& b, const Bags& op, const BagRows& bags, const Sum& sum, const Most& most) {
  const DType dtype = op.weight.dtype();
  if (op.mode == 0) return sum(bags.rows);
  const Val ones = bags.counted ? *bags.counted : b.Expand(b.Constant(1, dtype), WithDims(bags.rows.shape(), bags.rows.rank() - 1, 1, {1}));
  const Val count = sum(ones);
  if (op.mode == 1) return sum(bags.rows) / b.Max(count, b.Constant(1, dtype));
  return b.Where(b.Equal(count, b.Constant(0, dtype)), b.Constant(0, dtype), most(bags.rows));  // an empty bag gives zeros
}

Val BagsOfRows(Onnx& b, const Bags& op) {  // indices [bags, n]
  return Combine(b, op, RowsOf(b, op), [&](Val x) { return b.ReduceSum(x, {1}); }, [&](Val x) { return b.ReduceMax(x, {1}); });
}

// indices [n]; bag k starts at offsets[k]. Row i belongs to the last bag that starts at or before i.
Val BagsByOffsets(Onnx& b, const Bags& op) {
  const SymExpr n = op.indices.dim(0), bags = ResultShape(b)[0];
  const DType dtype = op.weight.dtype();
  const Val starts = b.Unsqueeze(AsIndex(b, op.offsets), {1});
  const Val started = b.Cast(b.LessOrEqual(starts, b.Unsqueeze(Iota(b, n), {0})), DType::I64);
  const Val bag = b.ReduceSum(started, {0}) - 1;
  const auto scatter = [&](Val x, double initial, std::string_view how) {
    return ScatterAlong(b, b.Full({bags, x.dim(-1)}, initial, dtype), 0, bag, x, how);
  };
  return Combine(b, op, RowsOf(b, op), [&](Val x) { return scatter(x, 0, "add"); }, [&](Val x) { return scatter(x, -INFINITY, "max"); });
}

Vals EmbeddingBag(Onnx& b, const Bags& op) {
  Vals out = {op.indices.rank() == 2 ? BagsOfRows(b, op) : BagsByOffsets(b, op)};
  for (size_t i = 1; i < b.call().types.size(); ++i) out.push_back(LaterUnsupported(b, i, "only the embeddings of embedding_bag have an ONNX form"));
  return out;
}

// Rows that indices name and whose norm is larger than max_norm are scaled down to it.
Val EmbeddingRenorm(Onnx& b, const aten::embedding_renorm& op) {
  const DType dtype = op.self.dtype();
  const Val max_norm = b.Constant(op.max_norm, dtype);
  Val norm = b.Abs(op.self);
  if (op.norm_type == 1) norm = b.ReduceSum(norm, {1}, true);
  else if (op.norm_type == 2) norm = b.ReduceL2(op.self, {1}, true);
  else if (std::isinf(op.norm_type)) norm = b.ReduceMax(norm, {1}, true);
  else norm = b.Pow(b.ReduceSum(b.Pow(norm, b.Constant(op.norm_type, dtype)), {1}, true), b.Constant(1 / op.norm_type, dtype));
  const Val index = b.Flatten1D(AsIndex(b, op.indices));
  const Val none = b.Full({op.self.dim(0)}, false, DType::Bool);
  const Val named = b.ScatterElements(none, index, b.Expand(b.Constant(true, DType::Bool), DimVec(index.shape())));
  const Val scaled = b.And(b.Unsqueeze(named, {1}), b.Greater(norm, max_norm));
  return b.Where(scaled, op.self * (max_norm / (norm + 1e-7)), op.self);
}

}  // namespace

void IndexRules(Rules<Onnx>& r) {
  OnEach<aten::index_Tensor, aten::_unsafe_index_Tensor>(r, [](Onnx& b, const auto& op) { return IndexInto(b, op.self, op.indices); });
  r.On<UnsafeMaskedIndex>();
  r.On<IndexSelect>();
  r.On([](Onnx& b, const aten::gather& op) { return Gather(b, op.self, op.dim, op.index); });
  r.On([](Onnx& b, const aten::take& op) { return b.Gather(b.Flatten1D(op.self), AsIndex(b, op.index), 0); });
  r.On<TakeAlongDim>();
  r.On([](Onnx& b, const aten::masked_select& op) { return MaskedSelect(b, op.self, op.mask); });

  OnEach<aten::nonzero, aten::argwhere>(r, [](Onnx& b, const auto& op) { return NonZero(b, op.self); });
  r.On<NonZeroStatic>();
  r.On([](Onnx& b, const aten::nonzero_numpy& op) { return NonZeroNumpy(b, op.self); });
  r.On([](Onnx& b, const aten::where& op) { return NonZeroNumpy(b, op.condition); });

  r.On([](Onnx& b, const aten::embedding& op) { return GatherAlong(b, op.weight, AsIndex(b, op.indices), 0); });
  r.On([](Onnx& b, const aten::embedding_bag& op) {
    return EmbeddingBag(b, {op.weight, op.indices, op.offsets, op.mode, op.per_sample_weights, op.include_last_offset, std::nullopt});
  });
  r.On([](Onnx& b, const aten::embedding_bag_padding_idx& op) {
    return EmbeddingBag(b, {op.weight, op.indices, op.offsets, op.mode, op.per_sample_weights, op.include_last_offset, op.padding_idx});
  });
  OnEach<aten::_embedding_bag, aten::_embedding_bag_forward_only>(r, [](Onnx& b, const auto& op) {
    const std::optional<int64_t> padding = op.padding_idx < 0 ? std::nullopt : std::optional(op.padding_idx);
    return EmbeddingBag(b, {op.weight, op.indices, op.offsets, op.mode, op.per_sample_weights, op.include_last_offset, padding});
  });
  r.On<EmbeddingRenorm>();
}

}  // namespace pt2onnx
