// Core ATen: losses over classes, and recurrent cells and layers, by their formulas.
//
//   cross_entropy(x, t) = nll(log_softmax(x), t)          nll: -weight[t] * x[t], by gather
#include <algorithm>

#include "decomp/core.h"

namespace pt2onnx {
namespace {

Val Divide(Aten& b, Val x, Scalar by) { return b(aten::div_Scalar{.self = x, .other = by}); }

// The classes' dim is 1, or 0 of one sample.
int64_t ClassDim(Val x) { return x.rank() > 1 ? 1 : 0; }

Val Share(Aten& b, Val x, double part, SymExpr of) {
  const Scalar factor = of.IsConst() ? Scalar(part / static_cast<double>(of.Const())) : Scalar(TrueDiv(SymExpr::Float(part), ToFloat(of)));
  return b(aten::mul_Scalar{.self = x, .other = factor});
}
// A weight for each class, along the classes' dim of x.
Val Along(Aten& b, Val weight, Val x) {
  std::vector<SymExpr> shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(ClassDim(x))] = weight.dim(0);
  return b.Reshape(weight, b.Copy(shape));
}

// -weight[target] * x[target], 0 where the target is ignored; the mean is weighted. Smoothed: a part of it goes to all classes alike.
Val Nll(Aten& b, Val x, Val target, OptVal weight, int64_t reduction, SymExpr ignored, double smoothing = 0) {
  const int64_t dim = ClassDim(x);
  const Val kept = b(aten::ne_Scalar{.self = target, .other = Scalar(ignored)});
  const Val safe = WhereElse(b, kept, target, 0);
  const Val picked = b(aten::squeeze_dim{.self = b(aten::gather{.self = x, .dim = dim, .index = Unsqueeze(b, safe, dim)}), .dim = dim});
  Val loss = b(aten::neg{.self = picked});
  Val factor = b.Cast(kept, x.dtype());
  if (weight) {
    const Val flat = b(aten::index_select{.self = *weight, .dim = 0, .index = b.Reshape(safe, {safe.numel()})});
    const Val own = b.Reshape(flat, safe.shape());
    loss = loss * own;
    factor = factor * own;
  }
  if (smoothing > 0) {
    const Val all = b(aten::neg{.self = Sum(b, weight ? x * Along(b, *weight, x) : x, {dim})});
    loss = b(aten::mul_Scalar{.self = loss, .other = Scalar(1 - smoothing)}) + Share(b, all, smoothing, x.dim(dim));
  }
  loss = WhereElse(b, kept, loss, 0);
  if (reduction == 0) return loss;
  return reduction == 2 ? Sum(b, loss) : Sum(b, loss) / Sum(b, factor);
}

Val LogSoftmax(Aten& b, Val x, int64_t dim) { return b(aten::_log_softmax{.self = x, .dim = dim, .half_to_float = false}); }

// -sum(p * log_softmax(x)) for targets that are probabilities, else nll.
Val CrossEntropy(Aten& b, const aten::cross_entropy_loss& op) {
  const int64_t dim = ClassDim(op.self);
  const Val x = LogSoftmax(b, op.self, dim);
  const bool probabilities = IsFloat(op.target.dtype());
  if (!probabilities) return Nll(b, x, op.target, op.weight, op.reduction, op.ignore_index, op.label_smoothing);
  const SymExpr classes = op.self.dim(dim);
  Val target = op.target;
  if (op.label_smoothing > 0) {
    target = b(aten::mul_Scalar{.self = target, .other = Scalar(1 - op.label_smoothing)});
    target = b(aten::add_Scalar{.self = target,
                                .other = classes.IsConst() ? Scalar(op.label_smoothing / static_cast<double>(classes.Const()))
                                                           : Scalar(TrueDiv(SymExpr::Float(op.label_smoothing), ToFloat(classes)))});
  }
  Val terms = x * target;
  if (op.weight) terms = terms * Along(b, *op.weight, x);
  const Val loss = b(aten::neg{.self = Sum(b, terms, {dim})});
  if (op.reduction == 0) return loss;
  const Val all = Sum(b, loss);
  if (op.reduction == 2) return all;
  const SymExpr samples = FloorDiv(op.self.numel(), classes);
  return samples.IsConst() ? Divide(b, all, Scalar(samples)) : b(aten::div_Scalar{.self = all, .other = Scalar(ToFloat(samples))});
}

Val Mean(Aten& b, Val x, int64_t reduction) { return reduction == 0 ? x : reduction == 1 ? b(aten::mean{.self = x}) : Sum(b, x); }

void Losses(Rules<Aten>& r) {
  r.On<CrossEntropy>();
  r.On([](Aten& b, const aten::nll_loss_nd& op) { return Nll(b, op.self, op.target, op.weight, op.reduction, op.ignore_index); });
  // target * (log target - x), or exp(target) * (target - x) for logarithms
  r.On([](Aten& b, const aten::kl_div& op) {
    Val loss = op.self;
    if (op.log_target) {
      loss = b(aten::exp{.self = op.target}) * (op.target - op.self);
    } else {
      const Val entropy = b(aten::xlogy_Tensor{.self = op.target, .other = op.target});
      loss = entropy - op.target * op.self;
    }
    return Mean(b, loss, op.reduction);
  });
  // max(0, -y (x1 - x2) + margin)
  r.On([](Aten& b, const aten::margin_ranking_loss& op) {
    const Val far = b(aten::neg{.self = op.target}) * (op.input1 - op.input2);
    return Mean(b, b(aten::clamp{.self = b(aten::add_Scalar{.self = far, .other = Scalar(op.margin)}), .min = 0}), op.reduction);
  });
  // x where y is 1, max(0, margin - x) where it is -1
  r.On([](Aten& b, const aten::hinge_embedding_loss& op) {
    const Val margin = b(aten::clamp{.self = b(aten::add_Scalar{.self = b(aten::neg{.self = op.self}), .other = Scalar(op.margin)}), .min = 0});
    const Val unlike = WhereElse(b, b(aten::ne_Scalar{.self = op.target, .other = 1}), margin, 0);
    const Val like = WhereElse(b, b(aten::ne_Scalar{.self = op.target, .other = -1}), op.self, 0);
    return Mean(b, unlike + like, op.reduction);
  });
}

// ---- Recurrent layers ---------------------------------------------------------------------------------------------------------------

Val Gates(Aten& b, Val x, Val w, OptVal bias) { return b(aten::linear{.input = x, .weight = w, .bias = bias}); }
Val Sigmoid(Aten& b, Val x) { return b(aten::sigmoid{.self = x}); }
Val Tanh(Aten& b, Val x) { return b(aten::tanh{.self = x}); }
Vals Parts(Aten& b, Val x, int64_t n) {
  const SymExpr size = FloorDiv(x.dim(-1), n);
  return b.All(aten::split_with_sizes{.self = x, .split_sizes = b.Copy(std::vector<SymExpr>(static_cast<size_t>(n), size)), .dim = x.rank() - 1});
}

struct Weights {
  Val w_ih, w_hh;
  OptVal b_ih, b_hh;
};

// i, f, g, o; c' = f c + i tanh(g), h' = o tanh(c')
Vals LstmStep(Aten& b, Val x, const Vals& state, const Weights& w) {
  const Vals g = Parts(b, Gates(b, x, w.w_ih, w.b_ih) + Gates(b, state[0], w.w_hh, w.b_hh), 4);
  const Val c = Sigmoid(b, g[1]) * state[1] + Sigmoid(b, g[0]) * Tanh(b, g[2]);
  return {Sigmoid(b, g[3]) * Tanh(b, c), c};
}
// r, z, n; h' = n + z (h - n), n = tanh(x_n + r h_n)
Vals GruStep(Aten& b, Val x, const Vals& state, const Weights& w) {
  const Vals i = Parts(b, Gates(b, x, w.w_ih, w.b_ih), 3), h = Parts(b, Gates(b, state[0], w.w_hh, w.b_hh), 3);
  const Val r = Sigmoid(b, i[0] + h[0]), z = Sigmoid(b, i[1] + h[1]), n = Tanh(b, i[2] + h[2] * r);
  return {n + z * (state[0] - n)};
}
template <bool relu>
Vals RnnStep(Aten& b, Val x, const Vals& state, const Weights& w) {
  const Val sum = Gates(b, x, w.w_ih, w.b_ih) + Gates(b, state[0], w.w_hh, w.b_hh);
  return {relu ? b(aten::relu{.self = sum}) : Tanh(b, sum)};
}

template <class Op, auto step>
void Cell(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) {
    Vals state;
    if constexpr (std::is_same_v<decltype(op.hx), Vals>)
      state = op.hx;
    else
      state = {op.hx};
    return step(b, op.input, state, Weights{op.w_ih, op.w_hh, op.b_ih, op.b_hh});
  });
}

// Layer after layer, each in one or two directions, step after step: the number of steps must be known.
template <class Op, auto step>
void Layers(Rules<Aten>& r) {
  r.On([](Aten& b, const Op& op) -> Vals {
    Vals states;
    if constexpr (std::is_same_v<decltype(op.hx), Vals>)
      states = op.hx;
    else
      states = {op.hx};
    const bool unbatched = op.input.rank() == 2;
    const int64_t time = op.batch_first && !unbatched ? 1 : 0;
    const SymExpr length = op.input.dim(time);
    const size_t per = (op.has_biases ? 4u : 2u), directions = op.bidirectional ? 2 : 1;
    const size_t count = static_cast<size_t>(op.num_layers) * directions;
    if (!length.IsConst())
      return {b.Unsupported("a recurrent layer over a dynamic number of steps has no form in Core ATen",
                            "use functionalize, or fix the number of steps")};
    if (op.params.size() != per * count) return {b.Unsupported("a projected recurrent layer has no rule for Core ATen", "use functionalize")};
    Vals sequence;
    for (int64_t t = 0; t < length.Const(); ++t) sequence.push_back(b(aten::select_int{.self = op.input, .dim = time, .index = t}));
    std::vector<Vals> finals(states.size());
    for (size_t layer = 0; layer < static_cast<size_t>(op.num_layers); ++layer) {
      std::vector<Vals> outputs(directions);
      for (size_t d = 0; d < directions; ++d) {
        const size_t at = layer * directions + d;
        const auto param = [&](size_t i) { return op.params[at * per + i]; };
        const Weights w{param(0), param(1), op.has_biases ? OptVal(param(2)) : OptVal(), op.has_biases ? OptVal(param(3)) : OptVal()};
        Vals state;
        for (const Val& s : states) state.push_back(b(aten::select_int{.self = s, .dim = 0, .index = static_cast<int64_t>(at)}));
        Vals out;
        for (size_t t = 0; t < sequence.size(); ++t) {
          state = step(b, sequence[d ? sequence.size() - 1 - t : t], state, w);
          out.push_back(state[0]);
        }
        if (d) std::reverse(out.begin(), out.end());
        outputs[d] = out;
        for (size_t i = 0; i < states.size(); ++i) finals[i].push_back(Unsqueeze(b, state[i], 0));
      }
      for (size_t t = 0; t < sequence.size(); ++t) {
        Val y = outputs[0][t];
        if (directions == 2) y = b(aten::cat{.tensors = {y, outputs[1][t]}, .dim = y.rank() - 1});
        if (op.train && op.dropout > 0 && layer + 1 < static_cast<size_t>(op.num_layers))
          y = b.All(aten::native_dropout{.input = y, .p = op.dropout, .train = true})[0];
        sequence[t] = y;
      }
    }
    Vals steps;
    for (const Val& y : sequence) steps.push_back(Unsqueeze(b, y, time));
    Vals results = {b(aten::cat{.tensors = steps, .dim = time})};
    for (const Vals& list : finals) results.push_back(b(aten::cat{.tensors = list, .dim = 0}));
    return results;
  });
}

void Recurrent(Rules<Aten>& r) {
  Cell<aten::lstm_cell, LstmStep>(r);
  Cell<aten::gru_cell, GruStep>(r);
  Cell<aten::rnn_relu_cell, RnnStep<true>>(r);
  Cell<aten::rnn_tanh_cell, RnnStep<false>>(r);
  Layers<aten::lstm_input, LstmStep>(r);
  Layers<aten::gru_input, GruStep>(r);
  Layers<aten::rnn_relu_input, RnnStep<true>>(r);
  Layers<aten::rnn_tanh_input, RnnStep<false>>(r);
}

}  // namespace

void CoreLoss(Rules<Aten>& r) {
  Losses(r);
  Recurrent(r);
}

}  // namespace pt2onnx
