// Activations and softmax from their formulas.
#include <cmath>
#include <numbers>

#include "fuse/fuse.h"

namespace pt2onnx {

void ActivationFusions(Fusions& f) {
  // x P(X < x) = x / 2 (1 + erf(x / sqrt 2)), X normal
  {
    const Pat x;
    f.On("gelu", 0.5 * x * (1 + Erf(x * std::numbers::sqrt2 * 0.5)), [x](Onnx& b, const Match& m) -> OptVal {
      if (!Usable(b, OnnxOp::Gelu, m[x].dtype())) return {};
      return b.Gelu(m[x]);
    });
  }
  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as it is or with x taken out of the sum
  {
    const Pat x;
    const double s = std::sqrt(2 * std::numbers::inv_pi);
    const Pat inner = OneOf({s * (x + Cube(x, 0.044715)), s * x + Cube(x, s * 0.044715), s * x * (1 + Square(x, 0.044715))});
    f.On("gelu", 0.5 * x * (1 + Tanh(inner)), [x](Onnx& b, const Match& m) -> OptVal {
      if (!Usable(b, OnnxOp::Gelu, m[x].dtype())) return {};
      return b.Gelu(m[x], {.approximate = "tanh"});
    });
  }
  // x min(max(x + 3, 0), 6) / 6
  {
    const Pat x;
    const Pat zero({.form = Pat::Form::Number, .number = 0}), six({.form = Pat::Form::Number, .number = 6});
    const Pat sixth = Op(OnnxOp::Clip, {x + 3, zero, six});
    f.On("hardswish", x * sixth * (1.0 / 6), [x](Onnx& b, const Match& m) -> OptVal {
      if (!Usable(b, OnnxOp::HardSwish, m[x].dtype())) return {};
      return b.HardSwish(m[x]);
    });
  }
  // exp(x - max x) / sum exp(x - max x)
  {
    const Pat x, best = Largest(x), e = Exp(x - best), sum = Op(OnnxOp::ReduceSum, {e});
    f.On("softmax", e / sum, [=](Onnx& b, const Match& m) -> OptVal {
      const auto axis = KeptAxis(m, best);
      if (!axis || axis != KeptAxis(m, sum)) return {};
      return b.Softmax(m[x], {.axis = *axis});
    });
  }
  // x - log sum exp x, by way of the maximum or not
  {
    const Pat x, sum = Op(OnnxOp::ReduceLogSumExp, {x});
    f.On("softmax", x - sum, [=](Onnx& b, const Match& m) -> OptVal {
      const auto axis = KeptAxis(m, sum);
      if (!axis) return {};
      return b.LogSoftmax(m[x], {.axis = *axis});
    });
  }
  {
    const Pat x, best = Largest(x), d = x - best, sum = Op(OnnxOp::ReduceSum, {Exp(d)});
    f.On("softmax", OneOf({d - Log(sum), x - best - Log(sum)}), [=](Onnx& b, const Match& m) -> OptVal {
      const auto axis = KeptAxis(m, best);
      if (!axis || axis != KeptAxis(m, sum)) return {};
      return b.LogSoftmax(m[x], {.axis = *axis});
    });
  }
}

}  // namespace pt2onnx
