// Losses. Elementwise ones are formulas; those with class targets pick by index:
//
//   nll = -x[n, target[n], ...] * weight[target[n]], 0 where target is ignore_index; the mean is divided by the sum of the weights that count
//
//   %l = aten::mse_loss(%a, %b)    ->    %d = Sub(%a, %b)   %l = ReduceMean(Mul(%d, %d))
#include "lower/network.h"

namespace pt2onnx {
namespace {

constexpr int64_t kMean = 1;  // torch's codes of a reduction
constexpr int64_t kSum = 2;

Val Reduced(Onnx& b, Val x, int64_t reduction) {
  if (reduction == kMean) return b.ReduceMean(x, Axes(0, x.rank()));
  return reduction == kSum ? b.ReduceSum(x, Axes(0, x.rank())) : x;
}

Val AsFloat(Onnx& b, Val x) { return IsFloat(x.dtype()) ? x : b.Cast(x, DType::F32); }
Val Zero(Onnx& b, Val like) { return b.Constant(0, like.dtype()); }
Val Positive(Onnx& b, Val x) { return b.Max(x, Zero(b, x)); }
Val IsNumber(Onnx& b, Val x, double number) { return b.Equal(x, b.Constant(number, x.dtype())); }
Val Square(Val x) { return x * x; }

// ---- Elementwise --------------------------------------------------------------------------------------------------------------------

// d^2 / (2 beta) near 0, |d| - beta / 2 elsewhere
Val SmoothL1(Onnx& b, Val d, double beta) {
  const Val size = b.Abs(d);
  if (beta == 0) return size;
  return b.Where(b.Less(size, b.Constant(beta, d.dtype())), Square(d) * (0.5 / beta), size - 0.5 * beta);
}

// d^2 / 2 near 0, delta (|d| - delta / 2) elsewhere
Val Huber(Onnx& b, Val d, double delta) {
  const Val size = b.Abs(d);
  return b.Where(b.LessOrEqual(size, b.Constant(delta, d.dtype())), Square(d) * 0.5, (size - 0.5 * delta) * delta);
}

// -(t log x + (1 - t) log(1 - x)), the logarithms not below -100
Val CrossEntropyOfProbability(Onnx& b, Val x, Val t) {
  const Val least = b.Constant(-100, x.dtype());
  return (t - 1) * b.Max(b.Log(1 - x), least) - t * b.Max(b.Log(x), least);
}

// (1 - t) x + (1 + (pos_weight - 1) t) log(1 + exp(-x))
Val CrossEntropyOfLogit(Onnx& b, Val x, Val t, const OptVal& pos_weight) {
  const Val softplus = b.Log(b.Exp(b.Neg(b.Abs(x))) + 1) + Positive(b, b.Neg(x));
  return (1 - t) * x + (pos_weight ? ((*pos_weight - 1) * t + 1) * softplus : softplus);
}

// t (log t - x), or of a target that is a logarithm exp(t) (t - x); 0 log 0 is 0
Val KlDiv(Onnx& b, Val x, Val t, bool log_target) {
  if (log_target) return b.Exp(t) * (t - x);
  return b.Where(IsNumber(b, t, 0), Zero(b, t), t * b.Log(t)) - t * x;
}

// exp(x) - t x, or x - t log(x + eps); full: with Stirling's t log t - t + log(2 pi t) / 2 where t > 1
Val PoissonNll(Onnx& b, const aten::poisson_nll_loss& op) {
  const Val x = AsFloat(b, op.input), t = b.Cast(op.target, x.dtype());
  Val y = op.log_input ? b.Exp(x) - t * x : x - t * b.Log(x + op.eps);
  if (op.full) {
    const Val stirling = t * b.Log(t) - t + b.Log(t * (2 * M_PI)) * 0.5;
    y = y + b.Where(b.Greater(t, b.Constant(1, t.dtype())), stirling, Zero(b, t));
  }
  return Reduced(b, y, op.reduction);
}

Val HingeEmbedding(Onnx& b, Val x, Val t, double margin) {
  const Val far = b.Where(IsNumber(b, t, 1), Zero(b, x), Positive(b, margin - x));
  return b.Where(IsNumber(b, t, -1), Zero(b, x), x) + far;
}

// 1 - cos of alike pairs, max(0, cos - margin) of others
Val CosineEmbedding(Onnx& b, const aten::cosine_embedding_loss& op) {
  const Val x = AsFloat(b, op.input1), y = AsFloat(b, op.input2);
  const auto sum = [&](Val v) { return b.ReduceSum(v, {op.target.rank()}); };
  const Val cos = sum(x * y) / b.Sqrt((sum(x * x) + 1e-12) * (sum(y * y) + 1e-12));
  const Val alike = b.Where(IsNumber(b, op.target, 1), 1 - cos, Zero(b, cos));
  const Val other = op.target.dtype() == DType::Bool ? Zero(b, cos) : b.Where(IsNumber(b, op.target, -1), Positive(b, cos - op.margin), Zero(b, cos));
  return Reduced(b, alike + other, op.reduction);
}

Val TripletMargin(Onnx& b, const aten::triplet_margin_loss& op) {
  const auto distance = [&](Val x, Val y) {
    const Val d = AsFloat(b, x) - AsFloat(b, y) + op.eps;
    return VectorNorm(b, d, op.p, {d.rank() - 1}, false);
  };
  const Val near = distance(op.anchor, op.positive);
  Val far = distance(op.anchor, op.negative);
  if (op.swap) far = b.Min(far, distance(op.positive, op.negative));
  return Reduced(b, Positive(b, near - far + op.margin), op.reduction);
}

// ---- Class targets ------------------------------------------------------------------------------------------------------------------

// sum over j != y of weight[y] max(0, margin - x[y] + x[j])^p / classes
Val MultiMargin(Onnx& b, const aten::multi_margin_loss& op) {
  const bool single = op.self.rank() == 1;
  const Val x = single ? b.Unsqueeze(op.self, {0}) : op.self;
  const Val target = b.Reshape(op.target, {x.dim(0), 1});
  Val z = Positive(b, x - b.GatherElements(x, target, {.axis = 1}) + op.margin);
  if (op.p.Is(2)) z = Square(z);
  if (op.weight) z = z * b.Gather(*op.weight, target, 0);
  const Val others = b.Not(b.Equal(target, Iota(b, x.dim(1))));
  const Val y = b.ReduceSum(b.Where(others, z, Zero(b, z)), {1}) / b.Number(x.dim(1), x.dtype());
  if (op.reduction != kMean && op.reduction != kSum) return op.self.rank() == 1 ? b.Reshape(y, ResultShape(b)) : y;
  return Reduced(b, y, op.reduction);
}

// Targets are those before the first -1: sum over targets j and others i of max(0, 1 - x[j] + x[i]) / classes
struct MultilabelMargin {
  Val loss, is_target;
};
MultilabelMargin MultilabelMarginLoss(Onnx& b, Val self, Val labels, int64_t reduction) {
  const bool single = self.rank() < 2;
  const SymExpr classes = self.rank() == 0 ? SymExpr(1) : self.dim(-1);
  const Val x = single ? b.Reshape(self, {1, classes}) : self;
  const Val target = single ? b.Reshape(labels, {1, classes}) : labels;
  const Val ended = b.CumSum(b.Cast(b.Less(target, Zero(b, target)), DType::I64), b.IntScalar(1));
  const Val counts = IsNumber(b, ended, 0);
  const Val picked = b.GatherElements(x, Positive(b, target), {.axis = 1});
  const Val hit = b.And(b.Equal(b.Unsqueeze(target, {2}), Iota(b, classes)), b.Unsqueeze(counts, {2}));
  const Val is_target = b.ReduceMax(b.Cast(hit, x.dtype()), {1});
  const Val z = Positive(b, b.Unsqueeze(x, {1}) - b.Unsqueeze(picked, {2}) + 1);
  const Val part = b.And(b.Unsqueeze(counts, {2}), b.Unsqueeze(IsNumber(b, is_target, 0), {1}));
  const Val y = b.ReduceSum(b.Where(part, z, Zero(b, z)), {1, 2}) / b.Number(classes, x.dtype());
  const Val loss = reduction == kMean || reduction == kSum ? Reduced(b, y, reduction) : b.Reshape(y, ResultShape(b));
  return {loss, b.Reshape(is_target, labels.shape())};
}

// Where a class target counts, the class to pick there, and the weight it has.
struct Picked {
  Val counts, weight, loss;
};
// x: [N, C, ...] or [C]; target without the class dim
Picked PickClass(Onnx& b, Val x, Val target, const OptVal& weight, SymExpr ignore_index) {
  const int64_t axis = x.rank() == 1 ? 0 : 1;
  target = AsIndex(b, target);
  const Val counts = b.Not(b.Equal(target, b.Int(ignore_index)));
  const Val index = b.Where(counts, target, b.IntScalar(0));
  const Val picked = b.Squeeze(b.GatherElements(x, b.Unsqueeze(index, {axis}), {.axis = axis}), {axis});
  const Val given = weight ? b.Cast(b.Gather(*weight, index, 0), x.dtype()) : b.Constant(1, x.dtype());
  const Val used = b.Where(counts, given, Zero(b, x));
  const Val loss = weight ? b.Neg(picked) * given : b.Neg(picked);
  return {counts, used, b.Where(counts, loss, Zero(b, x))};
}

Val MeanOf(Onnx& b, Val loss, Val weight) {
  return b.ReduceSum(loss, Axes(0, loss.rank())) / b.ReduceSum(weight, Axes(0, weight.rank()));
}

Val NllLoss(Onnx& b, Val x, Val target, const OptVal& weight, int64_t reduction, SymExpr ignore_index) {
  const Picked p = PickClass(b, x, target, weight, ignore_index);
  return reduction == kMean ? MeanOf(b, p.loss, p.weight) : Reduced(b, p.loss, reduction);
}
// The loss and the sum of weights; the latter is 0 where nothing is reduced.
Vals NllLossForward(Onnx& b, Val x, Val target, const OptVal& weight, int64_t reduction, SymExpr ignore_index) {
  const Picked p = PickClass(b, x, target, weight, ignore_index);
  const Val total = reduction == kMean || reduction == kSum ? b.ReduceSum(p.weight, Axes(0, p.weight.rank())) : b.Constant(0, x.dtype());
  return {reduction == kMean ? MeanOf(b, p.loss, p.weight) : Reduced(b, p.loss, reduction), total};
}

// Laid along the class dim of x.
Val ClassWeight(Onnx& b, Val weight, Val x) { return x.rank() == 1 ? weight : b.Unsqueeze(weight, Axes(1, x.rank() - 1)); }

Val CrossEntropy(Onnx& b, const aten::cross_entropy_loss& op) {
  const Val x = op.self;
  const int64_t axis = x.rank() == 1 ? 0 : 1;
  const SymExpr classes = x.dim(axis);
  const Val logs = b.LogSoftmax(x, {.axis = axis});
  const double smoothing = op.label_smoothing;
  const auto weighted = [&](Val v) { return op.weight ? v * ClassWeight(b, b.Cast(*op.weight, x.dtype()), x) : v; };

  if (IsFloat(op.target.dtype())) {  // a probability of each class
    Val t = b.Cast(op.target, x.dtype());
    if (smoothing > 0) t = t * (1 - smoothing) + b.Constant(smoothing, x.dtype()) / b.Number(classes, x.dtype());
    const Val loss = b.Neg(b.ReduceSum(weighted(logs * t), {axis}));
    if (op.reduction != kMean) return Reduced(b, loss, op.reduction);
    return b.ReduceSum(loss, Axes(0, loss.rank())) / b.Number(Product(loss.shape()), x.dtype());
  }
  const Picked p = PickClass(b, logs, op.target, op.weight, op.ignore_index);
  Val loss = p.loss;
  if (smoothing > 0) {  // (1 - smoothing) of the target's loss, and smoothing of that of all classes alike
    const Val all = b.Where(p.counts, b.Neg(b.ReduceSum(weighted(logs), {axis})), Zero(b, x));
    loss = loss * (1 - smoothing) + all * (b.Constant(smoothing, x.dtype()) / b.Number(classes, x.dtype()));
  }
  return op.reduction == kMean ? MeanOf(b, loss, p.weight) : Reduced(b, loss, op.reduction);
}

}  // namespace

void LossRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::mse_loss& op) { return Reduced(b, Square(op.self - op.target), op.reduction); });
  r.On([](Onnx& b, const aten::l1_loss& op) { return Reduced(b, b.Abs(op.self - op.target), op.reduction); });
  r.On([](Onnx& b, const aten::smooth_l1_loss& op) { return Reduced(b, SmoothL1(b, op.self - op.target, op.beta), op.reduction); });
  r.On([](Onnx& b, const aten::huber_loss& op) { return Reduced(b, Huber(b, op.self - op.target, op.delta), op.reduction); });
  r.On([](Onnx& b, const aten::binary_cross_entropy& op) {
    const Val y = CrossEntropyOfProbability(b, op.self, op.target);
    return Reduced(b, op.weight ? y * *op.weight : y, op.reduction);
  });
  r.On([](Onnx& b, const aten::binary_cross_entropy_with_logits& op) {
    const Val y = CrossEntropyOfLogit(b, op.self, op.target, op.pos_weight);
    return Reduced(b, op.weight ? y * *op.weight : y, op.reduction);
  });
  r.On([](Onnx& b, const aten::kl_div& op) { return Reduced(b, KlDiv(b, op.self, op.target, op.log_target), op.reduction); });
  r.On<PoissonNll>();
  // log(1 + exp(-t x))
  r.On([](Onnx& b, const aten::soft_margin_loss& op) { return Reduced(b, b.Log(b.Exp(b.Neg(op.target * op.self)) + 1), op.reduction); });
  // max(0, -t (x1 - x2) + margin)
  r.On([](Onnx& b, const aten::margin_ranking_loss& op) {
    return Reduced(b, Positive(b, b.Neg(op.target) * (op.input1 - op.input2) + op.margin), op.reduction);
  });
  r.On([](Onnx& b, const aten::hinge_embedding_loss& op) { return Reduced(b, HingeEmbedding(b, op.self, op.target, op.margin), op.reduction); });
  r.On<CosineEmbedding>();
  r.On<TripletMargin>();
  r.On<MultiMargin>();
  r.On([](Onnx& b, const aten::multilabel_margin_loss& op) { return MultilabelMarginLoss(b, op.self, op.target, op.reduction).loss; });
  r.On([](Onnx& b, const aten::multilabel_margin_loss_forward& op) -> Vals {
    const MultilabelMargin out = MultilabelMarginLoss(b, op.self, op.target, op.reduction);
    return {out.loss, out.is_target};
  });
  r.On<CrossEntropy>();

  constexpr auto kNll = [](Onnx& b, const auto& op) { return NllLoss(b, op.self, op.target, op.weight, op.reduction, op.ignore_index); };
  constexpr auto kNllForward = [](Onnx& b, const auto& op) { return NllLossForward(b, op.self, op.target, op.weight, op.reduction, op.ignore_index); };
  OnEach<aten::nll_loss, aten::nll_loss2d, aten::nll_loss_nd>(r, kNll);
  OnEach<aten::nll_loss_forward, aten::nll_loss2d_forward>(r, kNllForward);
}

}  // namespace pt2onnx
