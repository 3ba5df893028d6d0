// _foreach_ ops: the same op on each element of a list.
//
//   %y, %z = aten::_foreach_add.Scalar([%a, %b], 2)    ->    %y = aten::add.Scalar(%a, 2)   %z = aten::add.Scalar(%b, 2)
#include "decomp/rules.h"

namespace pt2onnx {
namespace {

template <class F>
Vals Each(const Vals& list, F f) {
  Vals out;
  for (size_t i = 0; i < list.size(); ++i) out.push_back(f(i));
  return out;
}

template <class List, class One>
void Unary(Rules<Aten>& r) {
  r.On([](Aten& b, const List& op) { return Each(op.self, [&](size_t i) { return b(One{op.self[i]}); }); });
}

// (self[i], other[i])
template <class List, class One>
void Pairs(Rules<Aten>& r) {
  r.On([](Aten& b, const List& op) { return Each(op.self, [&](size_t i) { return b(One{op.self[i], op.other[i]}); }); });
}
// (self[i], scalar)
template <class List, class One>
void WithScalar(Rules<Aten>& r) {
  r.On([](Aten& b, const List& op) { return Each(op.self, [&](size_t i) { return b(One{op.self[i], op.scalar}); }); });
}
// (self[i], scalars[i])
template <class List, class One>
void WithScalars(Rules<Aten>& r) {
  r.On([](Aten& b, const List& op) { return Each(op.self, [&](size_t i) { return b(One{op.self[i], op.scalars[i]}); }); });
}

void ForeachUnary(Rules<Aten>& r) {
  Unary<aten::_foreach_abs, aten::abs>(r);
  Unary<aten::_foreach_acos, aten::acos>(r);
  Unary<aten::_foreach_asin, aten::asin>(r);
  Unary<aten::_foreach_atan, aten::atan>(r);
  Unary<aten::_foreach_ceil, aten::ceil>(r);
  Unary<aten::_foreach_clone, aten::clone>(r);
  Unary<aten::_foreach_cos, aten::cos>(r);
  Unary<aten::_foreach_cosh, aten::cosh>(r);
  Unary<aten::_foreach_erf, aten::erf>(r);
  Unary<aten::_foreach_erfc, aten::erfc>(r);
  Unary<aten::_foreach_exp, aten::exp>(r);
  Unary<aten::_foreach_expm1, aten::expm1>(r);
  Unary<aten::_foreach_floor, aten::floor>(r);
  Unary<aten::_foreach_frac, aten::frac>(r);
  Unary<aten::_foreach_lgamma, aten::lgamma>(r);
  Unary<aten::_foreach_log, aten::log>(r);
  Unary<aten::_foreach_log10, aten::log10>(r);
  Unary<aten::_foreach_log1p, aten::log1p>(r);
  Unary<aten::_foreach_log2, aten::log2>(r);
  Unary<aten::_foreach_neg, aten::neg>(r);
  Unary<aten::_foreach_reciprocal, aten::reciprocal>(r);
  Unary<aten::_foreach_round, aten::round>(r);
  Unary<aten::_foreach_rsqrt, aten::rsqrt>(r);
  Unary<aten::_foreach_sigmoid, aten::sigmoid>(r);
  Unary<aten::_foreach_sign, aten::sign>(r);
  Unary<aten::_foreach_sin, aten::sin>(r);
  Unary<aten::_foreach_sinh, aten::sinh>(r);
  Unary<aten::_foreach_sqrt, aten::sqrt>(r);
  Unary<aten::_foreach_tan, aten::tan>(r);
  Unary<aten::_foreach_tanh, aten::tanh>(r);
  Unary<aten::_foreach_trunc, aten::trunc>(r);
  Unary<aten::_foreach_zero, aten::zeros_like>(r);
}

void ForeachBinary(Rules<Aten>& r) {
  r.On([](Aten& b, const aten::_foreach_add_List& op) {
    return Each(op.self, [&](size_t i) { return b(aten::add_Tensor{op.self[i], op.other[i], op.alpha}); });
  });
  r.On([](Aten& b, const aten::_foreach_add_Tensor& op) {
    return Each(op.self, [&](size_t i) { return b(aten::add_Tensor{op.self[i], op.other, op.alpha}); });
  });
  r.On([](Aten& b, const aten::_foreach_sub_List& op) {
    return Each(op.self, [&](size_t i) { return b(aten::sub_Tensor{op.self[i], op.other[i], op.alpha}); });
  });
  r.On([](Aten&, const aten::_foreach_mul_Tensor& op) { return Each(op.self, [&](size_t i) { return op.self[i] * op.other; }); });
  r.On([](Aten&, const aten::_foreach_div_Tensor& op) { return Each(op.self, [&](size_t i) { return op.self[i] / op.other; }); });
  Pairs<aten::_foreach_mul_List, aten::mul_Tensor>(r);
  Pairs<aten::_foreach_div_List, aten::div_Tensor>(r);
  Pairs<aten::_foreach_maximum_List, aten::maximum>(r);
  Pairs<aten::_foreach_minimum_List, aten::minimum>(r);
  Pairs<aten::_foreach_clamp_max_List, aten::minimum>(r);
  Pairs<aten::_foreach_clamp_min_List, aten::maximum>(r);
  WithScalar<aten::_foreach_add_Scalar, aten::add_Scalar>(r);
  WithScalar<aten::_foreach_sub_Scalar, aten::sub_Scalar>(r);
  WithScalar<aten::_foreach_mul_Scalar, aten::mul_Scalar>(r);
  WithScalar<aten::_foreach_div_Scalar, aten::div_Scalar>(r);
  WithScalar<aten::_foreach_clamp_max_Scalar, aten::clamp_max>(r);
  WithScalar<aten::_foreach_clamp_min_Scalar, aten::clamp_min>(r);
  WithScalar<aten::_foreach_maximum_Scalar, aten::clamp_min>(r);
  WithScalar<aten::_foreach_minimum_Scalar, aten::clamp_max>(r);
  WithScalars<aten::_foreach_add_ScalarList, aten::add_Scalar>(r);
  WithScalars<aten::_foreach_sub_ScalarList, aten::sub_Scalar>(r);
  WithScalars<aten::_foreach_mul_ScalarList, aten::mul_Scalar>(r);
  WithScalars<aten::_foreach_div_ScalarList, aten::div_Scalar>(r);
  WithScalars<aten::_foreach_clamp_max_ScalarList, aten::clamp_max>(r);
  WithScalars<aten::_foreach_clamp_min_ScalarList, aten::clamp_min>(r);
  WithScalars<aten::_foreach_maximum_ScalarList, aten::clamp_min>(r);
  WithScalars<aten::_foreach_minimum_ScalarList, aten::clamp_max>(r);
  r.On([](Aten& b, const aten::_foreach_pow_List& op) {
    return Each(op.self, [&](size_t i) { return b(aten::pow_Tensor_Tensor{op.self[i], op.exponent[i]}); });
  });
  r.On([](Aten& b, const aten::_foreach_pow_Scalar& op) {
    return Each(op.self, [&](size_t i) { return b(aten::pow_Tensor_Scalar{op.self[i], op.exponent}); });
  });
}

// self + value * tensor1 * tensor2, self + value * tensor1 / tensor2, self + weight * (end - self)
void ForeachTernary(Rules<Aten>& r) {
  r.On([](Aten& b, const aten::_foreach_addcmul_Scalar& op) {
    return Each(op.self, [&](size_t i) { return b(aten::addcmul{op.self[i], op.tensor1[i], op.tensor2[i], op.value}); });
  });
  r.On([](Aten& b, const aten::_foreach_addcmul_ScalarList& op) {
    return Each(op.self, [&](size_t i) { return b(aten::addcmul{op.self[i], op.tensor1[i], op.tensor2[i], op.scalars[i]}); });
  });
  r.On([](Aten& b, const aten::_foreach_addcdiv_Scalar& op) {
    return Each(op.self, [&](size_t i) { return b(aten::addcdiv{op.self[i], op.tensor1[i], op.tensor2[i], op.value}); });
  });
  r.On([](Aten& b, const aten::_foreach_addcdiv_ScalarList& op) {
    return Each(op.self, [&](size_t i) { return b(aten::addcdiv{op.self[i], op.tensor1[i], op.tensor2[i], op.scalars[i]}); });
  });
  r.On([](Aten& b, const aten::_foreach_lerp_Scalar& op) {
    return Each(op.self, [&](size_t i) { return b(aten::lerp_Scalar{op.self[i], op.tensors1[i], op.weight}); });
  });
  r.On([](Aten& b, const aten::_foreach_lerp_List& op) {
    return Each(op.self, [&](size_t i) { return b(aten::lerp_Tensor{op.self[i], op.tensors1[i], op.weights[i]}); });
  });
}

}  // namespace

void ForeachDecompositions(Rules<Aten>& r) {
  ForeachUnary(r);
  ForeachBinary(r);
  ForeachTernary(r);
}

}  // namespace pt2onnx
