// Quantized programs: quantize and dequantize stay what they are, so that a runtime can fuse them.
//
//   %q : u8 = quantized_decomposed::quantize_per_tensor(%x, 0.1, 3, 0, 255, u8)    ->    %q = QuantizeLinear(%x, 0.1, 3 : u8)
#include "gen/quantized.h"
#include "lower/rules.h"
#include "onnx/ort_kernels.h"

namespace pt2onnx {
namespace {

int64_t Lowest(DType d) { return IsUnsigned(d) ? 0 : -(int64_t{1} << (8 * ItemSize(d) - 1)); }
int64_t Highest(DType d) { return (int64_t{1} << (8 * ItemSize(d) - (IsUnsigned(d) ? 0 : 1))) - 1; }

// ONNX Runtime quantizes to 8 bits, up to opset 27; otherwise it is written as arithmetic.
bool IsOneNode(Onnx& b, DType d) { return (d == DType::U8 || d == DType::I8) && !RuntimeRefuses("DequantizeLinear", b.opset(), "T1", d); }

// clamp(round(x / scale) + zero_point, low, high), rounding halves to even
Val Quantize(Onnx& b, Val x, Val scale, Val zero, int64_t low, int64_t high, DType dtype, int64_t axis = 1) {
  if (!IsOneNode(b, dtype)) {
    const Val spread = b.Round(x / b.Cast(scale, x.dtype())) + b.Cast(zero, x.dtype());
    return b.Cast(b.Max(b.Min(spread, b.Constant(high, x.dtype())), b.Constant(low, x.dtype())), dtype);
  }
  const Val q = b.QuantizeLinear(x, b.Cast(scale, x.dtype()), b.Cast(zero, dtype), {.axis = axis});
  if (low <= Lowest(dtype) && high >= Highest(dtype)) return q;
  return b.Max(b.Min(q, b.Constant(high, dtype)), b.Constant(low, dtype));
}

// (x - zero_point) * scale
Val Dequantize(Onnx& b, Val x, Val scale, Val zero, int64_t axis = 1) {
  if (IsOneNode(b, x.dtype())) return b.DequantizeLinear(x, b.Cast(scale, DType::F32), b.Cast(zero, x.dtype()), {.axis = axis});
  return (b.Cast(x, DType::F32) - b.Cast(zero, DType::F32)) * b.Cast(scale, DType::F32);
}

// A vector along `axis` of a tensor of that rank.
Val Along(Onnx& b, Val v, int64_t axis, int64_t rank) {
  std::vector<SymExpr> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = v.numel();
  return b.Reshape(v, shape);
}

Val Zero(Onnx& b, const OptVal& zero, Val scales) { return zero ? *zero : b.Zeros(scales.shape(), DType::I64); }

// ---- Fake quantization: what a value is after a round trip ------------------------------------------------------------------------------------

// (clamp(round(x / scale + zero), low, high) - zero) * scale. Where the range is one of 8 bits, the pair of operators that runtimes fuse.
struct FakeQuantized {
  Val y, inside;  // inside: bool, what was not clamped
};
FakeQuantized FakeQuantize(Onnx& b, Val x, Val scale, Val zero, int64_t low, int64_t high, std::optional<int64_t> axis = {}) {
  const auto spread = [&](Val v) { return axis && v.rank() == 1 ? Along(b, v, *axis, x.rank()) : v; };
  const DType dtype = x.dtype() == DType::F64 ? DType::F64 : DType::F32, quantized = low < 0 ? DType::I8 : DType::U8;
  const Val wide = b.Cast(x, dtype), s = spread(b.Cast(scale, dtype)), z = spread(b.Cast(zero, dtype));
  const Val levels = b.Round(wide / s + z), lowest = b.Constant(low, dtype), highest = b.Constant(high, dtype);
  const Val inside = b.And(b.GreaterOrEqual(levels, lowest), b.LessOrEqual(levels, highest));
  const bool pair =
      x.dtype() == DType::F32 && IsIntegral(zero.dtype()) && low >= Lowest(quantized) && high <= Highest(quantized) && IsOneNode(b, quantized);
  if (!pair) return {(b.Max(b.Min(levels, highest), lowest) - z) * s, inside};
  const Val q = Quantize(b, x, scale, zero, low, high, quantized, axis.value_or(1));
  return {Dequantize(b, q, scale, zero, axis.value_or(1)), inside};
}
template <class Op>
FakeQuantized FakeOfNumbers(Onnx& b, const Op& op) {
  const DType byte = op.quant_min < 0 ? DType::I8 : DType::U8;
  const bool fits = op.quant_min >= Lowest(byte) && op.quant_max <= Highest(byte);
  return FakeQuantize(b, op.self, b.Constant(op.scale, DType::F32), b.Constant(op.zero_point, fits ? byte : DType::F32), op.quant_min, op.quant_max);
}
template <class Op>
FakeQuantized FakeOfTensors(Onnx& b, const Op& op) {
  return FakeQuantize(b, op.self, b.Reshape(op.scale, {}), b.Reshape(op.zero_point, {}), op.quant_min, op.quant_max);
}
template <class Op>
FakeQuantized FakeOfChannels(Onnx& b, const Op& op) {
  return FakeQuantize(b, op.self, op.scale, op.zero_point, op.quant_min, op.quant_max, op.axis < 0 ? op.axis + op.self.rank() : op.axis);
}

// clamp(round(x * (1 / scale) + zero_point), low, high): rounded after the shift, since zero points may be fractions.
Val QuantizeShifted(Onnx& b, Val x, Val scale, Val zero, int64_t low, int64_t high, DType dtype) {
  const Val q = b.Round(x * (1 / scale) + zero);
  return b.Cast(b.Max(b.Min(q, b.Constant(high, q.dtype())), b.Constant(low, q.dtype())), dtype);
}

struct Extremes {
  Val low, high;  // with 0 between them
};
Extremes ExtremesOf(Onnx& b, Val x, const IntVec& axes, bool keepdims) {
  const Val zero = b.Constant(0, x.dtype());
  return {b.Min(b.ReduceMin(x, axes, keepdims), zero), b.Max(b.ReduceMax(x, axes, keepdims), zero)};
}
IntVec AllAxes(Val x) {
  IntVec axes;
  for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  return axes;
}

// scale = (high - low) / (most - least), zero_point = clamp(least - round(low / scale), least, most)
Vals ChooseAffine(Onnx& b, Val x, int64_t least, int64_t most, double eps) {
  const Extremes range = ExtremesOf(b, x, AllAxes(x), false);
  const Val scale = b.Max(b.Cast((range.high - range.low) / static_cast<double>(most - least), DType::F32), b.Constant(eps, DType::F32));
  const Val zero = b.Constant(least, DType::F32) - b.Round(b.Cast(range.low, DType::F32) / scale);
  return {b.Reshape(scale, {1}), b.Reshape(b.Clip(zero, b.Constant(least, DType::F32), b.Constant(most, DType::F32)), {1})};
}

// Rows of 8 bits, by the zero point that errs least at either end.
Vals ChooseByToken(Onnx& b, Val x) {
  const double least = -128, most = 127;
  const Extremes range = ExtremesOf(b, x, {-1}, true);
  const Val scale = b.Max((range.high - range.low) / (most - least), b.Constant(0x1p-23, x.dtype()));
  const Val low = range.low / scale, high = range.high / scale;
  const Val zero = b.Where(b.Greater(least + low + (most + high), b.Constant(0, x.dtype())), least - low, most - high);
  return {scale, b.Round(b.Clip(zero, b.Constant(least, x.dtype()), b.Constant(most, x.dtype())))};
}

// Each row parted into groups with a scale each: [rows, columns] -> [rows, groups, columns of one]
Val Grouped(Onnx& b, Val x, Val scales) { return b.Reshape(x, {x.dim(0), scales.dim(1), FloorDiv(x.dim(1), scales.dim(1))}); }

// clamp(round(x * (1 / scale)) + zero_point, low, high), and back, by a scale for each place along one dim.
Val FakeByChannel(Onnx& b, const quantized_decomposed::fake_quant_per_channel& op) {
  const int64_t axis = op.axis < 0 ? op.axis + op.input.rank() : op.axis;
  const Val scale = Along(b, b.Cast(op.scales, DType::F32), axis, op.input.rank()),
            zero = Along(b, b.Cast(op.zero_points, DType::F32), axis, op.input.rank());
  const Val q = b.Round(op.input * (1 / scale)) + zero;
  return (b.Clip(q, b.Constant(op.quant_min, DType::F32), b.Constant(op.quant_max, DType::F32)) - zero) * scale;
}

}  // namespace

void QuantRules(Rules<Onnx>& r) {
  namespace qd = quantized_decomposed;
  r.On([](Onnx& b, const qd::quantize_per_tensor& op) {
    return Quantize(b, op.input, b.Constant(op.scale, DType::F32), b.Constant(op.zero_point, DType::I64), op.quant_min, op.quant_max, op.dtype);
  });
  r.On([](Onnx& b, const qd::quantize_per_tensor_tensor& op) {
    return Quantize(b, op.input, b.Reshape(op.scale, {}), b.Reshape(op.zero_point, {}), op.quant_min, op.quant_max, op.dtype);
  });
  r.On([](Onnx& b, const qd::quantize_per_channel& op) {
    const int64_t axis = op.axis < 0 ? op.axis + op.input.rank() : op.axis;
    if (IsOneNode(b, op.dtype)) return Quantize(b, op.input, op.scales, op.zero_points, op.quant_min, op.quant_max, op.dtype, axis);
    return Quantize(b, op.input, Along(b, op.scales, axis, op.input.rank()), Along(b, op.zero_points, axis, op.input.rank()), op.quant_min,
                    op.quant_max, op.dtype);
  });
  r.On([](Onnx& b, const qd::dequantize_per_tensor& op) {
    return Dequantize(b, op.input, b.Constant(op.scale, DType::F32), b.Constant(op.zero_point, DType::I64));
  });
  r.On([](Onnx& b, const qd::dequantize_per_tensor_tensor& op) {
    return Dequantize(b, op.input, b.Reshape(op.scale, {}), b.Reshape(op.zero_point, {}));
  });
  r.On([](Onnx& b, const qd::dequantize_per_channel& op) {
    const int64_t axis = op.axis < 0 ? op.axis + op.input.rank() : op.axis;
    const Val zero = Zero(b, op.zero_points, op.scales);
    if (IsOneNode(b, op.input.dtype())) return Dequantize(b, op.input, op.scales, zero, axis);
    return Dequantize(b, op.input, Along(b, op.scales, axis, op.input.rank()), Along(b, zero, axis, op.input.rank()));
  });

  r.On([](Onnx& b, const aten::fake_quantize_per_tensor_affine& op) { return FakeOfNumbers(b, op).y; });
  r.On([](Onnx& b, const aten::fake_quantize_per_tensor_affine_tensor_qparams& op) { return FakeOfTensors(b, op).y; });
  r.On([](Onnx& b, const aten::fake_quantize_per_channel_affine& op) { return FakeOfChannels(b, op).y; });
  r.On([](Onnx& b, const aten::fake_quantize_per_tensor_affine_cachemask& op) {
    const FakeQuantized out = FakeOfNumbers(b, op);
    return Vals{out.y, out.inside};
  });
  r.On([](Onnx& b, const aten::fake_quantize_per_channel_affine_cachemask& op) {
    const FakeQuantized out = FakeOfChannels(b, op);
    return Vals{out.y, out.inside};
  });
  r.On([](Onnx& b, const aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams& op) {
    const FakeQuantized out = FakeOfTensors(b, op), off = {op.self, b.Ones(op.self.shape(), DType::Bool)};
    const Val on = b.Reshape(b.Greater(op.fake_quant_enabled, b.Constant(0, op.fake_quant_enabled.dtype())), {});
    return Vals{b.Where(on, out.y, off.y), b.Where(on, out.inside, off.inside)};
  });
  // Bounds as tensors.
  r.On([](Onnx& b, const qd::quantize_per_tensor_tensor2& op) {
    const Val q = b.Round(op.input / b.Reshape(b.Cast(op.scale, op.input.dtype()), {})) + b.Reshape(b.Cast(op.zero_point, op.input.dtype()), {});
    const auto bound = [&](Val x) { return b.Reshape(b.Cast(x, q.dtype()), {}); };
    return b.Cast(b.Max(b.Min(q, bound(op.quant_max)), bound(op.quant_min)), op.dtype);
  });
  r.On([](Onnx& b, const qd::dequantize_per_tensor_tensor2& op) {
    return Dequantize(b, op.input, b.Reshape(op.scale, {}), b.Reshape(op.zero_point, {}));
  });

  r.On([](Onnx& b, const qd::quantize_per_token& op) {
    return QuantizeShifted(b, op.input, op.scales, b.Cast(op.zero_points, op.scales.dtype()), op.quant_min, op.quant_max, op.dtype);
  });
  r.On([](Onnx&, const qd::dequantize_per_token& op) { return (op.input - op.zero_points) * op.scales; });

  r.On([](Onnx& b, const qd::quantize_per_channel_group& op) {
    const Val zero = b.Unsqueeze(b.Cast(op.zero_points, op.scales.dtype()), {2});
    return b.Reshape(QuantizeShifted(b, Grouped(b, op.input, op.scales), b.Unsqueeze(op.scales, {2}), zero, op.quant_min, op.quant_max, op.dtype),
                     op.input.shape());
  });
  // One block of a row after the other: what a runtime fuses into products with packed weights.
  r.On([](Onnx& b, const qd::dequantize_per_channel_group& op) {
    const Val zero = Zero(b, op.zero_points, op.scales);
    const SymExpr block = FloorDiv(op.input.dim(1), op.scales.dim(1));
    if (b.opset() >= 21 && IsOneNode(b, op.input.dtype()) && !IsFloat(zero.dtype()) && block.IsConst() && op.scales.dtype() == DType::F32)
      return b.DequantizeLinear(op.input, op.scales, b.Cast(zero, op.input.dtype()), {.axis = 1, .block_size = block.Const()});
    const Val wide = Grouped(b, op.input, op.scales) - b.Unsqueeze(zero, {2});
    return b.Reshape(wide * b.Unsqueeze(op.scales, {2}), op.input.shape());
  });

  r.On([](Onnx& b, const qd::choose_qparams_tensor& op) { return ChooseAffine(b, op.input, op.quant_min, op.quant_max, op.eps); });
  r.On([](Onnx& b, const qd::choose_qparams_symmetric_tensor& op) -> Vals {
    const Extremes range = ExtremesOf(b, op.input, AllAxes(op.input), false);
    const Val most = b.Cast(b.Max(b.Neg(range.low), range.high) / (static_cast<double>(op.quant_max - op.quant_min) / 2), DType::F32);
    return {b.Reshape(b.Max(most, b.Constant(op.eps, DType::F32)), {1}), b.Full({1}, op.dtype == DType::U8 ? 128 : 0, DType::I64)};
  });
  r.On([](Onnx& b, const qd::choose_qparams_per_token& op) -> Vals {
    const Val most = b.ReduceMax(b.Abs(op.input), {-1}, true);
    const Val scale = b.Max(op.input.dtype() == DType::F16 ? b.Cast(most, DType::F32) : most,
                            b.Constant(1e-5, op.input.dtype() == DType::F16 ? DType::F32 : op.input.dtype())) /
                      127;
    return {scale, b.Zeros(scale.shape(), DType::I64)};
  });
  r.On([](Onnx& b, const qd::choose_qparams_per_token_asymmetric& op) { return ChooseByToken(b, op.input); });
  r.On([](Onnx& b, const qd::_choose_qparams_per_token_asymmetric_impl& op) { return ChooseByToken(b, op.input); });
  r.On([](Onnx& b, const qd::fake_quant_per_channel& op) { return FakeByChannel(b, op); });
  r.On([](Onnx& b, const qd::convert_element_type_no_fuse& op) { return b.Cast(op.input, op.dtype); });

  // x (w s)^T, w: int8 [out, in], a scale for each row
  r.On([](Onnx& b, const aten::_weight_int8pack_mm& op) {
    return b.MatMul(op.self, b.Transpose(b.Cast(op.mat2, op.self.dtype()), {1, 0})) * op.scales;
  });
}

}  // namespace pt2onnx
