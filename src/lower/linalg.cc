// Matrix products.
//
//   %y = aten::linear(%x : f32[s0, 8], %w : f32[4, 8], %b)    ->    %y = Gemm(%x, %w, %b, transB=1)
#include "lower/rules.h"

namespace pt2onnx {

void LinalgRules(Rules<Onnx>& r) {
  r.Map<aten::mm, &Onnx::MatMul>();
  r.Map<aten::bmm, &Onnx::MatMul>();

  // x @ weight.T + bias
  r.On([](Onnx& b, const aten::linear& op) {
    if (op.input.rank() == 2 && op.weight.rank() == 2) return b.Gemm(op.input, op.weight, op.bias, {.transB = 1});
    const Val y = b.MatMul(op.input, op.weight.rank() == 2 ? b.Transpose(op.weight, {1, 0}) : op.weight);
    return op.bias ? y + *op.bias : y;
  });
}

}  // namespace pt2onnx
