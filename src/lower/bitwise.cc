// Bits of integers. On bool they are logic. ONNX shifts unsigned integers only, so signed ones are shifted as the unsigned of their width.
//
//   %y = aten::bitwise_and.Tensor(%a : i32, %b)    ->    %y = BitwiseAnd(%a, %b)
#include "lower/elementary.h"

namespace pt2onnx {
namespace {

Val AndBits(Onnx& b, Val x, Val y) { return x.dtype() == DType::Bool ? b.And(x, y) : b.BitwiseAnd(x, y); }
Val OrBits(Onnx& b, Val x, Val y) { return x.dtype() == DType::Bool ? b.Or(x, y) : b.BitwiseOr(x, y); }
Val XorBits(Onnx& b, Val x, Val y) { return x.dtype() == DType::Bool ? b.Xor(x, y) : b.BitwiseXor(x, y); }
Val NotBits(Onnx& b, Val x) { return x.dtype() == DType::Bool ? b.Not(x) : b.BitwiseNot(x); }

DType UnsignedOf(DType dtype) {
  switch (dtype) {
    case DType::I8: return DType::U8;
    case DType::I16: return DType::U16;
    case DType::I32: return DType::U32;
    case DType::I64: return DType::U64;
    default: return dtype;
  }
}

// Bits that are shifted out are gone: by less than 0, or the width and more, nothing is left. ONNX leaves that open.
Val Shift(Onnx& b, Val x, Val by, std::string_view direction) {
  const DType dtype = x.dtype(), bits = UnsignedOf(dtype);
  const int width = 8 * ItemSize(dtype);
  const Val count = b.Cast(by, bits);  // less than 0 becomes large
  const Val shifted = b.Cast(b.BitShift(b.Cast(x, bits), b.Min(count, Like(count, width - 1)), {.direction = direction}), dtype);
  return b.Where(b.Less(count, Like(count, width)), shifted, Like(shifted, 0));
}

// Floats (the operators << and >> only): x 2^n.
Val ScaleByPower(Onnx& b, Val x, Val n) { return x * b.Pow(Like(x, 2.0), n); }

Val ShiftLeft(Onnx& b, Val x, Val by) { return IsFloat(x.dtype()) ? ScaleByPower(b, x, by) : Shift(b, x, by, "LEFT"); }
// Copies of the sign bit come in: ~(~x >> n) for x < 0.
Val ShiftRight(Onnx& b, Val x, Val by) {
  if (IsFloat(x.dtype())) return ScaleByPower(b, x, b.Neg(by));
  if (IsUnsigned(x.dtype())) return Shift(b, x, by, "RIGHT");
  const Val negative = b.Less(x, Like(x, 0));
  const Val shifted = Shift(b, b.Where(negative, b.BitwiseNot(x), x), by, "RIGHT");
  return b.Where(negative, b.BitwiseNot(shifted), shifted);
}

}  // namespace

void BitwiseRules(Rules<Onnx>& r) {
  UseAll<AndBits, aten::bitwise_and_Tensor, aten::__and___Tensor, prims::bitwise_and>(r);
  UseAll<OrBits, aten::bitwise_or_Tensor, aten::__or___Tensor, prims::bitwise_or>(r);
  UseAll<XorBits, aten::bitwise_xor_Tensor, aten::__xor___Tensor, prims::bitwise_xor>(r);
  UseAll<NotBits, aten::bitwise_not, prims::bitwise_not>(r);
  UseAll<ShiftLeft, aten::bitwise_left_shift_Tensor, aten::__lshift___Tensor, prims::shift_left>(r);
  UseAll<ShiftRight, aten::bitwise_right_shift_Tensor, aten::__rshift___Tensor, prims::shift_right_arithmetic>(r);

  OfScalar<AndBits, aten::bitwise_and_Scalar, aten::__and___Scalar>(r);
  OfScalar<OrBits, aten::bitwise_or_Scalar, aten::__or___Scalar>(r);
  OfScalar<XorBits, aten::bitwise_xor_Scalar, aten::__xor___Scalar>(r);
  OfScalar<ShiftLeft, aten::bitwise_left_shift_Tensor_Scalar, aten::__lshift___Scalar>(r);
  OfScalar<ShiftRight, aten::bitwise_right_shift_Tensor_Scalar, aten::__rshift___Scalar>(r);

  ScalarFirst<AndBits, aten::bitwise_and_Scalar_Tensor>(r);
  ScalarFirst<OrBits, aten::bitwise_or_Scalar_Tensor>(r);
  ScalarFirst<XorBits, aten::bitwise_xor_Scalar_Tensor>(r);
  ScalarFirst<ShiftLeft, aten::bitwise_left_shift_Scalar_Tensor>(r);
  ScalarFirst<ShiftRight, aten::bitwise_right_shift_Scalar_Tensor>(r);
}

}  // namespace pt2onnx
