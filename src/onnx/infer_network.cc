// Shapes of convolution, pooling, normalization, recurrent, signal and image operators.
#include "onnx/infer.h"

namespace pt2onnx {
namespace {

const SymExpr kUnknown = SymExpr::Unknown();

int64_t At(Ints list, size_t i, int64_t none) { return i < list.size() ? list[i] : none; }

// (n + pads - dilation * (kernel - 1) - 1) // stride + 1
SymExpr Window(const InferCall& c, SymExpr dim, SymExpr kernel, size_t i, size_t spatial) {
  const Ints pads = c.IntList("pads");
  const std::string_view auto_pad = c.Text("auto_pad", "NOTSET");
  const SymExpr stride = At(c.IntList("strides"), i, 1);
  if (dim.IsUnknown() || kernel.IsUnknown()) return kUnknown;
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") return CeilDiv(dim, stride);
  const SymExpr padded = auto_pad == "VALID" ? dim : dim + At(pads, i, 0) + At(pads, spatial + i, 0);
  return FloorDiv(padded - At(c.IntList("dilations"), i, 1) * (kernel - 1) - 1, stride) + 1;
}

void Conv(InferCall& c, int weight, std::optional<int64_t> rank) {
  if (!c.Ranked(0)) return rank ? c.SetRank(0, *rank) : void();
  DimVec out(c.Shape(0));
  if (out.size() < 2) return;
  const bool known = c.Ranked(weight) && c.Rank(weight) == c.Rank(0);
  const Ints kernel = c.IntList("kernel_shape");
  out[1] = known ? c.Shape(weight)[0] : kUnknown;
  for (size_t i = 0; i + 2 < out.size(); ++i)
    out[i + 2] = Window(c, out[i + 2], i < kernel.size() ? SymExpr(kernel[i]) : known ? c.Shape(weight)[i + 2] : kUnknown, i, out.size() - 2);
  c.Set(0, out);
}

// stride * (n - 1) + output_padding + dilation * (kernel - 1) + 1 - pads
void ConvTranspose(InferCall& c) {
  if (!c.Ranked(0)) return;
  DimVec out(c.Shape(0));
  if (out.size() < 2) return;
  const bool known = c.Ranked(1) && c.Rank(1) == c.Rank(0);
  const Ints kernel = c.IntList("kernel_shape"), pads = c.IntList("pads"), shape = c.IntList("output_shape");
  out[1] = known && !c.Shape(1)[1].IsUnknown() ? c.Shape(1)[1] * c.Int("group", 1) : kUnknown;
  const size_t spatial = out.size() - 2;
  for (size_t i = 0; i < spatial; ++i) {
    SymExpr& dim = out[i + 2];
    const SymExpr k = i < kernel.size() ? SymExpr(kernel[i]) : known ? c.Shape(1)[i + 2] : kUnknown;
    if (i < shape.size()) dim = shape[i];
    else if (dim.IsUnknown() || k.IsUnknown() || c.Text("auto_pad", "NOTSET") != "NOTSET") dim = kUnknown;
    else dim = At(c.IntList("strides"), i, 1) * (dim - 1) + At(c.IntList("output_padding"), i, 0) + At(c.IntList("dilations"), i, 1) * (k - 1) + 1 -
               At(pads, i, 0) - At(pads, spatial + i, 0);
  }
  c.Set(0, out);
}

void Pool(InferCall& c) {
  if (!c.Ranked(0)) return;
  DimVec out(c.Shape(0));
  const Ints kernel = c.IntList("kernel_shape");
  const bool ceil = c.Int("ceil_mode", 0) != 0;
  for (size_t i = 0; i + 2 < out.size(); ++i)
    out[i + 2] = ceil || i >= kernel.size() ? kUnknown : Window(c, out[i + 2], kernel[i], i, out.size() - 2);
  for (size_t r = 0; r < c.types.size(); ++r) c.Set(r, out);
}

void GlobalPool(InferCall& c) {
  if (!c.Ranked(0)) return;
  DimVec out(c.Shape(0));
  for (size_t i = 2; i < out.size(); ++i) out[i] = 1;
  c.Set(0, out);
}

void Resize(InferCall& c) {
  if (!c.Ranked(0)) return;
  const DimVec* sizes = c.Known(3);
  DimVec out(c.Shape(0));
  const Ints axes = c.IntList("axes");
  const bool stretch = c.Text("keep_aspect_ratio_policy", "stretch") == "stretch";
  for (size_t i = 0; i < out.size(); ++i)
    if (axes.empty()) out[i] = sizes && stretch && i < sizes->size() ? (*sizes)[i] : kUnknown;
  for (size_t i = 0; i < axes.size(); ++i)
    if (const auto a = c.Axis(axes[i], c.Rank(0))) out[static_cast<size_t>(*a)] = sizes && stretch && i < sizes->size() ? (*sizes)[i] : kUnknown;
  c.Set(0, out);
}

// Y: [steps, directions, batch, hidden]; Y_h, Y_c: [directions, batch, hidden]; layout 1 puts the batch first.
void Recurrent(InferCall& c) {
  const SymExpr steps = c.Ranked(0) && c.Rank(0) == 3 ? c.Shape(0)[0] : kUnknown, batch = c.Ranked(0) && c.Rank(0) == 3 ? c.Shape(0)[1] : kUnknown;
  const SymExpr directions = c.Text("direction", "forward") == "bidirectional" ? 2 : 1;
  const Arg& hidden_arg = c.Attr("hidden_size");
  const SymExpr hidden = IsNone(hidden_arg) ? (c.Ranked(2) && c.Rank(2) == 3 ? c.Shape(2)[2] : kUnknown) : SymExpr(std::get<int64_t>(hidden_arg));
  if (c.Int("layout", 0)) {
    c.Set(0, {steps, batch, directions, hidden});
    for (size_t i = 1; i < c.types.size(); ++i) c.Set(i, {steps, directions, hidden});
  } else {
    c.Set(0, {steps, directions, batch, hidden});
    for (size_t i = 1; i < c.types.size(); ++i) c.Set(i, {directions, batch, hidden});
  }
}

void Attention(InferCall& c) {
  if (!c.Ranked(0) || !c.Ranked(1) || !c.Ranked(2)) return;
  const Dims q = c.Shape(0), k = c.Shape(1), v = c.Shape(2);
  if (q.size() == 4 && v.size() == 4 && k.size() == 4) {
    c.Set(0, {q[0], q[1], q[2], v[3]});
    const SymExpr past = c.Ranked(4) && c.Rank(4) == 4 ? c.Shape(4)[2] : SymExpr(0);
    const SymExpr total = past.IsUnknown() || k[2].IsUnknown() ? kUnknown : past + k[2];
    c.Set(1, {k[0], k[1], total, k[3]});
    c.Set(2, {v[0], v[1], total, v[3]});
    c.Set(3, {q[0], q[1], q[2], total});
  } else if (q.size() == 3) {
    c.Set(0, {q[0], q[1], kUnknown});
    for (size_t i = 1; i < 4; ++i) c.SetRank(i, 4);
  }
}

// The axis of the transform has dft_length or its own length of entries, half of that and one if only one side is given.
void Dft(InferCall& c) {
  if (!c.Ranked(0) || c.Rank(0) < 2) return;
  DimVec out(c.Shape(0));
  const auto axis_value = c.KnownConst(2);
  const int64_t given = axis_value && axis_value->size() == 1 ? axis_value->front() : IsNone(c.Attr("axis")) ? -2 : std::get<int64_t>(c.Attr("axis"));
  const auto axis = c.Axis(given, c.Rank(0));
  const bool onesided = c.Int("onesided", 0) != 0, inverse = c.Int("inverse", 0) != 0;
  out.back() = onesided && inverse ? 1 : 2;
  if (axis && (axis_value || !c.In(2))) {
    SymExpr& n = out[static_cast<size_t>(*axis)];
    const DimVec* length = c.Known(1);
    if (c.In(1)) n = length && length->size() == 1 ? length->front() : kUnknown;
    else if (onesided && inverse) n = kUnknown;
    if (onesided && !inverse && !n.IsUnknown()) n = FloorDiv(n, 2) + 1;
  } else {
    for (size_t i = 0; i + 1 < out.size(); ++i) out[i] = kUnknown;
  }
  c.Set(0, out);
}

// Y [batch, channels, rows, columns] of regions or grids.
void Regions(InferCall& c, SymExpr count, int64_t height, int64_t width) {
  c.Set(0, {count, c.Ranked(0) && c.Rank(0) > 1 ? c.Shape(0)[1] : kUnknown, height, width});
}

void GridSample(InferCall& c) {
  if (!c.Ranked(0) || !c.Ranked(1) || c.Rank(0) < 3 || c.Rank(1) != c.Rank(0)) return;
  DimVec out(c.Shape(0).first(2));
  for (size_t i = 1; i + 1 < c.Shape(1).size(); ++i) out.push_back(c.Shape(1)[i]);
  c.Set(0, out);
}

// Col2Im: [n, c * kernel, l] -> [n, c, image...].
void Col2Im(InferCall& c) {
  const DimVec* image = c.Known(1);
  const auto block = c.KnownConst(2);
  DimVec out = {kUnknown, kUnknown};
  if (c.Ranked(0) && c.Rank(0) == 3) {
    out[0] = c.Shape(0)[0];
    SymExpr kernel = 1;
    if (block) for (int64_t k : *block) kernel *= k;
    if (block && kernel != SymExpr(0) && !c.Shape(0)[1].IsUnknown()) out[1] = FloorDiv(c.Shape(0)[1], kernel);
  }
  if (image) out.insert(out.end(), image->begin(), image->end());
  else if (c.Ranked(1) && c.Shape(1)[0].IsConst()) out.resize(2 + static_cast<size_t>(c.Shape(1)[0].Const()), kUnknown);
  else return;
  c.Set(0, out);
}

// Statistics of a normalization over the axes from `axis` on: those are 1.
void LayerStatistics(InferCall& c) {
  const auto axis = c.Ranked(0) ? c.Axis(c.Int("axis", -1), c.Rank(0)) : std::nullopt;
  if (!axis) return;
  DimVec out(c.Shape(0));
  for (size_t i = static_cast<size_t>(*axis); i < out.size(); ++i) out[i] = 1;
  for (size_t r = 1; r < c.types.size(); ++r) c.Set(r, out);
}

void Window1D(InferCall& c) {
  const DimVec* size = c.Known(0);
  c.Set(0, {size && size->size() == 1 ? size->front() : kUnknown});
}

void AffineGrid(InferCall& c) {
  const DimVec* size = c.Known(1);
  if (!size || size->size() < 4) {
    if (c.Ranked(1) && c.Rank(1) == 1 && c.Shape(1)[0].IsConst()) c.SetRank(0, c.Shape(1)[0].Const());
    return;
  }
  DimVec out = {(*size)[0]};
  out.insert(out.end(), size->begin() + 2, size->end());
  out.push_back(static_cast<int64_t>(size->size()) - 2);
  c.Set(0, out);
}

}  // namespace

bool InferNetwork(InferCall& c) {
  switch (c.op) {
    case OnnxOp::Conv: case OnnxOp::ConvInteger: return Conv(c, 1, {}), true;
    case OnnxOp::QLinearConv: return Conv(c, 3, {}), true;
    case OnnxOp::DeformConv: {
      if (!c.Ranked(0) || !c.Ranked(1) || c.Rank(0) != 4) return true;
      DimVec out(c.Shape(0));
      out[1] = c.Shape(1)[0];
      for (size_t i = 2; i < 4; ++i) out[i] = c.Ranked(2) && c.Rank(2) == 4 ? c.Shape(2)[i] : kUnknown;
      return c.Set(0, out), true;
    }
    case OnnxOp::ConvTranspose: return ConvTranspose(c), true;
    case OnnxOp::AveragePool: case OnnxOp::MaxPool: case OnnxOp::LpPool: return Pool(c), true;
    case OnnxOp::MaxUnpool: return c.Ranked(0) ? c.SetRank(0, c.Rank(0)) : void(), true;
    case OnnxOp::GlobalAveragePool: case OnnxOp::GlobalMaxPool: case OnnxOp::GlobalLpPool: return GlobalPool(c), true;
    case OnnxOp::Resize: return Resize(c), true;
    case OnnxOp::RNN: case OnnxOp::GRU: case OnnxOp::LSTM: return Recurrent(c), true;
    case OnnxOp::Attention: return Attention(c), true;
    case OnnxOp::DFT: return Dft(c), true;
    case OnnxOp::STFT: return c.Set(0, {c.Ranked(0) ? c.Shape(0)[0] : kUnknown, kUnknown, kUnknown, 2}), true;
    case OnnxOp::RoiAlign: return Regions(c, c.Ranked(1) ? c.Shape(1)[0] : kUnknown, c.Int("output_height", 1), c.Int("output_width", 1)), true;
    case OnnxOp::MaxRoiPool: {
      const Ints shape = c.IntList("pooled_shape");
      return Regions(c, c.Ranked(1) ? c.Shape(1)[0] : kUnknown, At(shape, 0, 1), At(shape, 1, 1)), true;
    }
    case OnnxOp::GridSample: return GridSample(c), true;
    case OnnxOp::AffineGrid: return AffineGrid(c), true;
    case OnnxOp::Col2Im: return Col2Im(c), true;
    case OnnxOp::LayerNormalization: return LayerStatistics(c), true;
    case OnnxOp::BatchNormalization:
      for (size_t r = 1; r < c.types.size(); ++r)
        if (c.Ranked(3)) c.Set(r, DimVec(c.Shape(3)));
      return true;
    case OnnxOp::Dropout: return c.Ranked(0) ? c.Set(1, DimVec(c.Shape(0))) : void(), true;
    case OnnxOp::DynamicQuantizeLinear: return c.Set(1, {}), c.Set(2, {}), true;
    case OnnxOp::NonMaxSuppression: return c.Set(0, {kUnknown, 3}), true;
    case OnnxOp::Multinomial: return c.Set(0, {c.Ranked(0) ? c.Shape(0)[0] : kUnknown, c.Int("sample_size", 1)}), true;
    case OnnxOp::BlackmanWindow: case OnnxOp::HammingWindow: case OnnxOp::HannWindow: return Window1D(c), true;
    case OnnxOp::MelWeightMatrix: return c.SetRank(0, 2), true;
    case OnnxOp::NegativeLogLikelihoodLoss: case OnnxOp::SoftmaxCrossEntropyLoss:
      if (c.Text("reduction", "mean") != "none") c.Set(0, {});
      else if (c.Ranked(1)) c.Set(0, DimVec(c.Shape(1)));
      if (c.types.size() > 1 && c.Ranked(0)) c.Set(1, DimVec(c.Shape(0)));
      return true;
    case OnnxOp::LinearAttention: case OnnxOp::CausalConvWithState:
      if (c.Ranked(0)) c.Set(0, DimVec(c.Shape(0)));
      if (c.Ranked(3)) c.Set(1, DimVec(c.Shape(3)));
      return true;
    default: return false;
  }
}

}  // namespace pt2onnx
