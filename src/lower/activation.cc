// Activation functions: one ONNX operator each where there is one, else the formula.
//
//   %y = aten::silu(%x)    ->    %y = Mul(%x, Sigmoid(%x))
#include <cmath>
#include <numbers>

#include "lower/elementary.h"
#include "lower/random.h"

namespace pt2onnx {
namespace {

// Operators whose parameters are attributes, and which the runtime has for float32 (and what is computed in it) only.
bool TakesAttributes(Val x, std::initializer_list<Scalar> numbers) {
  for (const Scalar& number : numbers)
    if (number.IsSymbolic() || number.IsComplex()) return false;
  return x.dtype() != DType::F64;
}

// max(x, 0)
Val Relu(Onnx& b, Val x) {
  if (IsUnsigned(x.dtype())) return x;
  return IsFloat(x.dtype()) ? b.Relu(x) : b.Max(x, Like(x, 0));
}

// x Phi(x) = x/2 (1 + erf(x / sqrt 2)); tanh: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
Val Gelu(Onnx& b, Val x, std::string_view approximate) {
  const bool by_tanh = approximate == "tanh";
  if (b.opset() >= 20 && x.dtype() != DType::F64) return b.Gelu(x, {.approximate = by_tanh ? "tanh" : "none"});
  x = Wide(b, x);
  const Val inner = by_tanh ? b.Tanh((x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi)) : Erf(b, x / std::numbers::sqrt2);
  return x * (inner + 1.0) * 0.5;
}

// x > 0 ? x : slope x
Val LeakyRelu(Onnx& b, Val x, const Scalar& slope) {
  if (TakesAttributes(x, {slope})) return b.LeakyRelu(x, {.alpha = slope.AsDouble()});
  return b.Where(b.Greater(x, Like(x, 0)), x, x * slope);
}

// x > 0 ? scale x : scale alpha (exp(input_scale x) - 1)
Val Elu(Onnx& b, Val x, const Scalar& alpha, const Scalar& scale, const Scalar& input_scale) {
  if (scale.Is(1) && input_scale.Is(1) && TakesAttributes(x, {alpha})) return b.Elu(x, {.alpha = alpha.AsDouble()});
  x = Wide(b, x);
  const Val positive = scale.Is(1) ? x : x * scale;
  const Val inner = input_scale.Is(1) ? x : x * input_scale;
  return b.Where(b.Greater(x, Like(x, 0)), positive, Expm1(b, inner) * Like(x, alpha) * Like(x, scale));
}

constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;

// log(1 + exp(beta x)) / beta; where beta x > threshold: x. From 20 on the two are the same number in float32.
Val SoftplusRule(Onnx& b, const aten::softplus& op) {
  const Val x = Wide(b, op.self);
  const Val scaled = op.beta.Is(1) ? x : x * op.beta;
  const Val y = op.beta.Is(1) ? Softplus(b, scaled) : Softplus(b, scaled) / op.beta;
  if (!op.threshold.IsSymbolic() && op.threshold.AsDouble() >= 20 && x.dtype() != DType::F64) return y;
  return b.Where(b.Greater(scaled, Like(x, op.threshold)), x, y);
}

// min(max(x + 3, 0), 6) / 6
Val HardSigmoid(Onnx& b, Val x) {
  if (x.dtype() != DType::F64) return b.HardSigmoid(x, {.alpha = 1.0 / 6, .beta = 0.5});
  return b.Clip(x / 6.0 + 0.5, Like(x, 0), Like(x, 1));
}
Val HardSwish(Onnx& b, Val x) { return x.dtype() == DType::F64 ? x * HardSigmoid(b, x) : b.HardSwish(x); }

// x tanh(log(1 + exp(x)))
Val Mish(Onnx& b, Val x) { return x.dtype() == DType::F64 ? x * b.Tanh(Softplus(b, x)) : b.Mish(x); }

// -log(1 + exp(-x))
Val LogSigmoid(Onnx& b, Val x) { return b.Neg(Softplus(b, b.Neg(x))); }

// x > 0 ? x : weight x, a weight for each channel (dim 1), or one for all.
Val PRelu(Onnx& b, Val x, Val weight) {
  if (weight.rank() == 1 && x.rank() > 2 && !(weight.dim(0) == 1)) {
    std::vector<SymExpr> shape(static_cast<size_t>(x.rank() - 1), 1);
    shape[0] = weight.dim(0);
    weight = b.Reshape(weight, shape);
  }
  if (x.rank() == 0 && weight.rank() == 1) weight = b.Reshape(weight, DimVec{});
  if (x.dtype() == DType::F64) return b.Where(b.Greater(x, Like(x, 0)), x, x * weight);
  return b.PRelu(x, weight);
}

// rrelu: x >= 0 ? x : a x, with a drawn for each element in training, else (lower + upper) / 2
Val RandomRelu(Onnx& b, const aten::rrelu& op) {
  const Val x = op.self;
  if (!op.training) return LeakyRelu(b, x, (op.lower.AsDouble() + op.upper.AsDouble()) / 2);
  const double lower = op.lower.AsDouble(), upper = op.upper.AsDouble();
  const Val slope = Uniform(b, DimVec(x.shape()), x.dtype() == DType::F64 ? DType::F64 : DType::F32) * (upper - lower) + lower;
  return b.Where(b.Less(x, Like(x, 0)), x * b.Cast(slope, x.dtype()), x);
}

// ---- Softmax ------------------------------------------------------------------------------------------------------------------------

// Computed in the recorded dtype: what dtype= and half_to_float ask for. Of rank 0: over one element.
template <class F>
Val AlongDim(Onnx& b, Val x, int64_t dim, F f) {
  x = b.Cast(x, Recorded(b).dtype);
  if (x.rank() > 0) return f(x, dim);
  return b.Squeeze(f(b.Unsqueeze(x, {0}), 0), {0});
}
Val Softmax(Onnx& b, Val x, int64_t dim) {
  return AlongDim(b, x, dim, [&](Val y, int64_t axis) { return b.Softmax(y, {.axis = axis}); });
}
Val LogSoftmax(Onnx& b, Val x, int64_t dim) {
  return AlongDim(b, x, dim, [&](Val y, int64_t axis) { return b.LogSoftmax(y, {.axis = axis}); });
}
// 0 where all of a row is -inf.
Val SafeSoftmax(Onnx& b, Val x, int64_t dim) {
  return AlongDim(b, x, dim, [&](Val y, int64_t axis) {
    const Val nothing = b.Equal(b.ReduceMax(y, {axis}, true), Like(y, -INFINITY));
    return b.Where(nothing, Like(y, 0), b.Softmax(y, {.axis = axis}));
  });
}

}  // namespace

void ActivationRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::celu& op) {
    const Val x = op.self;  // max(x, 0) + min(0, alpha (exp(x / alpha) - 1))
    if (TakesAttributes(x, {op.alpha})) return b.Celu(x, {.alpha = op.alpha.AsDouble()});
    return b.Where(b.Greater(x, Like(x, 0)), x, Expm1(b, x / op.alpha) * op.alpha);
  });
  r.On([](Onnx& b, const aten::elu& op) { return Elu(b, op.self, op.alpha, op.scale, op.input_scale); });
  r.On([](Onnx& b, const aten::gelu& op) { return Gelu(b, op.self, op.approximate); });
  // a sigmoid(b), the halves of x along dim
  r.On([](Onnx& b, const aten::glu& op) {
    const SymExpr half = Recorded(b).shape[static_cast<size_t>(op.dim < 0 ? op.dim + op.self.rank() : op.dim)];
    const Vals halves = b.Split(op.self, {half, half}, op.dim);
    return halves[0] * b.Sigmoid(halves[1]);
  });
  // |x| <= lambda ? 0 : x
  r.On([](Onnx& b, const aten::hardshrink& op) {
    return b.Where(b.LessOrEqual(b.Abs(op.self), Like(op.self, op.lambd)), Like(op.self, 0), op.self);
  });
  Use<aten::hardsigmoid, HardSigmoid>(r);
  Use<aten::hardswish, HardSwish>(r);
  r.On([](Onnx& b, const aten::hardtanh& op) { return b.Clip(op.self, Like(op.self, op.min_val), Like(op.self, op.max_val)); });
  r.On([](Onnx& b, const aten::leaky_relu& op) { return LeakyRelu(b, op.self, op.negative_slope); });
  Use<aten::log_sigmoid, LogSigmoid>(r);
  // and exp(-|x|), what its derivative reads
  r.On([](Onnx& b, const aten::log_sigmoid_forward& op) { return Vals{LogSigmoid(b, op.self), b.Exp(b.Neg(b.Abs(op.self)))}; });
  Use<aten::mish, Mish>(r);
  UseAll<PRelu, aten::prelu, aten::_prelu_kernel>(r);
  Use<aten::relu, Relu>(r);
  r.On([](Onnx& b, const aten::relu6& op) { return b.Clip(op.self, Like(op.self, 0), Like(op.self, 6)); });
  r.On<RandomRelu>();
  r.On([](Onnx& b, const aten::selu& op) {
    if (op.self.dtype() == DType::F64) return Elu(b, op.self, kSeluAlpha, kSeluScale, 1);
    return b.Selu(op.self, {.alpha = kSeluAlpha, .gamma = kSeluScale});
  });
  // x sigmoid(x)
  r.On([](Onnx& b, const aten::silu& op) { return op.self * b.Sigmoid(op.self); });
  r.On<SoftplusRule>();
  // x - clamp(x, -lambda, lambda)
  r.On([](Onnx& b, const aten::softshrink& op) {
    const Val lambda = Like(op.self, op.lambd);
    return op.self - b.Clip(op.self, b.Neg(lambda), lambda);
  });
  // x <= threshold ? value : x
  r.On([](Onnx& b, const aten::threshold& op) {
    return b.Where(b.LessOrEqual(op.self, Like(op.self, op.threshold_)), Like(op.self, op.value), op.self);
  });

  r.On([](Onnx& b, const aten::softmax_int& op) { return Softmax(b, op.self, op.dim); });
  r.On([](Onnx& b, const aten::_softmax& op) { return Softmax(b, op.self, op.dim); });
  r.On([](Onnx& b, const aten::special_softmax& op) { return Softmax(b, op.self, op.dim); });
  r.On([](Onnx& b, const aten::log_softmax_int& op) { return LogSoftmax(b, op.self, op.dim); });
  r.On([](Onnx& b, const aten::_log_softmax& op) { return LogSoftmax(b, op.self, op.dim); });
  r.On([](Onnx& b, const aten::special_log_softmax& op) { return LogSoftmax(b, op.self, op.dim); });
  r.On([](Onnx& b, const aten::_safe_softmax& op) { return SafeSoftmax(b, op.self, op.dim); });
}

}  // namespace pt2onnx
