// Dropouts of training. In evaluation they are their argument itself, which Functionalize takes care of (a write goes through); what still
// comes here untrained, from programs that were functional already, is the argument too.
//
//   %y = aten::feature_dropout(%x : f32[n, c, h, w], 0.5, true)    ->    %m = Less(RandomUniform[n, c, 1, 1], 0.5)   %y = Mul(%x, Where(%m, 2, 0))
#include "lower/dropout.h"

#include "lower/random.h"

namespace pt2onnx {

Dropped Drop(Onnx& b, Val x, double p) {
  if (p == 0) return {x, b.Full(x.shape(), true, DType::Bool)};
  if (p == 1) return {x * 0, b.Full(x.shape(), false, DType::Bool)};  // ONNX Runtime refuses this ratio
  // By the mask: ONNX Runtime removes a Dropout of which only the output is read, whatever its training_mode says.
  const Val kept = b.Dropout(x, b.Constant(p, DType::F32), b.Constant(true, DType::Bool)).mask;
  return {x * b.Where(kept, b.Constant(1 / (1 - p), x.dtype()), b.Constant(0, x.dtype())), kept};
}

namespace {

// One decision for a whole channel of [N, C, ...]
DimVec FeatureShape(Val x) {
  DimVec shape = {x.dim(0), x.dim(1)};
  while (std::ssize(shape) < x.rank()) shape.push_back(1);
  return shape;
}

// Not by Dropout of ones: ONNX Runtime takes that for a constant.
Val FeatureDropout(Onnx& b, Val x, double p) {
  if (p == 1) return x * 0;
  const Val kept = Chance(b, FeatureShape(x), 1 - p);
  return x * b.Where(kept, b.Constant(1 / (1 - p), x.dtype()), b.Constant(0, x.dtype()));
}

// What is dropped takes the value alpha'; scaled and shifted such that mean and variance stay:
//   a = 1 / sqrt((alpha^2 p + 1)(1 - p))    y = a * (kept ? x : -alpha) + a * alpha * p
Val AlphaDropout(Onnx& b, Val x, const DimVec& shape, double p) {
  constexpr double kAlpha = 1.7580993408473766;
  if (p == 1) return x * 0;
  const Val kept = Chance(b, shape, 1 - p);
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
