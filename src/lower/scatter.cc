// Writing by index tensors and masks: index_put, scatter, index_add and their kin.
//
//   %y = aten::index_put(%x, [%mask], %v)                ->    %y = Where(%mask, %v, %x)          if %v is one number
//   %y = aten::index_put(%x, [%i], %v)                   ->    %y = ScatterND(%x, Unsqueeze(%i), %v)
//   %y = aten::scatter_add(%x, 1, %i, %src)              ->    %y = ScatterElements(%x, %i, %src, axis=1, reduction="add")
#include <algorithm>

#include "ir/infer.h"
#include "ir/sym_facts.h"
#include "lower/addressing.h"

namespace pt2onnx {
namespace {

// ---- index_put --------------------------------------------------------------------------------------------------------------------------

// Values that are the same for all true elements of a mask: then out = mask ? values : self.
std::optional<Val> PutByMask(Onnx& b, Val self, const OptVals& indices, Val values, bool accumulate) {
  const auto sole = SoleMaskOf(b, indices);
  if (!sole || sole->mask.IsScalar()) return std::nullopt;
  const int64_t behind = self.rank() - sole->dim - sole->mask.rank();
  const bool one = values.numel() == 1;
  if (!one && values.rank() > behind) return std::nullopt;
  const Val value = one ? b.Reshape(values, DimVec()) : values;
  return b.Where(b.Unsqueeze(sole->mask, Axes(sole->mask.rank(), sole->mask.rank() + behind)), accumulate ? self + value : value, self);
}

// values, which broadcast to self[indices], with the addressed dims in front: [broadcast of the indices..., other dims of self...]
Val FrontValues(Onnx& b, const Addressing& a, Val self, Val values) {
  DimVec rest;
  for (int64_t d = 0; d < self.rank(); ++d)
    if (std::ranges::find(a.dims, d) == a.dims.end()) rest.push_back(self.dim(d));
  const int64_t rank = a.rank + std::ssize(rest);
  if (a.place > 0 && values.rank() > std::ssize(rest) - a.place)
    values = b.Transpose(WithRank(b, values, rank), MoveDims(rank, Axes(a.place, a.place + a.rank), Axes(0, a.rank)));
  if (auto shape = BroadcastDims(b, a)) {
    shape->insert(shape->end(), rest.begin(), rest.end());
    return b.Expand(values, *shape);
  }
  return b.OnnxOps::Expand(values, rest.empty() ? BroadcastShapeOf(b, a) : b.Concat({BroadcastShapeOf(b, a), b.Shape(rest)}, 0));
}

// out = self; out[indices] = values   (+= when accumulate)
Val IndexPut(Onnx& b, Val self, const OptVals& indices, Val values, bool accumulate) {
  if (const auto spread = ScalarMasksSpread(b, self, indices)) return b.Reshape(IndexPut(b, spread->self, spread->indices, values, accumulate), DimVec(self.shape()));
  values = b.Cast(values, self.dtype());
  if (const auto put = PutByMask(b, self, indices, values, accumulate)) return *put;
  const Addressing a = AddressingOf(b, self, indices);
  // One index vector: along its dim.
  if (a.dims.size() == 1 && a.rank <= 1 && !a.stacked && (accumulate || a.dims[0] > 0)) {
    const Val index = AtLeast1D(b, a.coords[0]);
    if (a.rank == 0 && values.rank() > self.rank() - 1 - a.place) values = b.Unsqueeze(WithRank(b, values, self.rank() - 1), {a.place});
    const Val v = b.Expand(values, WithDims(self.shape(), a.dims[0], 1, {index.dim(0)}));
    return ScatterAlong(b, self, a.dims[0], index, v, accumulate ? "add" : "none");
  }
  const IntVec perm = a.Front(self.rank());
  const Val front = b.Transpose(self, perm);
  const Val v = FrontValues(b, a, self, values);
  if (!accumulate) return b.Transpose(b.ScatterND(front, Stacked(b, a), v), InversePerm(perm));
  // Merged to one dim, since ONNX Runtime's ScatterND does not add safely.
  const int64_t k = std::ssize(a.dims);
  DimVec merged = {Product(front.shape().first(static_cast<size_t>(k)))};
  const DimVec rest(front.shape().subspan(static_cast<size_t>(k)));
  merged.insert(merged.end(), rest.begin(), rest.end());
  const Val position = Linear(b, a, self);
  const Val count = b.ShapeOf(position);
  const Val rows_shape = rest.empty() ? count : b.Concat({count, b.Shape(rest)}, 0);
  const Val rows = b.OnnxOps::Reshape(v, rows_shape, {.allowzero = 1});
  const Val index = b.OnnxOps::Expand(b.Unsqueeze(position, Axes(1, 1 + std::ssize(rest))), rows_shape);
  const Val added = ScatterAt(b, b.Reshape(front, merged), 0, index, rows, "add");
  return b.Transpose(b.Reshape(added, DimVec(front.shape())), InversePerm(perm));
}

// Where the mask is false nothing is added, wherever the index points.
Val UnsafeMaskedIndexPutAccumulate(Onnx& b, const aten::_unsafe_masked_index_put_accumulate& op) {
  if (op.self.numel() == 0) return op.self;
  OptVals indices;
  for (size_t i = 0; i < op.indices.size(); ++i) {
    const SymExpr n = op.self.dim(static_cast<int64_t>(i));
    if (op.indices[i]) indices.push_back(b.Clip(AsIndex(b, *op.indices[i]), b.Int(-n), b.Int(n - 1)));
    else indices.push_back(std::nullopt);
  }
  const Val values = b.Where(op.mask, op.values, b.Constant(0, op.values.dtype()));
  return IndexPut(b, op.self, indices, values, true);
}

// ---- scatter ----------------------------------------------------------------------------------------------------------------------------

// The part of src that index has elements for.
Val Fitted(Onnx& b, Val src, Val index) {
  IntVec axes;
  DimVec ends;
  for (int64_t i = 0; i < src.rank(); ++i) {
    if (src.dim(i) == index.dim(i)) continue;
    axes.push_back(i);
    ends.push_back(index.dim(i));
  }
  if (axes.empty()) return src;
  return b.OnnxOps::Slice(src, b.Ints(std::vector<int64_t>(axes.size(), 0)), b.Shape(ends), b.Ints(axes));
}

// floor(sum / count) of integers: the quotient is one lower where the signs differ and something remains.
Val Mean(Onnx& b, Val sum, Val count) {
  if (!IsIntegral(sum.dtype())) return sum / count;
  const Val quotient = sum / count, zero = b.Constant(0, sum.dtype());
  const Val lower = b.And(b.Less(sum, zero), b.Not(b.Equal(quotient * count, sum)));
  return quotient - b.Cast(lower, sum.dtype());
}

// self with src combined into it at index along axis. `put(x, v, how)` writes v at the index's places in x; v of rank 0 fills.
template <class Put>
Val Reduced(Onnx& b, Val self, Val src, std::string_view reduce, bool include_self, const Put& put) {
  const DType dtype = self.dtype();
  const auto number = [&](Scalar x) { return b.Constant(x, dtype); };
  const std::string_view how = reduce == "sum" || reduce == "mean" || reduce == "add" ? "add"
                               : reduce == "prod" || reduce == "multiply"             ? "mul"
                               : reduce == "amax"                                     ? "max"
                                                                                      : "min";
  Val start = self;
  if (!include_self) {  // nothing of self counts where something is written: there the neutral element stands first
    Val neutral = number(how == "mul" ? 1 : 0);
    if (how == "max" || how == "min") neutral = number(ExtremeOf(dtype, how == "min"));
    start = put(self, neutral, "none");
  }
  const Val out = put(start, src, how);
  if (reduce != "mean") return out;
  const Val counted = include_self ? b.Expand(number(1), DimVec(self.shape())) : b.Expand(number(0), DimVec(self.shape()));
  const Val count = put(counted, number(1), "add");
  return Mean(b, out, include_self ? count : b.Max(count, number(1)));
}

// scatter, scatter_add, scatter_reduce: index has self's rank and counts src's elements.
Val Scatter(Onnx& b, Val self, int64_t dim, Val index, OptVal src, std::optional<Scalar> value, std::string_view reduce, bool include_self) {
  if (index.numel() == 0) return self;
  const int64_t axis = Axis(dim, self.rank());
  const Val x = AtLeast1D(b, self), at = AtLeast1D(b, AsIndex(b, index));
  const Val v = src ? Fitted(b, AtLeast1D(b, *src), at) : b.Constant(*value, self.dtype());
  const auto put = [&](Val into, Val what, std::string_view how) { return ScatterAt(b, into, axis, at, b.Expand(what, DimVec(at.shape())), how); };
  const Val out = reduce.empty() ? put(x, v, "none") : Reduced(b, x, v, reduce, include_self, put);
  return b.Reshape(out, DimVec(self.shape()));
}

// ---- index_add and its kin: slices along dim ----------------------------------------------------------------------------------------------

struct Slices {
  Val self, index, source;
  int64_t axis;
};
Slices SlicesOf(Onnx& b, Val self, int64_t dim, Val index, Val source) {
  return {AtLeast1D(b, self), AtLeast1D(b, AsIndex(b, index)), AtLeast1D(b, b.Cast(source, self.dtype())), Axis(dim, self.rank())};
}

Val IndexAdd(Onnx& b, const aten::index_add& op) {
  const Slices s = SlicesOf(b, op.self, op.dim, op.index, op.source);
  return b.Reshape(ScatterAlong(b, s.self, s.axis, s.index, op.alpha.Is(1) ? s.source : s.source * op.alpha, "add"), DimVec(op.self.shape()));
}

Val IndexCopy(Onnx& b, const aten::index_copy& op) {
  const Slices s = SlicesOf(b, op.self, op.dim, op.index, op.source);
  const Val source = b.Expand(s.source, WithDims(s.self.shape(), s.axis, 1, {s.index.dim(0)}));
  return b.Reshape(ScatterAlong(b, s.self, s.axis, s.index, source, "none"), DimVec(op.self.shape()));
}

Val IndexFill(Onnx& b, Val self, int64_t dim, Val index, Val value) {
  const Slices s = SlicesOf(b, self, dim, index, value);
  const Val source = b.Expand(b.Reshape(s.source, DimVec()), WithDims(s.self.shape(), s.axis, 1, {s.index.dim(0)}));
  return b.Reshape(ScatterAlong(b, s.self, s.axis, s.index, source, "none"), DimVec(self.shape()));
}

Val IndexReduce(Onnx& b, const aten::index_reduce& op) {
  const Slices s = SlicesOf(b, op.self, op.dim, op.index, op.source);
  const DimVec shape(s.source.shape());
  const auto put = [&](Val into, Val what, std::string_view how) { return ScatterAlong(b, into, s.axis, s.index, b.Expand(what, shape), how); };
  return b.Reshape(Reduced(b, s.self, s.source, op.reduce, op.include_self, put), DimVec(op.self.shape()));
}

// ---- Masks --------------------------------------------------------------------------------------------------------------------------------

Val MaskedFill(Onnx& b, Val self, Val mask, Val value) { return b.Where(b.Cast(mask, DType::Bool), b.Cast(value, self.dtype()), self); }

// The k-th true element of the mask becomes source's k-th element.
Val MaskedScatter(Onnx& b, const aten::masked_scatter& op) {
  const DimVec shape(ResultShape(b));
  const Val places = b.Transpose(b.NonZero(b.Expand(b.Cast(op.mask, DType::Bool), shape)), {1, 0});
  const Val count = b.OnnxOps::Shape(places, {.end = 1});
  const Val source = b.OnnxOps::Slice(b.Flatten1D(b.Cast(op.source, op.self.dtype())), b.Ints({0}), count);
  return b.ScatterND(b.Expand(op.self, shape), places, source);
}

// self.flat[index] = source   (+= when accumulate)
Val Put(Onnx& b, const aten::put& op) {
  const Val source = b.Flatten1D(b.Cast(op.source, op.self.dtype())), index = b.Flatten1D(op.index);
  const Val out = ScatterAt(b, b.Flatten1D(op.self), 0, index, source, op.accumulate ? "add" : "none");
  return b.Reshape(out, DimVec(op.self.shape()));
}

}  // namespace

void ScatterRules(Rules<Onnx>& r) {
  OnEach<aten::index_put, aten::_unsafe_index_put, aten::_index_put_impl>(
      r, [](Onnx& b, const auto& op) { return IndexPut(b, op.self, op.indices, op.values, op.accumulate); });
  r.On<UnsafeMaskedIndexPutAccumulate>();

  r.On([](Onnx& b, const aten::scatter_src& op) { return Scatter(b, op.self, op.dim, op.index, op.src, {}, "", true); });
  r.On([](Onnx& b, const aten::scatter_value& op) { return Scatter(b, op.self, op.dim, op.index, {}, op.value, "", true); });
  r.On([](Onnx& b, const aten::scatter_reduce& op) { return Scatter(b, op.self, op.dim, op.index, op.src, {}, op.reduce, true); });
  r.On([](Onnx& b, const aten::scatter_value_reduce& op) { return Scatter(b, op.self, op.dim, op.index, {}, op.value, op.reduce, true); });
  r.On([](Onnx& b, const aten::scatter_add& op) { return Scatter(b, op.self, op.dim, op.index, op.src, {}, "add", true); });
  r.On([](Onnx& b, const aten::scatter_reduce_two& op) { return Scatter(b, op.self, op.dim, op.index, op.src, {}, op.reduce, op.include_self); });

  r.On<IndexAdd>();
  r.On<IndexCopy>();
  r.On([](Onnx& b, const aten::index_fill_int_Scalar& op) { return IndexFill(b, op.self, op.dim, op.index, b.Constant(op.value, op.self.dtype())); });
  r.On([](Onnx& b, const aten::index_fill_int_Tensor& op) { return IndexFill(b, op.self, op.dim, op.index, op.value); });
  r.On<IndexReduce>();

  r.On([](Onnx& b, const aten::masked_fill_Scalar& op) { return MaskedFill(b, op.self, op.mask, b.Constant(op.value, op.self.dtype())); });
  r.On([](Onnx& b, const aten::masked_fill_Tensor& op) { return MaskedFill(b, op.self, op.mask, op.value); });
  r.On<MaskedScatter>();
  r.On<Put>();
}

}  // namespace pt2onnx
