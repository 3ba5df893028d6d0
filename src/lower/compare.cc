// Comparisons, logic and tests of numbers. Operands of a comparison arrive in one dtype.
//
//   %y = aten::ne.Scalar(%x : i64, 0)    ->    %y = Not(Equal(%x, 0))
#include <cmath>

#include "lower/elementary.h"

namespace pt2onnx {
namespace {

Val Equal(Onnx& b, Val x, Val y) { return b.Equal(x, y); }
Val NotEqual(Onnx& b, Val x, Val y) { return b.Not(b.Equal(x, y)); }
// On bool: false < true.
Val Less(Onnx& b, Val x, Val y) { return x.dtype() == DType::Bool ? b.And(b.Not(x), y) : b.Less(x, y); }
Val LessOrEqual(Onnx& b, Val x, Val y) { return x.dtype() == DType::Bool ? b.Or(b.Not(x), y) : b.LessOrEqual(x, y); }
Val Greater(Onnx& b, Val x, Val y) { return x.dtype() == DType::Bool ? b.And(x, b.Not(y)) : b.Greater(x, y); }
Val GreaterOrEqual(Onnx& b, Val x, Val y) { return x.dtype() == DType::Bool ? b.Or(x, b.Not(y)) : b.GreaterOrEqual(x, y); }

// The comparison with a tensor and with a number.
template <class OfTensor, class OfScalar, auto f>
void Comparison(Rules<Onnx>& r) {
  r.On([](Onnx& b, const OfTensor& op) { return f(b, op.self, op.other); });
  r.On([](Onnx& b, const OfScalar& op) { return f(b, op.self, Like(op.self, op.other)); });
}

// What isn't 0 is true, NaN too.
Val Truth(Onnx& b, Val x) { return b.Cast(x, DType::Bool); }
Val LogicalAnd(Onnx& b, Val x, Val y) { return b.And(Truth(b, x), Truth(b, y)); }
Val LogicalOr(Onnx& b, Val x, Val y) { return b.Or(Truth(b, x), Truth(b, y)); }
Val LogicalXor(Onnx& b, Val x, Val y) { return b.Xor(Truth(b, x), Truth(b, y)); }
Val LogicalNot(Onnx& b, Val x) { return b.Not(Truth(b, x)); }

Val Constantly(Onnx& b, bool value) { return b.Full(Recorded(b).shape, value, DType::Bool); }

// |x| < inf; of integers: always
Val IsFinite(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.Less(b.Abs(x), Like(x, INFINITY)) : Constantly(b, true); }
Val IsInf(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.IsInf(x) : Constantly(b, false); }
Val IsPosInf(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.IsInf(x, {.detect_negative = 0}) : Constantly(b, false); }
Val IsNegInf(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.IsInf(x, {.detect_positive = 0}) : Constantly(b, false); }
Val IsNaNRule(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.IsNaN(x) : Constantly(b, false); }
Val IsReal(Onnx& b, Val) { return Constantly(b, true); }

// x == y, or |x - y| finite and at most atol + |rtol y|; equal_nan: or both NaN. Integers are compared in float32.
Val IsClose(Onnx& b, Val x, Val y, double rtol, double atol, bool equal_nan) {
  Val close = b.Equal(x, y);
  if (rtol == 0 && atol == 0 && !(equal_nan && IsFloat(x.dtype()))) return close;
  if (!IsFloat(x.dtype())) x = b.Cast(x, DType::F32), y = b.Cast(y, DType::F32);
  if (equal_nan && IsFloat(x.dtype())) close = b.Or(close, b.And(b.IsNaN(x), b.IsNaN(y)));
  const Val distance = b.Abs(x - y);
  const Val near = b.And(b.LessOrEqual(distance, b.Abs(y * rtol) + atol), b.Less(distance, Like(x, INFINITY)));
  return b.Or(close, near);
}

// Rank 0.
Val All(Onnx& b, Val truths) {
  return b.Equal(b.ReduceSum(b.Cast(b.Not(b.Flatten1D(truths)), DType::I64), {0}), b.IntScalar(0));
}

}  // namespace

void CompareRules(Rules<Onnx>& r) {
  Comparison<aten::eq_Tensor, aten::eq_Scalar, Equal>(r);
  Comparison<aten::ne_Tensor, aten::ne_Scalar, NotEqual>(r);
  Comparison<aten::lt_Tensor, aten::lt_Scalar, Less>(r);
  Comparison<aten::le_Tensor, aten::le_Scalar, LessOrEqual>(r);
  Comparison<aten::gt_Tensor, aten::gt_Scalar, Greater>(r);
  Comparison<aten::ge_Tensor, aten::ge_Scalar, GreaterOrEqual>(r);
  Use<prims::eq, Equal>(r);
  Use<prims::ne, NotEqual>(r);
  Use<prims::lt, Less>(r);
  Use<prims::le, LessOrEqual>(r);
  Use<prims::gt, Greater>(r);
  Use<prims::ge, GreaterOrEqual>(r);

  Use<aten::logical_and, LogicalAnd>(r);
  Use<aten::logical_or, LogicalOr>(r);
  Use<aten::logical_xor, LogicalXor>(r);
  Use<aten::logical_not, LogicalNot>(r);

  UseAll<IsFinite, aten::isfinite, prims::isfinite>(r);
  Use<aten::isinf, IsInf>(r);
  Use<aten::isposinf, IsPosInf>(r);
  Use<aten::isneginf, IsNegInf>(r);
  Use<aten::isnan, IsNaNRule>(r);
  Use<aten::isreal, IsReal>(r);
  UseAll<SignBit, aten::signbit, prims::signbit>(r);

  r.On([](Onnx& b, const aten::isclose& op) { return IsClose(b, op.self, op.other, op.rtol, op.atol, op.equal_nan); });
  r.On([](Onnx& b, const aten::allclose& op) { return All(b, IsClose(b, op.self, op.other, op.rtol, op.atol, op.equal_nan)); });
  r.On([](Onnx& b, const aten::equal& op) {
    if (op.self.rank() != op.other.rank()) return b.Constant(false, DType::Bool);
    for (int64_t i = 0; i < op.self.rank(); ++i)
      if (op.self.dim(i).IsConst() && op.other.dim(i).IsConst() && !(op.self.dim(i) == op.other.dim(i))) return b.Constant(false, DType::Bool);
    return All(b, b.Equal(op.self, op.other));
  });
}

}  // namespace pt2onnx
