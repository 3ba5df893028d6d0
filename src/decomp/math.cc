// Arithmetic that is one or two simpler ops.
//
//   %y = aten::addcmul(%a, %b, %c)    ->    %m = aten::mul.Tensor(%b, %c)   %y = aten::add.Tensor(%a, %m)
#include "decomp/rules.h"

namespace pt2onnx {
namespace {

Val Scaled(Aten& b, Val x, const Scalar& by) { return by.Is(1) ? x : b(aten::mul_Scalar{.self = x, .other = by}); }

// float_power computes in float64, complex numbers in complex128.
Val ToDouble(Aten& b, Val x) { return b.Cast(x, IsComplex(x.dtype()) ? DType::C128 : DType::F64); }
Scalar ToDouble(const Scalar& x) {
  if (x.IsComplex() || x.IsSymbolic()) return x;
  return Scalar(x.AsDouble());
}

}  // namespace

void MathDecompositions(Rules<Aten>& r) {
  // self + value * tensor1 * tensor2
  r.On([](Aten& b, const aten::addcmul& op) { return op.self + Scaled(b, op.tensor1 * op.tensor2, op.value); });
  // self + value * tensor1 / tensor2
  r.On([](Aten& b, const aten::addcdiv& op) { return op.self + Scaled(b, op.tensor1 / op.tensor2, op.value); });

  // other - alpha * self
  r.On([](Aten& b, const aten::rsub_Tensor& op) { return b(aten::sub_Tensor{.self = op.other, .other = op.self, .alpha = op.alpha}); });
  // The number counts as one in promotion, not as a tensor of rank 0: add takes it.
  r.On([](Aten& b, const aten::rsub_Scalar& op) {
    const Val negative = op.alpha.Is(1) ? b(aten::neg{.self = op.self}) : b(aten::neg{.self = Scaled(b, op.self, op.alpha)});
    return b(aten::add_Scalar{.self = negative, .other = op.other});
  });

  r.On([](Aten& b, const aten::float_power_Tensor_Tensor& op) {
    return b(aten::pow_Tensor_Tensor{.self = ToDouble(b, op.self), .exponent = ToDouble(b, op.exponent)});
  });
  r.On([](Aten& b, const aten::float_power_Tensor_Scalar& op) {
    return b(aten::pow_Tensor_Scalar{.self = ToDouble(b, op.self), .exponent = ToDouble(op.exponent)});
  });
  r.On([](Aten& b, const aten::float_power_Scalar& op) {
    return b(aten::pow_Scalar{.self = ToDouble(op.self), .exponent = ToDouble(b, op.exponent)});
  });

  // self * 2^other
  r.On([](Aten& b, const aten::ldexp_Tensor& op) { return op.self * b(aten::pow_Scalar{.self = 2.0, .exponent = op.other}); });

  // mat1 @ mat2 * alpha + self * beta
  r.On([](Aten& b, const aten::baddbmm& op) {
    const Val product = Scaled(b, b(aten::bmm{.self = op.batch1, .mat2 = op.batch2}), op.alpha);
    if (op.beta.Is(0)) return product;  // NaN in self does not count then
    return Scaled(b, op.self, op.beta) + product;
  });
}

}  // namespace pt2onnx
