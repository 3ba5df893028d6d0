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
}

}  // namespace pt2onnx
