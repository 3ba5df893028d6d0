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
    const Val spread = b.Round(x / scale) + b.Cast(zero, x.dtype());
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
  const bool pair = x.dtype() == DType::F32 && IsIntegral(zero.dtype()) && low >= Lowest(quantized) && high <= Highest(quantized) && IsOneNode(b, quantized);
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
    return Quantize(b, op.input, Along(b, op.scales, axis, op.input.rank()), Along(b, op.zero_points, axis, op.input.rank()), op.quant_min, op.quant_max, op.dtype);
  });
  r.On([](Onnx& b, const qd::dequantize_per_tensor& op) {
    return Dequantize(b, op.input, b.Constant(op.scale, DType::F32), b.Constant(op.zero_point, DType::I64));
  });
  r.On([](Onnx& b, const qd::dequantize_per_tensor_tensor& op) { return Dequantize(b, op.input, b.Reshape(op.scale, {}), b.Reshape(op.zero_point, {})); });
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
}

}  // namespace pt2onnx
