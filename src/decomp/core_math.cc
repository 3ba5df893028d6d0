// Core ATen: arithmetic, reductions and activations, by their formulas.
//
//   %y = aten::silu(%x)    ->    %s = aten::sigmoid(%x)   %y = aten::mul.Tensor(%x, %s)
#include <cmath>
#include <limits>

#include "decomp/core.h"

namespace pt2onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSeluAlpha = 1.6732632423543772848170429916717, kSeluScale = 1.0507009873554804934193349852946;

template <class From, class To>
void Same(Rules<Aten>& r) {
  r.On([](Aten& b, const From& op) { return b.Emit(OpTable()[To::kId], ToArgs(op, b.context())); });
}

Val Minus(Aten& b, Scalar x, Val y) { return b(aten::add_Scalar{.self = b(aten::neg{.self = y}), .other = x}); }
Val Times(Aten& b, Val x, Scalar y) { return b(aten::mul_Scalar{.self = x, .other = y}); }
Val Plus(Aten& b, Val x, Scalar y) { return b(aten::add_Scalar{.self = x, .other = y}); }
Val Clamp(Aten& b, Val x, OptScalar low, OptScalar high) { return b(aten::clamp{.self = x, .min = low, .max = high}); }
Val Not(Aten& b, Val x) { return b(aten::logical_not{.self = x}); }

// ---- Reductions ---------------------------------------------------------------------------------------------------------------------

Ints AllDims(Aten& b, Val x) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < x.rank(); ++d) dims.push_back(d);
  return b.Copy(dims);
}

void Reductions(Rules<Aten>& r) {
  r.On([](Aten& b, const aten::sum& op) { return b(aten::sum_dim_IntList{.self = op.self, .dim = Ints(), .dtype = op.dtype}); });
  // Over the dims that are missing in front, and those that become 1.
  r.On([](Aten& b, const aten::sum_to_size& op) {
    std::vector<int64_t> dims;
    const int64_t lead = op.self.rank() - static_cast<int64_t>(op.size.size());
    for (int64_t d = 0; d < op.self.rank(); ++d)
      if (d < lead || (op.size[static_cast<size_t>(d - lead)] == 1 && !(op.self.dim(d) == 1))) dims.push_back(d);
    return b.Reshape(dims.empty() ? op.self : Sum(b, op.self, dims, true), RecordedShape(b));
  });
  // all(x) == not any(not x); of uint8 the answer is uint8
  r.On([](Aten& b, const aten::all& op) { return b.Cast(Not(b, b(aten::any{.self = Not(b, op.self)})), RecordedDType(b)); });
  r.On([](Aten& b, const aten::all_dim& op) {
    return b.Cast(Not(b, b(aten::any_dim{.self = Not(b, op.self), .dim = op.dim, .keepdim = op.keepdim})), RecordedDType(b));
  });
  r.On([](Aten& b, const aten::all_dims& op) {
    return b.Cast(Not(b, b(aten::any_dims{.self = Not(b, op.self), .dim = op.dim, .keepdim = op.keepdim})), RecordedDType(b));
  });
  r.On([](Aten& b, const aten::var& op) {
    return b(aten::var_correction{.self = op.self, .dim = AllDims(b, op.self), .correction = Scalar(op.unbiased ? 1 : 0)});
  });
  r.On([](Aten& b, const aten::std_& op) {
    return b(aten::sqrt{.self = b(aten::var_correction{.self = op.self, .dim = AllDims(b, op.self), .correction = Scalar(op.unbiased ? 1 : 0)})});
  });
  r.On([](Aten& b, const aten::std_dim& op) {
    return b(aten::sqrt{
        .self = b(aten::var_correction{.self = op.self, .dim = op.dim, .correction = Scalar(op.unbiased ? 1 : 0), .keepdim = op.keepdim})});
  });
  r.On([](Aten& b, const aten::std_correction& op) {
    return b(aten::sqrt{.self = b(aten::var_correction{.self = op.self, .dim = op.dim, .correction = op.correction, .keepdim = op.keepdim})});
  });
}

// ---- Arithmetic ---------------------------------------------------------------------------------------------------------------------

// self + weight * (end - self), from the nearer end
Val Lerp(Aten& b, const aten::lerp_Scalar& op) {
  const Val span = op.end - op.self;
  if (op.weight.IsComplex() || op.weight.IsSymbolic() || std::fabs(op.weight.AsDouble()) < 0.5) return op.self + Times(b, span, op.weight);
  return op.end - Times(b, span, Scalar(1 - op.weight.AsDouble()));
}
Val LerpTensor(Aten& b, const aten::lerp_Tensor& op) {
  const Val span = op.end - op.self;
  const Val near = b(aten::lt_Scalar{.self = b(aten::abs{.self = op.weight}), .other = 0.5});
  return Where(b, near, op.self + op.weight * span, op.end - Minus(b, 1, op.weight) * span);
}

// 0 * log(y) is 0, of NaN NaN
Val Xlogy(Aten& b, const aten::xlogy_Tensor& op) {
  const Val y = b.Cast(op.other, RecordedDType(b)), x = b.Cast(op.self, RecordedDType(b));
  const Val product = WhereNumber(b, b(aten::eq_Scalar{.self = x, .other = 0}), 0, x * b(aten::log{.self = y}));
  return WhereNumber(b, b(aten::isnan{.self = y}), std::nan(""), product);
}

double Largest(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return 65504;
    case DType::BF16:
      return 3.3895313892515355e38;
    case DType::F64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}
Val NanToNum(Aten& b, const aten::nan_to_num& op) {
  if (!IsFloat(op.self.dtype())) return op.self;
  const double most = Largest(op.self.dtype());
  Val x = WhereNumber(b, b(aten::isnan{.self = op.self}), op.nan.value_or(0), op.self);
  x = WhereNumber(b, b(aten::eq_Scalar{.self = x, .other = kInfinity}), op.posinf.value_or(most), x);
  return WhereNumber(b, b(aten::eq_Scalar{.self = x, .other = -kInfinity}), op.neginf.value_or(-most), x);
}

void Arithmetic(Rules<Aten>& r) {
  Same<aten::__and___Scalar, aten::bitwise_and_Scalar>(r);
  Same<aten::__and___Tensor, aten::bitwise_and_Tensor>(r);
  Same<aten::__or___Scalar, aten::bitwise_or_Scalar>(r);
  Same<aten::__or___Tensor, aten::bitwise_or_Tensor>(r);
  Same<aten::__xor___Scalar, aten::bitwise_xor_Scalar>(r);
  Same<aten::__xor___Tensor, aten::bitwise_xor_Tensor>(r);
  r.On([](Aten& b, const aten::clamp_min& op) { return Clamp(b, op.self, op.min, {}); });
  r.On([](Aten& b, const aten::clamp_max& op) { return Clamp(b, op.self, {}, op.max); });
  r.On([](Aten& b, const aten::floor_divide& op) { return b(aten::div_Tensor_mode{.self = op.self, .other = op.other, .rounding_mode = "floor"}); });
  r.On([](Aten& b, const aten::floor_divide_Scalar& op) {
    return b(aten::div_Scalar_mode{.self = op.self, .other = op.other, .rounding_mode = "floor"});
  });
  r.On([](Aten& b, const aten::frac& op) { return op.self - b(aten::trunc{.self = op.self}); });
  r.On([](Aten& b, const aten::sgn& op) {
    return IsComplex(op.self.dtype()) ? b.Unsupported("the sign of complex numbers is not in Core ATen") : b(aten::sign{.self = op.self});
  });
  r.On<Lerp>();
  r.On<LerpTensor>();
  r.On<Xlogy>();
  r.On<NanToNum>();
}

// ---- Activations --------------------------------------------------------------------------------------------------------------------

// log(1 + exp(beta * x)) / beta, and x itself where that is large
Val Softplus(Aten& b, Val x, Scalar beta, Scalar threshold) {
  const Val scaled = beta.Is(1) ? x : Times(b, x, beta);
  Val y = b(aten::log1p{.self = b(aten::exp{.self = scaled})});
  if (!beta.Is(1)) y = b(aten::div_Scalar{.self = y, .other = beta});
  return Where(b, b(aten::gt_Scalar{.self = scaled, .other = threshold}), x, y);
}

Val Prelu(Aten& b, Val x, Val weight) {
  if (weight.rank() == 1 && x.rank() > 1) {
    std::vector<SymExpr> shape(static_cast<size_t>(x.rank()), 1);
    shape[1] = weight.dim(0);
    weight = b.Reshape(weight, b.Copy(shape));
  }
  if (x.rank() < weight.rank()) weight = b.Reshape(weight, {});
  return Where(b, b(aten::gt_Scalar{.self = x, .other = 0}), x, weight * x);
}

Val HardSigmoid(Aten& b, Val x) { return b(aten::div_Scalar{.self = Clamp(b, Plus(b, x, 3), 0, 6), .other = 6}); }

void Activations(Rules<Aten>& r) {
  r.On([](Aten& b, const aten::silu& op) { return op.self * b(aten::sigmoid{.self = op.self}); });
  r.On([](Aten& b, const aten::hardsigmoid& op) { return HardSigmoid(b, op.self); });
  r.On([](Aten& b, const aten::hardswish& op) { return op.self * HardSigmoid(b, op.self); });
  r.On([](Aten& b, const aten::relu6& op) { return b(aten::hardtanh{.self = op.self, .min_val = 0, .max_val = 6}); });
  r.On([](Aten& b, const aten::selu& op) { return b(aten::elu{.self = op.self, .alpha = kSeluAlpha, .scale = kSeluScale}); });
  r.On(
      [](Aten& b, const aten::celu& op) { return b(aten::elu{.self = op.self, .alpha = op.alpha, .input_scale = Scalar(1 / op.alpha.AsDouble())}); });
  r.On([](Aten& b, const aten::softplus& op) { return Softplus(b, op.self, op.beta, op.threshold); });
  r.On([](Aten& b, const aten::mish& op) { return op.self * b(aten::tanh{.self = Softplus(b, op.self, 1, 20)}); });
  // min(x, 0) - log(1 + exp(-|x|))
  r.On([](Aten& b, const aten::log_sigmoid& op) {
    const Val small = b(aten::exp{.self = b(aten::neg{.self = b(aten::abs{.self = op.self})})});
    return Clamp(b, op.self, {}, 0) - b(aten::log1p{.self = small});
  });
  r.On([](Aten& b, const aten::glu& op) {
    const SymExpr n = op.self.dim(op.dim), half = FloorDiv(n, 2);
    return Slice(b, op.self, op.dim, 0, half) * b(aten::sigmoid{.self = Slice(b, op.self, op.dim, half, n)});
  });
  r.On([](Aten& b, const aten::prelu& op) { return Prelu(b, op.self, op.weight); });
  // In inference the slope is the middle of the interval.
  r.On([](Aten& b, const aten::rrelu& op) {
    if (!op.training) return b(aten::leaky_relu{.self = op.self, .negative_slope = Scalar((op.lower.AsDouble() + op.upper.AsDouble()) / 2)});
    const Val unit = b(aten::rand{.size = op.self.shape(), .dtype = op.self.dtype()});
    const Val slope = Plus(b, Times(b, unit, Scalar(op.upper.AsDouble() - op.lower.AsDouble())), op.lower);
    return Where(b, b(aten::le_Scalar{.self = op.self, .other = 0}), op.self * slope, op.self);
  });
  r.On([](Aten& b, const aten::threshold& op) {
    return WhereNumber(b, b(aten::le_Scalar{.self = op.self, .other = op.threshold_}), op.value, op.self);
  });
  r.On([](Aten& b, const aten::hardshrink& op) {
    return WhereNumber(b, b(aten::le_Scalar{.self = b(aten::abs{.self = op.self}), .other = op.lambd}), 0, op.self);
  });
  // x - lambda, x + lambda, 0 between; NaN stays
  r.On([](Aten& b, const aten::softshrink& op) {
    const Val x = op.self;
    const Val far = x - Times(b, b(aten::sign{.self = x}), op.lambd);
    return Where(b, b(aten::gt_Scalar{.self = b(aten::abs{.self = x}), .other = op.lambd}), far, Times(b, x, 0));
  });
}

// ---- Losses -------------------------------------------------------------------------------------------------------------------------

// 0: each element, 1: the mean, 2: the sum
Val Reduced(Aten& b, Val x, int64_t reduction) {
  if (reduction == 0) return x;
  return reduction == 1 ? b(aten::mean{.self = x}) : Sum(b, x);
}

void Losses(Rules<Aten>& r) {
  r.On([](Aten& b, const aten::mse_loss& op) {
    return Reduced(b, b(aten::pow_Tensor_Scalar{.self = op.self - op.target, .exponent = 2}), op.reduction);
  });
  r.On([](Aten& b, const aten::l1_loss& op) { return Reduced(b, b(aten::abs{.self = op.self - op.target}), op.reduction); });
  // d^2/2 up to delta, a line from there
  r.On([](Aten& b, const aten::huber_loss& op) {
    const Val d = b(aten::abs{.self = op.self - op.target});
    const Val square = Times(b, d * d, 0.5), line = Times(b, Plus(b, d, Scalar(-0.5 * op.delta)), Scalar(op.delta));
    return Reduced(b, Where(b, b(aten::le_Scalar{.self = d, .other = Scalar(op.delta)}), square, line), op.reduction);
  });
  r.On([](Aten& b, const aten::smooth_l1_loss& op) {
    const Val d = b(aten::abs{.self = op.self - op.target});
    if (op.beta == 0) return Reduced(b, d, op.reduction);
    const Val square = b(aten::div_Scalar{.self = Times(b, d * d, 0.5), .other = Scalar(op.beta)});
    return Reduced(b, Where(b, b(aten::lt_Scalar{.self = d, .other = Scalar(op.beta)}), square, Plus(b, d, Scalar(-0.5 * op.beta))), op.reduction);
  });
  // log(1 + exp(-y x))
  r.On([](Aten& b, const aten::soft_margin_loss& op) {
    return Reduced(b, b(aten::log1p{.self = b(aten::exp{.self = b(aten::neg{.self = op.target}) * op.self})}), op.reduction);
  });
  // -w (y log x + (1 - y) log(1 - x)), each logarithm at least -100
  r.On([](Aten& b, const aten::binary_cross_entropy& op) {
    const Val yes = Clamp(b, b(aten::log{.self = op.self}), -100, {}), no = Clamp(b, b(aten::log1p{.self = b(aten::neg{.self = op.self})}), -100, {});
    Val loss = Plus(b, op.target, -1) * no - op.target * yes;
    if (op.weight) loss = loss * *op.weight;
    return Reduced(b, loss, op.reduction);
  });
  // (1 - y) x + w log(1 + exp(-x)), w = 1 + (p - 1) y
  r.On([](Aten& b, const aten::binary_cross_entropy_with_logits& op) {
    const Val x = op.self;
    Val log_sigmoid = Clamp(b, x, {}, 0) - b(aten::log1p{.self = b(aten::exp{.self = b(aten::neg{.self = b(aten::abs{.self = x})})})});
    if (op.pos_weight) log_sigmoid = log_sigmoid * Plus(b, Plus(b, *op.pos_weight, -1) * op.target, 1);
    Val loss = Minus(b, 1, op.target) * x - log_sigmoid;
    if (op.weight) loss = loss * *op.weight;
    return Reduced(b, loss, op.reduction);
  });
}

}  // namespace

void CoreMath(Rules<Aten>& r) {
  Reductions(r);
  Arithmetic(r);
  Activations(r);
  Losses(r);
}

}  // namespace pt2onnx
