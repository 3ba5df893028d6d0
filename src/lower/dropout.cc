// Dropouts of training. In evaluation they are their argument itself, which Functionalize takes care of (a write goes through); what still
// comes here untrained, from programs that were functional already, is the argument too.
//
//   %y = aten::feature_dropout(%x : f32[n, c, h, w], 0.5, true)    ->    %m = Dropout(ones[n, c, 1, 1], 0.5, true)   %y = Mul(%x, %m)
#include "lower/dropout.h"

namespace pt2onnx {

Dropped Drop(Onnx& b, Val x, double p) {
  if (p == 0) return {x, b.Full(x.shape(), true, DType::Bool)};
  if (p == 1) return {x * 0, b.Full(x.shape(), false, DType::Bool)};  // ONNX Runtime refuses this ratio
  const DropoutOut out = b.Dropout(x, b.Constant(p, DType::F32), b.Constant(true, DType::Bool));
  return {out.output, out.mask};
}

namespace {

// One decision for a whole channel of [N, C, ...]
DimVec FeatureShape(Val x) {
  DimVec shape = {x.dim(0), x.dim(1)};
  while (std::ssize(shape) < x.rank()) shape.push_back(1);
  return shape;
}

Val FeatureDropout(Onnx& b, Val x, double p) { return x * Drop(b, b.Ones(FeatureShape(x), x.dtype()), p).y; }

// What is dropped takes the value alpha'; scaled and shifted such that mean and variance stay:
//   a = 1 / sqrt((alpha^2 p + 1)(1 - p))    y = a * (kept ? x : -alpha) + a * alpha * p
Val AlphaDropout(Onnx& b, Val x, const DimVec& shape, double p) {
  constexpr double kAlpha = 1.7580993408473766;
  if (p == 1) return x * 0;
  const Val kept = Drop(b, b.Ones(shape, x.dtype()), p).mask;
  const double a = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  return b.Where(kept, x, b.Constant(-kAlpha, x.dtype())) * a + a * kAlpha * p;
}

}  // namespace

void DropoutRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::dropout& op) { return op.train ? Drop(b, op.input, op.p).y : op.input; });
  r.On([](Onnx& b, const aten::feature_dropout& op) { return op.train && op.p != 0 ? FeatureDropout(b, op.input, op.p) : op.input; });
  r.On([](Onnx& b, const aten::alpha_dropout& op) {
    return op.train && op.p != 0 ? AlphaDropout(b, op.input, DimVec(op.input.shape()), op.p) : op.input;
  });
  r.On([](Onnx& b, const aten::feature_alpha_dropout& op) {
    return op.train && op.p != 0 ? AlphaDropout(b, op.input, FeatureShape(op.input), op.p) : op.input;
  });
  r.On([](Onnx& b, const aten::native_dropout& op) -> Vals {
    const Dropped out = Drop(b, op.input, op.train.value_or(true) ? op.p : 0);
    return {out.y, out.mask};
  });
  // grad * mask * scale
  r.On([](Onnx& b, const aten::native_dropout_backward& op) { return op.grad_output * b.Cast(op.mask, op.grad_output.dtype()) * op.scale; });
}

}  // namespace pt2onnx
