// Arithmetic that is one or two simpler ops.
#include "decomp/rules.h"

namespace pt2onnx {

void MathDecompositions(Rules<Aten>& r) {
  // self + value * tensor1 * tensor2
  r.On([](Aten& b, const aten::addcmul& op) { return op.self + b(aten::mul_Scalar{.self = op.tensor1 * op.tensor2, .other = op.value}); });

  // other - alpha * self
  r.On([](Aten& b, const aten::rsub_Tensor& op) { return b(aten::sub_Tensor{.self = op.other, .other = op.self, .alpha = op.alpha}); });

  // mat1 @ mat2 * alpha + self * beta
  r.On([](Aten& b, const aten::baddbmm& op) {
    Val product = b(aten::bmm{.self = op.batch1, .mat2 = op.batch2});
    if (!op.alpha.Is(1)) product = b(aten::mul_Scalar{.self = product, .other = op.alpha});
    if (op.beta.Is(0)) return product;  // NaN in self does not count then
    return (op.beta.Is(1) ? op.self : b(aten::mul_Scalar{.self = op.self, .other = op.beta})) + product;
  });
}

}  // namespace pt2onnx
