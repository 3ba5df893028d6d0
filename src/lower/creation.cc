// Tensors made from numbers, casts and copies, numbers read out of tensors, and what leaves no trace in a model: assertions.
//
//   %y : f32[s0, 4] = aten::full([s0, 4], 0.5)    ->    %y = Expand(0.5, [s0, 4])
#include <cmath>

#include "lower/elementary.h"

namespace pt2onnx {
namespace {

constexpr int64_t kInline = 1024;  // so many elements are written down rather than computed

// ---- Casts and copies: of what the program recorded only the dtype matters --------------------------------------------------------------

Val ToRecordedDType(Onnx& b, Val x) { return b.Cast(x, Recorded(b).dtype); }
Val Same(Onnx&, Val x) { return x; }
template <class... Ops>
void Casts(Rules<Onnx>& r) {
  (r.On([](Onnx& b, const Ops& op) { return ToRecordedDType(b, op.self); }), ...);
}

// ---- Filled tensors: shape and dtype are the recorded ones ----------------------------------------------------------------------------

template <int number, class... Ops>
void Filled(Rules<Onnx>& r) {
  (r.On([](Onnx& b, const Ops&) { return b.Full(Recorded(b).shape, number, Recorded(b).dtype); }), ...);
}
Val FillWith(Onnx& b, const Scalar& number) { return b.Full(Recorded(b).shape, number, Recorded(b).dtype); }

// ---- Ranges -------------------------------------------------------------------------------------------------------------------------

// 0, 1, ..., n - 1
Val Iota(Onnx& b, SymExpr n, DType dtype) { return b.Cast(b.OnnxOps::Range(b.IntScalar(0), b.Int(n), b.IntScalar(1)), dtype); }

// start, start + step, ... As many as recorded. Of integers in int64; of floats in float64, as PyTorch computes them.
Val Arange(Onnx& b, const Scalar& start, const Scalar& step) {
  const auto [dtype, n] = std::pair(Recorded(b).dtype, Recorded(b).shape[0]);
  const bool whole = start.IsInt() && step.IsInt();
  if (n.IsConst() && n.Const() <= kInline && !start.IsSymbolic() && !step.IsSymbolic()) {
    std::vector<double> values;
    const bool integers = !IsFloat(dtype);  // PyTorch rounds start and step to the result's dtype first
    for (int64_t i = 0; i < n.Const(); ++i)
      values.push_back(integers ? static_cast<double>(start.AsInt() + i * step.AsInt()) : start.AsDouble() + static_cast<double>(i) * step.AsDouble());
    return b.Tensor({n.Const()}, values, dtype);
  }
  if (whole && step.Is(1) && !start.IsSymbolic() && start.AsInt() == 0) return Iota(b, n, dtype);
  const DType work = whole || !IsFloat(dtype) ? DType::I64 : DType::F64;
  return b.Cast(Iota(b, n, work) * b.Constant(step, work) + b.Constant(start, work), dtype);
}

// start + i step in the first half, end - (n - 1 - i) step in the second, step = (end - start) / (n - 1). For n = 1: start.
Val Linspace(Onnx& b, Val start, Val end, int64_t n) {
  start = Double(b, start), end = Double(b, end);
  std::vector<double> from_start, from_end, first_half;
  for (int64_t i = 0; i < n; ++i) {
    from_start.push_back(static_cast<double>(i));
    from_end.push_back(static_cast<double>(n - 1 - i));
    first_half.push_back(i < n / 2 || n == 1);
  }
  const auto list = [&](const std::vector<double>& values, DType dtype) { return b.Tensor({n}, values, dtype); };
  const Val step = n > 1 ? (end - start) / static_cast<double>(n - 1) : Like(start, 0.0);
  return b.Where(list(first_half, DType::Bool), start + list(from_start, DType::F64) * step, end - list(from_end, DType::F64) * step);
}
Val LinspaceOfNumbers(Onnx& b, const Scalar& start, const Scalar& end, int64_t n, std::optional<double> base) {
  const DType dtype = Recorded(b).dtype;
  if (start.IsSymbolic() || end.IsSymbolic()) {
    const Val line = Linspace(b, b.Constant(start, DType::F64), b.Constant(end, DType::F64), n);
    return base ? b.Pow(Like(line, *base), line) : line;
  }
  const bool integers = !IsFloat(dtype);
  const double low = integers ? static_cast<double>(start.AsInt()) : start.AsDouble(), high = integers ? static_cast<double>(end.AsInt()) : end.AsDouble();
  const double step = n > 1 ? (high - low) / static_cast<double>(n - 1) : 0;
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) {
    const double at = i < n / 2 || n == 1 ? low + static_cast<double>(i) * step : high - static_cast<double>(n - 1 - i) * step;
    values.push_back(base ? std::pow(*base, at) : at);
  }
  return b.Tensor({n}, values, dtype);
}
Val ToPower(Onnx& b, double base, Val line) { return b.Pow(Like(line, base), line); }
Val End(Onnx& b, Val x) { return Double(b, b.Reshape(x, DimVec{})); }
Val End(Onnx& b, const Scalar& x) { return b.Constant(x, DType::F64); }

// Rows and columns of the lower (column <= row + offset) or upper triangle, row by row.
template <class Op>
Val TriangleIndices(Onnx& b, const Op& op, bool lower) {
  std::vector<double> rows, columns;
  for (int64_t i = 0; i < op.row; ++i)
    for (int64_t j = 0; j < op.col; ++j)
      if (lower ? j <= i + op.offset : j >= i + op.offset) rows.push_back(static_cast<double>(i)), columns.push_back(static_cast<double>(j));
  const int64_t n = std::ssize(rows);
  rows.insert(rows.end(), columns.begin(), columns.end());
  return b.Tensor({2, n}, rows, Recorded(b).dtype);
}

Val Eye(Onnx& b) {
  const Type& type = Recorded(b);
  const bool direct = type.dtype == DType::F32 || type.dtype == DType::F64 || type.dtype == DType::I64 || type.dtype == DType::I32;
  const DType work = direct ? type.dtype : DType::F32;
  return b.Cast(b.EyeLike(b.ConstantOfShape(b.Shape(type.shape), 0, work), {.dtype = work}), type.dtype);
}

// The number in a tensor of one element.
Val Item(Onnx& b, Val x) {
  const Type& type = Recorded(b);
  if (x.rank() > 0) x = b.Reshape(x, DimVec{});
  return type.dtype == DType::Unknown ? x : b.Cast(x, type.dtype);
}

template <class... Ops>
void NoTrace(Rules<Onnx>& r) {
  (r.On([](Onnx&, const Ops&) { return Vals{}; }), ...);
}
// They hand on the token that orders them.
template <class... Ops>
void Tokens(Rules<Onnx>& r) {
  (r.On([](Onnx&, const Ops& op) { return op.dep_token; }), ...);
}

}  // namespace

void CreationRules(Rules<Onnx>& r) {
  Casts<aten::_to_copy, aten::to_device, aten::to_dtype, aten::to_dtype_layout, aten::to_other, aten::type_as, aten::_cast_Byte, aten::_cast_Char,
        aten::_cast_Double, aten::_cast_Float, aten::_cast_Half, aten::_cast_Int, aten::_cast_Long, aten::_cast_Short, aten::_autocast_to_full_precision,
        aten::_autocast_to_reduced_precision>(r);
  r.On([](Onnx& b, const prims::convert_element_type& op) { return b.Cast(op.a, op.dtype); });
  UseAll<Same, aten::clone, aten::contiguous, aten::_lazy_clone, prims::clone, prims::device_put, prims::view_of>(r);
  // Of real numbers; those of complex ones are gone (passes/complex).
  UseAll<Same, aten::real, aten::conj, aten::_conj, aten::_conj_copy, aten::conj_physical, aten::_conj_physical>(r);
  r.On([](Onnx& b, const aten::copy& op) { return b.Expand(ToRecordedDType(b, op.src), Recorded(b).shape); });
  r.On([](Onnx& b, const aten::fill_Tensor& op) { return b.Expand(ToRecordedDType(b, op.value), Recorded(b).shape); });

  Filled<0, aten::zeros, aten::zeros_like, aten::new_zeros, aten::zero, aten::_efficientzerotensor, aten::_new_zeros_with_same_feature_meta>(r);
  Filled<1, aten::ones, aten::ones_like, aten::new_ones>(r);
  // Whatever the memory held: zeros are as good as any.
  Filled<0, aten::empty_memory_format, aten::empty_like, aten::empty_permuted, aten::empty_strided, aten::new_empty, aten::new_empty_strided, prims::empty,
         prims::empty_permuted, prims::empty_strided>(r);
  r.On([](Onnx& b, const aten::fill_Scalar& op) { return FillWith(b, op.value); });
  r.On([](Onnx& b, const aten::full& op) { return FillWith(b, op.fill_value); });
  r.On([](Onnx& b, const aten::full_like& op) { return FillWith(b, op.fill_value); });
  r.On([](Onnx& b, const aten::new_full& op) { return FillWith(b, op.fill_value); });
  r.On([](Onnx& b, const aten::scalar_tensor& op) { return b.Constant(op.s, Recorded(b).dtype); });
  r.On([](Onnx& b, const prims::fill& op) { return FillWith(b, op.value); });
  r.On([](Onnx& b, const prims::full& op) { return FillWith(b, op.fill_value); });
  r.On([](Onnx& b, const prims::full_like& op) { return FillWith(b, op.fill_value); });
  r.On([](Onnx& b, const prims::scalar_tensor& op) { return b.Constant(op.s, Recorded(b).dtype); });

  r.On([](Onnx& b, const aten::arange&) { return Arange(b, 0, 1); });
  r.On([](Onnx& b, const aten::arange_start& op) { return Arange(b, op.start, 1); });
  r.On([](Onnx& b, const aten::arange_start_step& op) { return Arange(b, op.start, op.step); });
  r.On([](Onnx& b, const aten::range& op) { return Arange(b, op.start, 1); });
  r.On([](Onnx& b, const aten::range_step& op) { return Arange(b, op.start, op.step); });
  r.On([](Onnx& b, const prims::iota& op) { return Arange(b, op.start, op.step); });
  r.On([](Onnx& b, const aten::linspace& op) { return LinspaceOfNumbers(b, op.start, op.end, op.steps, {}); });
  r.On([](Onnx& b, const aten::linspace_Scalar_Tensor& op) { return Linspace(b, End(b, op.start), End(b, op.end), op.steps); });
  r.On([](Onnx& b, const aten::linspace_Tensor_Scalar& op) { return Linspace(b, End(b, op.start), End(b, op.end), op.steps); });
  r.On([](Onnx& b, const aten::linspace_Tensor_Tensor& op) { return Linspace(b, End(b, op.start), End(b, op.end), op.steps); });
  r.On([](Onnx& b, const aten::logspace& op) { return LinspaceOfNumbers(b, op.start, op.end, op.steps, op.base); });
  r.On([](Onnx& b, const aten::logspace_Scalar_Tensor& op) { return ToPower(b, op.base, Linspace(b, End(b, op.start), End(b, op.end), op.steps)); });
  r.On([](Onnx& b, const aten::logspace_Tensor_Scalar& op) { return ToPower(b, op.base, Linspace(b, End(b, op.start), End(b, op.end), op.steps)); });
  r.On([](Onnx& b, const aten::logspace_Tensor_Tensor& op) { return ToPower(b, op.base, Linspace(b, End(b, op.start), End(b, op.end), op.steps)); });
  r.On([](Onnx& b, const aten::tril_indices& op) { return TriangleIndices(b, op, true); });
  r.On([](Onnx& b, const aten::triu_indices& op) { return TriangleIndices(b, op, false); });
  r.On([](Onnx& b, const aten::eye&) { return Eye(b); });
  r.On([](Onnx& b, const aten::eye_m&) { return Eye(b); });

  UseAll<Item, aten::item, aten::_local_scalar_dense, prims::item>(r);
  NoTrace<aten::_assert_async, aten::_assert_async_msg, aten::_assert_scalar, aten::_assert_tensor_metadata, aten::sym_constrain_range,
          aten::sym_constrain_range_for_size>(r);
  Tokens<aten::_functional_assert_scalar, aten::_functional_assert_async_msg, aten::_functional_sym_constrain_range,
         aten::_functional_sym_constrain_range_for_size>(r);
}

}  // namespace pt2onnx
