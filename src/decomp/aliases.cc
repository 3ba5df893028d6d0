// Ops that are another op under a second name, or that op with an argument fixed.
//
//   %y = aten::true_divide.Tensor(%a, %b)    ->    %y = aten::div.Tensor(%a, %b)
#include "decomp/rules.h"

namespace pt2onnx {
namespace {

// The same arguments, in the same order.
template <class From, class To>
void Alias(Rules<Aten>& r) {
  r.On([](Aten& b, const From& op) { return b.Emit(OpTable()[To::kId], ToArgs(op, b.context())); });
}

void ArithmeticAliases(Rules<Aten>& r) {
  Alias<aten::absolute, aten::abs>(r);
  Alias<aten::divide_Scalar, aten::div_Scalar>(r);
  Alias<aten::divide_Scalar_mode, aten::div_Scalar_mode>(r);
  Alias<aten::divide_Tensor, aten::div_Tensor>(r);
  Alias<aten::divide_Tensor_mode, aten::div_Tensor_mode>(r);
  Alias<aten::fix, aten::trunc>(r);
  Alias<aten::multiply_Scalar, aten::mul_Scalar>(r);
  Alias<aten::multiply_Tensor, aten::mul_Tensor>(r);
  Alias<aten::negative, aten::neg>(r);
  Alias<aten::subtract_Scalar, aten::sub_Scalar>(r);
  Alias<aten::subtract_Tensor, aten::sub_Tensor>(r);
  Alias<aten::true_divide_Scalar, aten::div_Scalar>(r);
  Alias<aten::true_divide_Tensor, aten::div_Tensor>(r);
  r.On([](Aten&, const aten::positive& op) { return op.self; });
  // x^2
  r.On([](Aten& b, const aten::square& op) { return b(aten::pow_Tensor_Scalar{.self = op.self, .exponent = 2}); });
}

void ComparisonAliases(Rules<Aten>& r) {
  Alias<aten::clip, aten::clamp>(r);
  Alias<aten::clip_Tensor, aten::clamp_Tensor>(r);
  Alias<aten::greater_Scalar, aten::gt_Scalar>(r);
  Alias<aten::greater_Tensor, aten::gt_Tensor>(r);
  Alias<aten::greater_equal_Scalar, aten::ge_Scalar>(r);
  Alias<aten::greater_equal_Tensor, aten::ge_Tensor>(r);
  Alias<aten::less_Scalar, aten::lt_Scalar>(r);
  Alias<aten::less_Tensor, aten::lt_Tensor>(r);
  Alias<aten::less_equal_Scalar, aten::le_Scalar>(r);
  Alias<aten::less_equal_Tensor, aten::le_Tensor>(r);
  Alias<aten::not_equal_Scalar, aten::ne_Scalar>(r);
  Alias<aten::not_equal_Tensor, aten::ne_Tensor>(r);
  Alias<aten::max_other, aten::maximum>(r);
  Alias<aten::min_other, aten::minimum>(r);
}

void FunctionAliases(Rules<Aten>& r) {
  Alias<aten::arccos, aten::acos>(r);
  Alias<aten::arccosh, aten::acosh>(r);
  Alias<aten::arcsin, aten::asin>(r);
  Alias<aten::arcsinh, aten::asinh>(r);
  Alias<aten::arctan, aten::atan>(r);
  Alias<aten::arctan2, aten::atan2>(r);
  Alias<aten::arctanh, aten::atanh>(r);
  Alias<aten::special_digamma, aten::digamma>(r);
  Alias<aten::special_erf, aten::erf>(r);
  Alias<aten::special_erfc, aten::erfc>(r);
  Alias<aten::special_erfinv, aten::erfinv>(r);
  Alias<aten::special_exp2, aten::exp2>(r);
  Alias<aten::special_expit, aten::sigmoid>(r);
  Alias<aten::special_expm1, aten::expm1>(r);
  Alias<aten::special_gammainc, aten::igamma>(r);
  Alias<aten::special_gammaincc, aten::igammac>(r);
  Alias<aten::special_gammaln, aten::lgamma>(r);
  Alias<aten::special_i0, aten::i0>(r);
  Alias<aten::special_log1p, aten::log1p>(r);
  Alias<aten::special_logit, aten::logit>(r);
  Alias<aten::special_multigammaln, aten::mvlgamma>(r);
  Alias<aten::special_polygamma, aten::polygamma>(r);
  Alias<aten::special_psi, aten::digamma>(r);
  Alias<aten::special_sinc, aten::sinc>(r);
  Alias<aten::special_xlogy, aten::xlogy_Tensor>(r);
  Alias<aten::special_xlogy_other_scalar, aten::xlogy_Scalar_Other>(r);
  Alias<aten::special_xlogy_self_scalar, aten::xlogy_Scalar_Self>(r);
}

}  // namespace

void AliasDecompositions(Rules<Aten>& r) {
  ArithmeticAliases(r);
  ComparisonAliases(r);
  FunctionAliases(r);
}

}  // namespace pt2onnx
