// Core ATen: tensors out of nothing, by full and arange, and writes by index, by index_put and where.
//
//   %y = aten::zeros_like(%x)    ->    %y = aten::full([2, 3], 0)
#include "decomp/core.h"

namespace pt2onnx {
namespace {

template <class Op, int value>
void Filled(Rules<Aten>& r) {
  r.On([](Aten& b, const Op&) { return b(aten::full{.size = RecordedShape(b), .fill_value = Scalar(value), .dtype = RecordedDType(b)}); });
}

template <class Op>
void CountFrom(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) {
    Scalar start = 0;
    if constexpr (requires { op.start; }) start = op.start;
    return b(aten::arange_start_step{.start = start, .end = op.end, .step = 1, .dtype = RecordedDType(b)});
  });
}

// row >= column - diagonal (the lower triangle), row <= column - diagonal (the upper one)
Val Triangle(Aten& b, Val x, SymExpr diagonal, bool lower) {
  const Val rows = Unsqueeze(b, Iota(b, x.dim(-2)), -1);
  const Val columns = b(aten::sub_Scalar{.self = Iota(b, x.dim(-1)), .other = Scalar(diagonal)});
  const Val kept = lower ? b(aten::ge_Tensor{.self = rows, .other = columns}) : b(aten::le_Tensor{.self = rows, .other = columns});
  return WhereElse(b, kept, x, 0);
}

Val Eye(Aten& b, SymExpr n, SymExpr m) {
  const Val hit = b(aten::eq_Tensor{.self = Unsqueeze(b, Iota(b, n), -1), .other = Iota(b, m)});
  return b.Cast(hit, RecordedDType(b));
}

// The index at its place behind whole dims: x[:, :, index]. A tensor of rank 0 counts as one element.
struct Indexed {
  Val self;
  OptVals indices;
};
Indexed Index(Aten& b, Val self, int64_t dim, Val index) {
  if (self.rank() == 0) self = b.Reshape(self, {1});
  OptVals indices(At(dim, self.rank()));
  indices.push_back(b.Cast(b.Reshape(index, {index.numel()}), DType::I64));
  return {self, indices};
}
Val Put(Aten& b, Val self, int64_t dim, Val index, Val values, bool accumulate) {
  const Indexed at = Index(b, self, dim, index);
  const Val out = b(aten::index_put{.self = at.self, .indices = at.indices, .values = values, .accumulate = accumulate});
  return b.Reshape(out, self.shape());
}
Val AtLeastVector(Aten& b, Val x) { return x.rank() == 0 ? b.Reshape(x, {1}) : x; }

Val IndexAdd(Aten& b, const aten::index_add& op) {
  const Val source = op.alpha.Is(1) ? op.source : b(aten::mul_Scalar{.self = op.source, .other = op.alpha});
  return Put(b, op.self, op.dim, op.index, AtLeastVector(b, b.Cast(source, op.self.dtype())), true);
}

void Writes(Rules<Aten>& r) {
  r.On<IndexAdd>();
  r.On([](Aten& b, const aten::index_copy& op) { return Put(b, op.self, op.dim, op.index, AtLeastVector(b, op.source), false); });
  r.On([](Aten& b, const aten::index_fill_int_Scalar& op) { return Put(b, op.self, op.dim, op.index, Number(b, op.value, op.self.dtype()), false); });
  r.On([](Aten& b, const aten::index_fill_int_Tensor& op) { return Put(b, op.self, op.dim, op.index, b.Cast(op.value, op.self.dtype()), false); });
  r.On([](Aten& b, const aten::masked_fill_Scalar& op) { return WhereNumber(b, op.mask, op.value, op.self); });
  r.On([](Aten& b, const aten::masked_fill_Tensor& op) { return Where(b, op.mask, b.Cast(op.value, op.self.dtype()), op.self); });
  r.On([](Aten& b, const aten::_unsafe_index_put& op) {
    return b(aten::index_put{.self = op.self, .indices = op.indices, .values = op.values, .accumulate = op.accumulate});
  });
  r.On([](Aten& b, const aten::_index_put_impl& op) {
    return b(aten::index_put{.self = op.self, .indices = op.indices, .values = op.values, .accumulate = op.accumulate});
  });
  r.On([](Aten& b, const aten::_unsafe_index_Tensor& op) { return b(aten::index_Tensor{.self = op.self, .indices = op.indices}); });
  r.On([](Aten& b, const aten::where_ScalarOther& op) {
    return Where(b, op.condition, b.Cast(op.self, RecordedDType(b)), Number(b, op.other, RecordedDType(b)));
  });
  r.On([](Aten& b, const aten::where_ScalarSelf& op) {
    return Where(b, op.condition, Number(b, op.self, RecordedDType(b)), b.Cast(op.other, RecordedDType(b)));
  });
  r.On([](Aten& b, const aten::where_Scalar& op) {
    return Where(b, op.condition, Number(b, op.self, RecordedDType(b)), Number(b, op.other, RecordedDType(b)));
  });
}

}  // namespace

void CoreCreation(Rules<Aten>& r) {
  Filled<aten::empty_like, 0>(r);
  Filled<aten::new_empty, 0>(r);
  Filled<aten::new_ones, 1>(r);
  Filled<aten::new_zeros, 0>(r);
  Filled<aten::ones, 1>(r);
  Filled<aten::ones_like, 1>(r);
  Filled<aten::zeros, 0>(r);
  Filled<aten::zeros_like, 0>(r);
  r.On([](Aten& b, const aten::new_full& op) { return b(aten::full{.size = op.size, .fill_value = op.fill_value, .dtype = RecordedDType(b)}); });
  CountFrom<aten::arange>(r);
  CountFrom<aten::arange_start>(r);
  r.On([](Aten& b, const aten::tril& op) { return Triangle(b, op.self, op.diagonal, true); });
  r.On([](Aten& b, const aten::triu& op) { return Triangle(b, op.self, op.diagonal, false); });
  r.On([](Aten& b, const aten::eye& op) { return Eye(b, op.n, op.n); });
  r.On([](Aten& b, const aten::eye_m& op) { return Eye(b, op.n, op.m); });
  Writes(r);
}

}  // namespace pt2onnx
