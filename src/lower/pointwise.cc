// Elementwise arithmetic and comparison. Operands arrive in one dtype (passes/promote), Python numbers as Scalars of any kind.
//
//   %y : f32[s0, 4] = aten::add.Tensor(%a, %b, alpha=2)    ->    %y = Add(%a, Mul(%b, 2))
#include "lower/rules.h"

namespace pt2onnx {
namespace {

// self + alpha * other; on bool, + is "or".
Val Add(Onnx& b, Val self, Val other, const Scalar& alpha) {
  if (self.dtype() == DType::Bool) return b.Or(self, other);
  return self + (alpha.Is(1) ? other : other * alpha);
}

// self - alpha * other
Val Sub(Onnx&, Val self, Val other, const Scalar& alpha) { return self - (alpha.Is(1) ? other : other * alpha); }

// self * other; on bool, * is "and".
Val Mul(Onnx& b, Val self, Val other) { return self.dtype() == DType::Bool ? b.And(self, other) : self * other; }

}  // namespace

void PointwiseRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::add_Tensor& op) { return Add(b, op.self, op.other, op.alpha); });
  r.On([](Onnx& b, const aten::sub_Tensor& op) { return Sub(b, op.self, op.other, op.alpha); });
  r.On([](Onnx& b, const aten::mul_Tensor& op) { return Mul(b, op.self, op.other); });
  r.On([](Onnx&, const aten::div_Tensor& op) { return op.self / op.other; });

  r.Map<aten::exp, &Onnx::Exp>();
  r.Map<aten::tanh, &Onnx::Tanh>();
  r.Map<aten::sigmoid, &Onnx::Sigmoid>();

  // 1 / sqrt(x)
  r.On([](Onnx& b, const aten::rsqrt& op) { return b.Reciprocal(b.Sqrt(op.self)); });

  r.On([](Onnx& b, const aten::relu& op) { return b.Relu(op.self); });
  r.On([](Onnx& b, const prims::convert_element_type& op) { return b.Cast(op.a, op.dtype); });
}

}  // namespace pt2onnx
