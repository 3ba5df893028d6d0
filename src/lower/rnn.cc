// Recurrent layers and cells. A layer is ONNX's LSTM, GRU or RNN of the same meaning: its gates stand in another order, and both biases are
// one tensor. What ONNX Runtime can't do (projections, float64) is a Scan over time with the cell as its body.
//
//   %y, %h, %c = aten::lstm.input(%x, [%h0, %c0], [%w_ih, %w_hh, %b_ih, %b_hh], true, 1, 0.0, false, false, false)
//   ->  %W = Gather(%w_ih, [[0..H, 3H..4H, H..3H]])  ...  %Y, %h, %c = LSTM(%x, %W, %R, %B, , %h0, %c0, hidden_size=H)   %y = Squeeze(%Y, [1])
//
// Packed sequences have no rule: capture unrolls them by the batch sizes, which must be constants for it.
#include "lower/dropout.h"

namespace pt2onnx {
namespace {

enum class Cell { Lstm, Gru, Tanh, Relu };

// torch's gates in ONNX's order: ifgo -> iofg, rzn -> zrn
IntVec GateOrder(Cell cell) {
  if (cell == Cell::Lstm) return {0, 3, 1, 2};
  return cell == Cell::Gru ? IntVec{1, 0, 2} : IntVec{0};
}

// ---- Cells --------------------------------------------------------------------------------------------------------------------------

// i, f, g, o: c' = f c + i g, h' = o tanh(c')
struct LstmState {
  Val h, c;
};
LstmState LstmStep(Onnx& b, Val gates, Val c) {
  const Vals g = b.Split(gates, DimVec(std::vector<SymExpr>(4, c.dim(-1))), -1);
  const Val next = b.Sigmoid(g[1]) * c + b.Sigmoid(g[0]) * b.Tanh(g[2]);
  return {b.Sigmoid(g[3]) * b.Tanh(next), next};
}

// r, z, n: n = tanh(x_n + r h_n), h' = n + z (h - n)
Val GruStep(Onnx& b, Val x_gates, Val h_gates, Val h) {
  const DimVec thirds(std::vector<SymExpr>(3, h.dim(-1)));
  const Vals x = b.Split(x_gates, thirds, -1), g = b.Split(h_gates, thirds, -1);
  const Val r = b.Sigmoid(x[0] + g[0]), z = b.Sigmoid(x[1] + g[1]);
  const Val n = b.Tanh(x[2] + r * g[2]);
  return (h - n) * z + n;
}

Val Affine(Onnx& b, Val x, Val weight, const OptVal& bias) {
  if (x.rank() == 2 && IsFloat(x.dtype())) return b.Gemm(x, weight, bias, {.transB = 1});
  const Val y = b.MatMul(x, b.Transpose(weight, {1, 0}));
  return bias ? y + *bias : y;
}
Val Activate(Onnx& b, Cell cell, Val x) { return cell == Cell::Tanh ? b.Tanh(x) : b.Relu(x); }

template <Cell cell, class Op>
Val SimpleCell(Onnx& b, const Op& op) { return Activate(b, cell, Affine(b, op.input, op.w_ih, op.b_ih) + Affine(b, op.hx, op.w_hh, op.b_hh)); }

// ---- Layers -------------------------------------------------------------------------------------------------------------------------

struct Direction {
  Val w_ih, w_hh;
  OptVal b_ih = {}, b_hh = {}, w_hr = {};  // w_hr: h is projected by it
};
struct Layers {
  Cell cell;
  Val x;         // [time, batch, features]
  Vals states;   // h, and of an LSTM c: [layers * directions, batch, hidden]
  std::vector<std::vector<Direction>> weights;  // by layer and direction
  double dropout = 0;                           // between layers
};
struct Outcome {
  Val y;         // [time, batch, directions * hidden]
  Vals states;
};

// One direction, time step by time step.
Outcome Written(Onnx& b, Cell cell, Val x, Vals states, const Direction& w, bool reverse) {
  const bool gru = cell == Cell::Gru;
  Val gates = Affine(b, x, w.w_ih, w.b_ih);
  if (w.b_hh && !gru) gates = gates + *w.b_hh;
  const auto body = [&](Onnx& s, const Vals& state, const Vals& slice) -> ScanStep {
    const Val h = state[0];
    if (gru) {
      const Val next = GruStep(s, slice[0], Affine(s, h, w.w_hh, w.b_hh), h);
      return {{next}, {next}};
    }
    const Val all = slice[0] + Affine(s, h, w.w_hh, {});
    if (cell != Cell::Lstm) {
      const Val next = Activate(s, cell, all);
      return {{next}, {next}};
    }
    const LstmState next = LstmStep(s, all, state[1]);
    const Val out = w.w_hr ? Affine(s, next.h, *w.w_hr, {}) : next.h;
    return {{out, next.c}, {out}};
  };
  Onnx::ScanOptions options;
  if (reverse) options.input_directions = options.output_directions = {1};
  Vals out = b.Scan(states, {gates}, body, options);
  const Val y = out.back();
  out.pop_back();
  return {y, out};
}

// All directions of a layer by ONNX's operator.
Outcome Whole(Onnx& b, Cell cell, Val x, const Vals& states, const std::vector<Direction>& directions) {
  const Val& first = directions[0].w_hh;
  const int64_t hidden = first.dim(1).Const();
  std::vector<double> rows;
  for (int64_t gate : GateOrder(cell))
    for (int64_t i = 0; i < hidden; ++i) rows.push_back(static_cast<double>(gate * hidden + i));
  const auto ordered = [&](Val v) {  // with a leading dim for the direction
    if (rows.size() == static_cast<size_t>(hidden)) return b.Unsqueeze(v, {0});
    return b.Gather(v, b.Tensor({1, std::ssize(rows)}, rows, DType::I64), 0);
  };
  Vals w, r, biases;
  for (const Direction& d : directions) {
    w.push_back(ordered(d.w_ih));
    r.push_back(ordered(d.w_hh));
    if (d.b_ih) biases.push_back(b.Concat({ordered(*d.b_ih), ordered(*d.b_hh)}, 1));
  }
  const OptVal bias = biases.empty() ? OptVal() : b.Concat(biases, 0);
  const Val W = b.Concat(w, 0), R = b.Concat(r, 0);
  const bool both = directions.size() == 2;
  const std::string_view direction = both ? "bidirectional" : "forward";
  const auto flat = [&](Val y) {  // [time, directions, batch, hidden]
    if (!both) return b.Squeeze(y, {1});
    return b.Reshape(b.Transpose(y, {0, 2, 1, 3}), {x.dim(0), x.dim(1), 2 * hidden});
  };
  if (cell == Cell::Lstm) {
    const LSTMOut out = b.LSTM(x, W, R, bias, {}, states[0], states[1], {}, {.direction = direction, .hidden_size = hidden});
    return {flat(out.Y), {out.Y_h, out.Y_c}};
  }
  if (cell == Cell::Gru) {
    const GRUOut out = b.GRU(x, W, R, bias, {}, states[0], {.direction = direction, .hidden_size = hidden, .linear_before_reset = 1});
    return {flat(out.Y), {out.Y_h}};
  }
  RNNAttrs attrs = {.direction = direction, .hidden_size = hidden};
  if (cell == Cell::Relu) attrs.activations.assign(directions.size(), "Relu");
  else attrs.activations.assign(directions.size(), "Tanh");
  const RNNOut out = b.RNN(x, W, R, bias, {}, states[0], attrs);
  return {flat(out.Y), {out.Y_h}};
}

Outcome Run(Onnx& b, const Layers& l) {
  Val x = l.x;
  std::vector<Vals> last(l.states.size());
  const bool written = l.weights[0][0].w_hr || x.dtype() == DType::F64;
  if (!l.weights[0][0].w_hh.dim(1).IsConst()) b.Unsupported("the hidden size of a recurrent layer is symbolic; ONNX needs it as a constant");
  if (b.problem()) return {x, l.states};
  for (size_t i = 0; i < l.weights.size(); ++i) {
    const std::vector<Direction>& directions = l.weights[i];
    const int64_t n = std::ssize(directions), from = static_cast<int64_t>(i) * n;
    const auto initial = [&](int64_t first, int64_t count) {
      Vals out;
      for (const Val& s : l.states) out.push_back(b.Slice(s, 0, first, first + count));
      return out;
    };
    if (!written) {
      const Outcome out = Whole(b, l.cell, x, initial(from, n), directions);
      x = out.y;
      for (size_t s = 0; s < last.size(); ++s) last[s].push_back(out.states[s]);
    } else {
      Vals ys;
      for (int64_t d = 0; d < n; ++d) {
        Vals states = initial(from + d, 1);
        for (Val& s : states) s = b.Squeeze(s, {0});
        const Outcome out = Written(b, l.cell, x, states, directions[static_cast<size_t>(d)], d == 1);
        ys.push_back(out.y);
        for (size_t s = 0; s < last.size(); ++s) last[s].push_back(b.Unsqueeze(out.states[s], {0}));
      }
      x = b.Concat(ys, 2);
    }
    if (l.dropout > 0 && i + 1 < l.weights.size()) x = Drop(b, x, l.dropout).y;
  }
  Vals states;
  for (const Vals& s : last) states.push_back(b.Concat(s, 0));
  return {x, states};
}

// torch's flat list: of each layer and direction w_ih, w_hh, then b_ih, b_hh, then w_hr.
std::vector<std::vector<Direction>> WeightsOf(const Vals& params, int64_t layers, bool bidirectional, bool biases) {
  const size_t directions = bidirectional ? 2 : 1, each = params.size() / (static_cast<size_t>(layers) * directions);
  std::vector<std::vector<Direction>> out;
  for (size_t at = 0; at + each <= params.size(); at += each) {
    if (at / each % directions == 0) out.emplace_back();
    Direction d{.w_ih = params[at], .w_hh = params[at + 1]};
    if (biases) d.b_ih = params[at + 2], d.b_hh = params[at + 3];
    if (each == (biases ? 5u : 3u)) d.w_hr = params[at + each - 1];
    out.back().push_back(d);
  }
  return out;
}

Vals States(const Val& hx) { return {hx}; }
Vals States(const Vals& hx) { return hx; }

template <Cell cell, class Op>
Vals LayersRule(Onnx& b, const Op& op) {
  const Val x = op.batch_first ? b.Transpose(op.input, {1, 0, 2}) : op.input;
  const Outcome out = Run(b, {cell, x, States(op.hx), WeightsOf(op.params, op.num_layers, op.bidirectional, op.has_biases), op.train ? op.dropout : 0});
  Vals all = {op.batch_first ? b.Transpose(out.y, {1, 0, 2}) : out.y};
  all.insert(all.end(), out.states.begin(), out.states.end());
  return all;
}

}  // namespace

void RnnRules(Rules<Onnx>& r) {
  r.On<LayersRule<Cell::Lstm, aten::lstm_input>>();
  r.On<LayersRule<Cell::Gru, aten::gru_input>>();
  r.On<LayersRule<Cell::Tanh, aten::rnn_tanh_input>>();
  r.On<LayersRule<Cell::Relu, aten::rnn_relu_input>>();

  r.On<SimpleCell<Cell::Tanh, aten::rnn_tanh_cell>>();
  r.On<SimpleCell<Cell::Relu, aten::rnn_relu_cell>>();
  r.On([](Onnx& b, const aten::gru_cell& op) {
    return GruStep(b, Affine(b, op.input, op.w_ih, op.b_ih), Affine(b, op.hx, op.w_hh, op.b_hh), op.hx);
  });
  r.On([](Onnx& b, const aten::lstm_cell& op) -> Vals {
    const LstmState out = LstmStep(b, Affine(b, op.input, op.w_ih, op.b_ih) + Affine(b, op.hx[0], op.w_hh, op.b_hh), op.hx[1]);
    return {out.h, out.c};
  });
  r.On([](Onnx& b, const aten::_thnn_fused_lstm_cell& op) -> Vals {
    Val gates = op.input_gates + op.hidden_gates;
    if (op.input_bias) gates = gates + *op.input_bias;
    if (op.hidden_bias) gates = gates + *op.hidden_bias;
    const LstmState out = LstmStep(b, gates, op.cx);
    return {out.h, out.c, LaterUnsupported(b, 2, "the workspace of a fused cell has no ONNX form")};
  });
  r.On([](Onnx& b, const aten::_thnn_fused_gru_cell& op) -> Vals {
    const auto biased = [](Val x, const OptVal& bias) { return bias ? x + *bias : x; };
    return {GruStep(b, biased(op.input_gates, op.input_bias), biased(op.hidden_gates, op.hidden_bias), op.hx),
            LaterUnsupported(b, 1, "the workspace of a fused cell has no ONNX form")};
  });
}

}  // namespace pt2onnx
