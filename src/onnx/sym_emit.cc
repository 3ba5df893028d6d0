#include "onnx/sym_emit.h"

#include <cmath>

#include "ir/sym_facts.h"
#include "onnx/ort_kernels.h"
#include "onnx/scope.h"

namespace pt2onnx {

DType SymEmitter::DTypeOf(SymExpr e) {
  switch (e.kind()) {
    case SymKind::Int: return DType::I64;
    case SymKind::Float: return DType::F64;
    case SymKind::Bool: return DType::Bool;
  }
  PT2ONNX_UNREACHABLE();
}

Val SymEmitter::Emit(SymExpr e) {
  if (e.IsConst()) return b_.IntScalar(e.Const());
  if (const auto number = e.TryFloat()) return Double(*number);
  if (const auto truth = e.TryBool()) return b_.Constant(*truth, DType::Bool);
  if (Value** known = FindInScopes(b_.scopes_, &Onnx::Scope::numbers, e)) return b_.Wrap(*known);
  const Val out = Compute(e);
  b_.scope().numbers.emplace(e, out.value);
  return e.kind() == SymKind::Int && !e.IsUnknown() ? b_.Remember(out, {e}) : out;
}

Val SymEmitter::Symbol(SymExpr e) {
  const SymOrigin* origin = FindInScopes(b_.scopes_, &Onnx::Scope::symbols, e);
  if (!origin) return b_.Unsupported("the value of '" + std::string(e.SymbolName()) + "' can't be read from anything in the model");
  if (origin->dim < 0) return b_.Cast(b_.Wrap(origin->value), DTypeOf(e));
  const Val size = b_.Squeeze(b_.OnnxOps::Shape(b_.Wrap(origin->value), {.end = origin->dim + 1, .start = origin->dim}), {0});
  // size == scale * symbol + shift, exactly
  const Val multiple = origin->shift ? size - b_.IntScalar(origin->shift) : size;
  return origin->scale == 1 ? multiple : multiple / b_.IntScalar(origin->scale);
}

// Terms with the factor -1 are subtracted.
Val SymEmitter::Sum(std::span<const SymExpr> terms) {
  std::vector<SymExpr> plus, minus;
  for (const SymExpr& term : terms) {
    const bool negated = term.op() == SymOp::Mul && term.kind() == SymKind::Int && term.args()[0].IsConst() && term.args()[0].Const() < 0;
    const bool negative = term.IsConst() && term.Const() < 0 && term.Const() != std::numeric_limits<int64_t>::min();
    (negated || negative ? minus : plus).push_back(negated || negative ? -term : term);
  }
  if (plus.empty()) {
    plus.push_back(-minus.back());
    minus.pop_back();
  }
  Val out = Emit(plus[0]);
  for (size_t i = 1; i < plus.size(); ++i) out = out + Emit(plus[i]);
  for (const SymExpr& term : minus) out = out - Emit(term);
  return out;
}

Val SymEmitter::Power(SymExpr base, SymExpr exponent) {
  if (!exponent.IsConst()) return b_.Pow(Emit(base), Emit(exponent));
  // ONNX Runtime computes Pow in double precision: products are exact.
  int64_t n = exponent.Const();
  Val square = Emit(base), out = b_.IntScalar(1);
  for (; n > 0; n /= 2) {
    if (n % 2) out = out * square;
    if (n > 1) square = square * square;
  }
  return out;
}

Val SymEmitter::Divisor(SymExpr e) {
  const Val value = Emit(e);
  if (ProvablyPositive(e) || ProvablyNotEqual(e, 0)) return value;
  const Val one = b_.IntScalar(1);
  return ProvablyNonNegative(e) ? b_.Max(value, one) : b_.Where(b_.Equal(value, b_.IntScalar(0)), one, value);
}

// ONNX's Div truncates, its Mod has the sign of the divisor: a // b == (a - a % b) / b, and a / b where neither is negative.
Val SymEmitter::Quotient(SymExpr a, SymExpr b) {
  const Val dividend = Emit(a), divisor = Divisor(b);
  if (ProvablyNonNegative(a) && ProvablyNonNegative(b)) return dividend / divisor;
  return (dividend - b_.Mod(dividend, divisor)) / divisor;
}

Val SymEmitter::AsDouble(SymExpr e) { return b_.Cast(Emit(e), DType::F64); }

// round(x, n): by a power of ten, half to even. A negative n divides.
Val SymEmitter::Round(SymExpr x, SymExpr digits) {
  const Val power = b_.Pow(Double(10), b_.Cast(b_.Abs(Emit(digits)), DType::F64));
  const Val value = Emit(x);
  const Val fraction = b_.Round(value * power) / power, whole = b_.Round(value / power) * power;
  if (digits.IsConst()) return digits.Const() >= 0 ? fraction : whole;
  return b_.Where(b_.GreaterOrEqual(Emit(digits), b_.IntScalar(0)), fraction, whole);
}

Val SymEmitter::Function(SymOp op, Val x) {
  const auto in = [&](std::string_view name, Val (OnnxOps::*method)(Val)) {
    if (RuntimeHas(name, b_.opset(), DType::F64)) return (b_.*method)(x);
    return b_.Cast((b_.*method)(b_.Cast(x, DType::F32)), DType::F64);
  };
  switch (op) {
    case SymOp::Sqrt: return in("Sqrt", &OnnxOps::Sqrt);
    case SymOp::Cos: return in("Cos", &OnnxOps::Cos);
    case SymOp::Cosh: return in("Cosh", &OnnxOps::Cosh);
    case SymOp::Sin: return in("Sin", &OnnxOps::Sin);
    case SymOp::Sinh: return in("Sinh", &OnnxOps::Sinh);
    case SymOp::Tan: return in("Tan", &OnnxOps::Tan);
    case SymOp::Tanh: return in("Tanh", &OnnxOps::Tanh);
    case SymOp::Asin: return in("Asin", &OnnxOps::Asin);
    case SymOp::Acos: return in("Acos", &OnnxOps::Acos);
    case SymOp::Atan: return in("Atan", &OnnxOps::Atan);
    case SymOp::Asinh: return in("Asinh", &OnnxOps::Asinh);
    case SymOp::Exp: return in("Exp", &OnnxOps::Exp);
    case SymOp::Log: return in("Log", &OnnxOps::Log);
    case SymOp::Log2: return in("Log", &OnnxOps::Log) / Double(std::log(2.0));
    default: PT2ONNX_UNREACHABLE();
  }
}

Val SymEmitter::Compute(SymExpr e) {
  const auto args = e.args();
  const auto fold = [&](auto combine) {
    Val out = Emit(args[0]);
    for (size_t i = 1; i < args.size(); ++i) out = combine(out, Emit(args[i]));
    return out;
  };
  // Operands of a comparison are of one kind.
  const auto compare = [&](auto method) {
    const DType dtype = Promote(DTypeOf(args[0]), DTypeOf(args[1]));
    return (b_.*method)(b_.Cast(Emit(args[0]), dtype), b_.Cast(Emit(args[1]), dtype));
  };
  const auto rounded = [&](auto method) { return b_.Cast((b_.*method)(Emit(args[0])), DType::I64); };
  switch (e.op()) {
    case SymOp::Symbol: return Symbol(e);
    case SymOp::Add: return e.kind() == SymKind::Int ? Sum(args) : fold([&](Val a, Val b) { return b_.Add(a, b); });
    case SymOp::Mul: return fold([](Val a, Val b) { return a * b; });
    case SymOp::Pow: return Power(args[0], args[1]);
    case SymOp::FloorDiv: return Quotient(args[0], args[1]);
    case SymOp::Mod: return b_.Mod(Emit(args[0]), Divisor(args[1]));
    case SymOp::TrueDiv: return b_.Div(AsDouble(args[0]), AsDouble(args[1]));
    case SymOp::FloatPow: return b_.Pow(Emit(args[0]), Emit(args[1]));
    case SymOp::Max: return fold([&](Val a, Val b) { return b_.Max(a, b); });
    case SymOp::Min: return fold([&](Val a, Val b) { return b_.Min(a, b); });
    case SymOp::Abs: return b_.Abs(Emit(args[0]));
    case SymOp::Floor: return rounded(&OnnxOps::Floor);
    case SymOp::Ceil: return rounded(&OnnxOps::Ceil);
    case SymOp::Round: return rounded(&OnnxOps::Round);
    case SymOp::Trunc: return b_.Cast(Emit(args[0]), DType::I64);
    case SymOp::TruncToFloat: {
      const Val x = Emit(args[0]);
      return b_.Where(b_.Less(x, Double(0)), b_.Ceil(x), b_.Floor(x));
    }
    case SymOp::RoundDecimal: return Round(args[0], args[1]);
    case SymOp::ToFloat: return AsDouble(args[0]);
    case SymOp::Where: {
      const Val c = Emit(args[0]), a = Emit(args[1]), b = Emit(args[2]);
      if (e.kind() == SymKind::Bool) return b_.Or(b_.And(c, a), b_.And(b_.Not(c), b));
      return b_.Where(c, a, b);
    }
    case SymOp::Eq: return compare(&OnnxOps::Equal);
    case SymOp::Ne: return b_.Not(compare(&OnnxOps::Equal));
    case SymOp::Le: return compare(&OnnxOps::LessOrEqual);
    case SymOp::Lt: return compare(&OnnxOps::Less);
    case SymOp::And: return fold([&](Val a, Val b) { return b_.And(a, b); });
    case SymOp::Or: return fold([&](Val a, Val b) { return b_.Or(a, b); });
    case SymOp::Not: return b_.Not(Emit(args[0]));
    case SymOp::BitAnd: return b_.BitwiseAnd(Emit(args[0]), Emit(args[1]));
    case SymOp::BitOr: return b_.BitwiseOr(Emit(args[0]), Emit(args[1]));
    case SymOp::BitXor: return b_.BitwiseXor(Emit(args[0]), Emit(args[1]));
    case SymOp::Unknown: return b_.Unsupported("a size here is not known");
    case SymOp::IsNonOverlappingAndDense: return b_.Unsupported("whether a tensor is dense can't be computed in the model");
    case SymOp::Int: case SymOp::Float: case SymOp::Bool: PT2ONNX_UNREACHABLE();
    default: return Function(e.op(), Emit(args[0]));
  }
}

}  // namespace pt2onnx
