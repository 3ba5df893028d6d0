// Gradients of activations and of views: what a program holds that calls torch.autograd.grad itself.
//
//   %y = aten::silu_backward(%g, %x)    ->    %s = Sigmoid(%x)   %y = Mul(%g, Mul(%s, Add(Mul(%x, Sub(1, %s)), 1)))
//   %y = aten::select_backward(%g, [4, 5], 0, 2)    ->    zeros of [4, 5] with %g at [2]
#include <cmath>
#include <numbers>

#include "lower/elementary.h"
#include "lower/indexing.h"

namespace pt2onnx {
namespace {

using namespace aten;

Val Zero(Val x) { return Like(x, 0); }
Val OneMinus(Val x) { return Like(x, 1) - x; }

// g y (1 - y) and g (1 - y^2), of y = sigmoid(x) and tanh(x)
Val SigmoidGradient(Onnx& b, Val g, Val y) { return Wide(b, g) * Wide(b, y) * OneMinus(Wide(b, y)); }
Val TanhGradient(Onnx& b, Val g, Val y) { return Wide(b, g) * OneMinus(Wide(b, y) * Wide(b, y)); }

// s = sigmoid(x): s (1 + x (1 - s))
Val SiluGradient(Onnx& b, Val g, Val x) {
  x = Wide(b, x);
  const Val s = b.Sigmoid(x);
  return Wide(b, g) * s * (x * OneMinus(s) + 1);
}
// t = tanh(softplus(x)): t + x sigmoid(x) (1 - t^2)
Val MishGradient(Onnx& b, Val g, Val x) {
  x = Wide(b, x);
  const Val t = b.Tanh(Softplus(b, x));
  return Wide(b, g) * (t + x * b.Sigmoid(x) * OneMinus(t * t));
}
// Phi(x) + x phi(x); tanh: with u = sqrt(2/pi) (x + 0.044715 x^3), (1 + tanh u)/2 + x/2 (1 - tanh^2 u) u'
Val GeluGradient(Onnx& b, const gelu_backward& op) {
  const Val x = Wide(b, op.self), g = Wide(b, op.grad_output);
  if (op.approximate == "tanh") {
    const double root = std::sqrt(2 / std::numbers::pi);
    const Val t = b.Tanh((x + x * x * x * 0.044715) * root);
    return g * ((t + 1) * 0.5 + x * 0.5 * OneMinus(t * t) * ((x * x * (3 * 0.044715) + 1) * root));
  }
  const Val density = b.Exp(x * x * -0.5) * (0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi);
  return g * ((Erf(b, x * (1 / std::numbers::sqrt2)) + 1) * 0.5 + x * density);
}
// x <= 0 ? input_scale alpha scale exp(input_scale x) : scale; of the result y the first is input_scale (y + alpha scale)
Val EluGradient(Onnx& b, const elu_backward& op) {
  const Val g = Wide(b, op.grad_output), x = Wide(b, op.self_or_result);
  const Val slope = Like(x, op.alpha) * Like(x, op.scale);
  const Val negative = op.is_result ? x + slope : slope * b.Exp(x * op.input_scale);
  return g * b.Where(b.LessOrEqual(x, Zero(x)), negative * op.input_scale, Like(x, op.scale));
}
Val LeakyGradient(Onnx& b, Val g, Val x, const Scalar& slope) { return b.Where(b.Greater(x, Zero(x)), g, g * slope); }
// g inside (low, high), else 0
Val Inside(Onnx& b, Val g, Val x, const Scalar& low, const Scalar& high) {
  return b.Where(b.Or(b.LessOrEqual(x, Like(x, low)), b.GreaterOrEqual(x, Like(x, high))), Zero(g), g);
}
// 0 in [-lambd, lambd], else g
Val Outside(Onnx& b, Val g, Val x, const Scalar& lambd) {
  const Val limit = Like(x, lambd);
  return b.Where(b.And(b.GreaterOrEqual(x, b.Neg(limit)), b.LessOrEqual(x, limit)), Zero(g), g);
}
// z / (1 + z), z = exp(beta x); where beta x > threshold: 1
Val SoftplusGradient(Onnx& b, const softplus_backward& op) {
  const Val x = Wide(b, op.self) * op.beta, g = Wide(b, op.grad_output);
  return b.Where(b.Greater(x, Like(x, op.threshold)), g, g * b.Sigmoid(x));
}
// 1 / (x (1 - x)); outside [eps, 1 - eps] 0, without eps outside [0, 1] NaN
Val LogitGradient(Onnx& b, const logit_backward& op) {
  const Val x = Wide(b, op.self), g = Wide(b, op.grad_output);
  const double eps = op.eps.value_or(0);
  const Val outside = b.Or(b.Less(x, Like(x, eps)), b.Greater(x, Like(x, 1 - eps)));
  return b.Where(outside, Like(x, op.eps ? 0 : NAN), g / (x * OneMinus(x)));
}
// a sigmoid(c), of x = [a, c]
Val GluGradient(Onnx& b, const glu_backward& op) {
  const Val x = Wide(b, op.self), g = Wide(b, op.grad_output);
  const Vals half = b.Split(x, {g.dim(op.dim), g.dim(op.dim)}, op.dim);
  const Val s = b.Sigmoid(half[1]);
  return b.Concat({g * s, g * half[0] * s * OneMinus(s)}, op.dim);
}

// y (g - sum(g y)); of log softmax g - exp(y) sum(g)
Val SoftmaxGradient(Onnx& b, Val g, Val y, int64_t dim, bool log) {
  g = Wide(b, g), y = Wide(b, y);
  const auto total = [&](Val x) { return x.rank() == 0 ? x : b.ReduceSum(x, {dim}, true); };
  return log ? g - b.Exp(y) * total(g) : g * y - y * total(g * y);
}

// ---- Views: zeros with the gradient where the view was -----------------------------------------------------------------------------------------

Val ZerosWith(Onnx& b, Dims sizes, int64_t dim, Val positions, Val g) { return ReplaceAlong(b, b.Zeros(sizes, g.dtype()), Axis(dim, std::ssize(sizes)), positions, g); }

}  // namespace

void GradientRules(Rules<Onnx>& r) {
  Use<sigmoid_backward, SigmoidGradient>(r);
  Use<tanh_backward, TanhGradient>(r);
  Use<silu_backward, SiluGradient>(r);
  Use<mish_backward, MishGradient>(r);
  r.On<GeluGradient>();
  r.On<EluGradient>();
  r.On<SoftplusGradient>();
  r.On<LogitGradient>();
  r.On<GluGradient>();
  r.On([](Onnx& b, const threshold_backward& op) {
    return b.Where(b.LessOrEqual(op.self, Like(op.self, op.threshold)), Zero(op.grad_output), op.grad_output);
  });
  r.On([](Onnx& b, const leaky_relu_backward& op) { return LeakyGradient(b, op.grad_output, op.self, op.negative_slope); });
  r.On([](Onnx& b, const rrelu_with_noise_backward& op) {
    if (op.training && op.upper.AsDouble() - op.lower.AsDouble() > 1e-6) return op.grad_output * op.noise;
    return LeakyGradient(b, op.grad_output, op.self, (op.lower.AsDouble() + op.upper.AsDouble()) / 2);
  });
  r.On([](Onnx& b, const hardtanh_backward& op) { return Inside(b, op.grad_output, op.self, op.min_val, op.max_val); });
  r.On([](Onnx& b, const hardsigmoid_backward& op) {  // 1/6 between -3 and 3; of NaN 0
    const Val x = op.self, g = Wide(b, op.grad_output);
    return b.Where(b.And(b.Greater(x, Like(x, -3)), b.Less(x, Like(x, 3))), g * (1.0 / 6), Zero(g));
  });
  // x/3 + 1/2 between -3 and 3, 0 before, 1 behind
  r.On([](Onnx& b, const hardswish_backward& op) {
    const Val x = Wide(b, op.self), g = Wide(b, op.grad_output);
    return b.Where(b.LessOrEqual(x, Like(x, -3)), Zero(g), b.Where(b.Less(x, Like(x, 3)), g * (x * (1.0 / 3) + 0.5), g));
  });
  r.On([](Onnx& b, const hardshrink_backward& op) { return Outside(b, op.grad_out, op.self, op.lambd); });
  r.On([](Onnx& b, const softshrink_backward& op) { return Outside(b, op.grad_output, op.self, op.lambd); });
  r.On([](Onnx& b, const log_sigmoid_backward& op) { return Wide(b, op.grad_output) * b.Sigmoid(b.Neg(Wide(b, op.self))); });
  r.On([](Onnx& b, const _softmax_backward_data& op) { return SoftmaxGradient(b, op.grad_output, op.output, op.dim, false); });
  r.On([](Onnx& b, const _log_softmax_backward_data& op) { return SoftmaxGradient(b, op.grad_output, op.output, op.dim, true); });

  r.On([](Onnx& b, const select_backward& op) {
    const int64_t dim = Axis(op.dim, std::ssize(op.input_sizes));
    const SymExpr at = FrontIndex(op.index, op.input_sizes[static_cast<size_t>(dim)]);
    return ZerosWith(b, op.input_sizes, dim, b.Int1(at), b.Unsqueeze(op.grad_output, {dim}));
  });
  r.On([](Onnx& b, const slice_backward& op) {
    const int64_t dim = Axis(op.dim, std::ssize(op.input_sizes));
    const SymExpr start = ClipBound(op.start, op.input_sizes[static_cast<size_t>(dim)]);
    return ZerosWith(b, op.input_sizes, dim, Progression(b, start, op.step, op.grad_output.dim(dim)), op.grad_output);
  });
  r.On([](Onnx& b, const index_select_backward& op) {
    const Val zeros = b.Zeros(op.self_sizes, op.grad.dtype());
    if (zeros.rank() == 0) return b.Reshape(op.grad, DimVec{});
    return ScatterAlong(b, zeros, Axis(op.dim, zeros.rank()), op.index, op.grad, "add");
  });
  // the diagonal
  r.On([](Onnx& b, const trace_backward& op) {
    return b.Where(OnDiagonal(b, op.sizes[0], op.sizes[1], 0), op.grad, Zero(op.grad));
  });
  // at the indices that max, min, median, ... took
  r.On([](Onnx& b, const value_selecting_reduction_backward& op) {
    if (op.sizes.empty()) return op.grad;
    const int64_t dim = Axis(op.dim, std::ssize(op.sizes));
    const auto kept = [&](Val x) { return op.keepdim ? x : b.Unsqueeze(x, {dim}); };
    return ScatterAt(b, b.Zeros(op.sizes, op.grad.dtype()), dim, kept(op.indices), kept(op.grad), "none");
  });
}

}  // namespace pt2onnx
