#include "ir/sym_functions.h"

#include <numeric>

namespace pt2onnx::sym {

static Value Fraction(SymExpr num, SymExpr den) {
  if (den.IsConst() && den.Const() < 0) num = -num, den = -den;  // the least integer becomes Unknown
  if (num.IsUnknown() || den.IsUnknown() || den.IsSame(0)) return {SymExpr::Unknown()};
  if (auto exact = TryDivideExactly(num, den)) return {*exact};
  if (num.IsConst() && den.IsConst() && num.Const() != INT64_MIN) {
    int64_t g = std::gcd(num.Const(), den.Const());
    return {num.Const() / g, den.Const() / g};
  }
  return {num, den};
}

SymExpr Whole(const Value& v) { return v.IsFraction() ? FloorDiv(v.num, v.den) : v.num; }
static SymExpr AsFloat(const Value& v) { return v.IsFraction() ? TrueDiv(v.num, v.den) : ToFloat(v.num); }

// The numerators of a and b over one denominator.
struct Aligned {
  SymExpr a, b, den;
};
static Aligned Align(const Value& a, const Value& b) {
  if (a.den.IsSame(b.den)) return {a.num, b.num, a.den};
  if (a.den.IsConst() && b.den.IsConst()) {
    int64_t g = std::gcd(a.den.Const(), b.den.Const());
    return {a.num * (b.den.Const() / g), b.num * (a.den.Const() / g), a.den * (b.den.Const() / g)};
  }
  return {a.num * b.den, b.num * a.den, a.den * b.den};
}

Value Add(const Value& a, const Value& b) {
  if (!a.IsFraction() && !b.IsFraction()) return {a.num + b.num};
  if (a.IsFloat() || b.IsFloat()) return {AsFloat(a) + AsFloat(b)};
  Aligned x = Align(a, b);
  return Fraction(x.a + x.b, x.den);
}

Value Multiply(const Value& a, const Value& b) {
  if (!a.IsFraction() && !b.IsFraction()) return {a.num * b.num};
  if (a.IsFloat() || b.IsFloat()) return {AsFloat(a) * AsFloat(b)};
  return Fraction(a.num * b.num, a.den * b.den);
}

Value Divide(const Value& a, const Value& b) {
  if (a.IsFloat() || b.IsFloat()) return {TrueDiv(AsFloat(a), AsFloat(b))};
  return Fraction(a.num * b.den, a.den * b.num);
}

Value Power(const Value& base, const Value& exponent) {
  if (exponent.num.IsUnknown() || base.num.IsUnknown()) return {SymExpr::Unknown()};
  if (base.IsFloat() || exponent.IsFloat() || exponent.IsFraction()) {
    if (exponent.num.IsSame(1) && exponent.den.IsSame(2)) return {UnaryFunction(SymOp::Sqrt, AsFloat(base))};
    if (exponent.num.IsSame(-1) && !exponent.IsFraction()) return {TrueDiv(SymExpr::Float(1), AsFloat(base))};
    return {Pow(AsFloat(base), AsFloat(exponent))};
  }
  if (exponent.num.IsConst() && exponent.num.Const() < 0) return Fraction(Pow(base.den, -exponent.num), Pow(base.num, -exponent.num));
  return Fraction(Pow(base.num, exponent.num), Pow(base.den, exponent.num));
}

// Comparing and choosing need one positive denominator; only constants are known to be positive.
static bool HasConstDenominators(const Value& a, const Value& b) { return a.den.IsConst() && b.den.IsConst(); }

Value Compare(SymExpr (*relation)(SymExpr, SymExpr), const Value& a, const Value& b) {
  if (!a.IsFraction() && !b.IsFraction()) return {relation(a.num, b.num)};
  if (a.IsFloat() || b.IsFloat() || !HasConstDenominators(a, b)) return {relation(AsFloat(a), AsFloat(b))};
  Aligned x = Align(a, b);
  return {relation(x.a, x.b)};
}

static Value Choose(SymExpr (*max_or_min)(SymExpr, SymExpr), const Value& a, const Value& b) {
  if (!a.IsFraction() && !b.IsFraction()) return {max_or_min(a.num, b.num)};
  if (a.IsFloat() || b.IsFloat() || !HasConstDenominators(a, b)) return {max_or_min(AsFloat(a), AsFloat(b))};
  Aligned x = Align(a, b);
  return Fraction(max_or_min(x.a, x.b), x.den);
}

template <SymExpr (*F)(SymExpr)>
static Value Unary(const Values& a) { return {F(Whole(a[0]))}; }
template <SymExpr (*F)(SymExpr, SymExpr)>
static Value Binary(const Values& a) { return {F(Whole(a[0]), Whole(a[1]))}; }
// Of floats: a fraction is the float nearest to it.
template <SymExpr (*F)(SymExpr)>
static Value Rounding(const Values& a) { return {a[0].IsFraction() ? F(AsFloat(a[0])) : F(a[0].num)}; }
template <SymOp op>
static Value Opaque(const Values& a) { return {UnaryFunction(op, AsFloat(a[0]))}; }
template <SymExpr (*F)(SymExpr, SymExpr)>
static Value Relation(const Values& a) { return Compare(F, a[0], a[1]); }
template <SymExpr (*F)(SymExpr, SymExpr)>
static Value Logic(const Values& a) {
  SymExpr result = Whole(a[0]);
  for (size_t i = 1; i < a.size(); ++i) result = F(result, Whole(a[i]));
  return {result};
}
template <Value (*F)(const Value&, const Value&)>
static Value FoldLeft(const Values& a) {
  Value result = a[0];
  for (size_t i = 1; i < a.size(); ++i) result = F(result, a[i]);
  return result;
}
template <SymExpr (*F)(SymExpr, SymExpr)>
static Value Extreme(const Values& a) {
  Value result = a[0];
  for (size_t i = 1; i < a.size(); ++i) result = Choose(F, result, a[i]);
  return result;
}
static Value FloorOf(const Values& a) { return {a[0].IsFraction() ? FloorDiv(a[0].num, a[0].den) : Floor(a[0].num)}; }
static Value CeilOf(const Values& a) { return {a[0].IsFraction() ? CeilDiv(a[0].num, a[0].den) : Ceil(a[0].num)}; }
static Value PowerOf(const Values& a) { return Power(a[0], a[1]); }
static Value IntQuotient(const Values& a) { return {TrueDiv(Whole(a[0]), Whole(a[1]))}; }
static Value FloatQuotient(const Values& a) { return {TrueDiv(AsFloat(a[0]), AsFloat(a[1]))}; }
static Value FloatPower(const Values& a) { return {Pow(AsFloat(a[0]), AsFloat(a[1]))}; }
static Value FloatOf(const Values& a) { return {AsFloat(a[0])}; }
static Value Same(const Values& a) { return a[0]; }
static Value AbsOf(const Values& a) { return a[0].den.IsConst() ? Fraction(Abs(a[0].num), Abs(a[0].den)) : Value{Abs(AsFloat(a[0]))}; }
static Value Indexing(const Values& a) { return {Mod(FloorDiv(Whole(a[0]), Whole(a[1])), Whole(a[2]))}; }
Value ShiftLeft(const Value& a, const Value& b) { return {Whole(a) * Pow(2, Whole(b))}; }
Value ShiftRight(const Value& a, const Value& b) { return {FloorDiv(Whole(a), Pow(2, Whole(b)))}; }
static Value Select(const Values& a) { return {Where(Whole(a[0]), Whole(a[1]), Whole(a[2]))}; }
static Value RoundDigits(const Values& a) { return {RoundDecimal(AsFloat(a[0]), Whole(a[1]))}; }
static Value Dense(const Values& a) {
  std::vector<SymExpr> args;
  for (const Value& v : a) args.push_back(Whole(v));
  return {IsNonOverlappingAndDense(args)};
}

constexpr Function kFunctions[] = {
    {"Add", 1, -1, FoldLeft<Add>},
    {"Mul", 1, -1, FoldLeft<Multiply>},
    {"Pow", 2, 2, PowerOf},
    {"PowByNatural", 2, 2, PowerOf},
    {"FloatPow", 2, 2, FloatPower},
    {"Rational", 2, 2, FoldLeft<Divide>},
    {"FloorDiv", 2, 2, Binary<FloorDiv>},
    {"CleanDiv", 2, 2, Binary<FloorDiv>},
    {"CeilDiv", 2, 2, Binary<CeilDiv>},
    {"Mod", 2, 2, Binary<Mod>},
    {"PythonMod", 2, 2, Binary<Mod>},
    {"ModularIndexing", 3, 3, Indexing},
    {"IntTrueDiv", 2, 2, IntQuotient},
    {"truediv", 2, 2, IntQuotient},
    {"FloatTrueDiv", 2, 2, FloatQuotient},
    {"LShift", 2, 2, FoldLeft<ShiftLeft>},
    {"RShift", 2, 2, FoldLeft<ShiftRight>},
    {"Max", 1, -1, Extreme<Max>},
    {"max", 1, -1, Extreme<Max>},
    {"Min", 1, -1, Extreme<Min>},
    {"min", 1, -1, Extreme<Min>},
    {"Abs", 1, 1, AbsOf},
    {"abs", 1, 1, AbsOf},
    {"floor", 1, 1, FloorOf},
    {"FloorToInt", 1, 1, FloorOf},
    {"ceil", 1, 1, CeilOf},
    {"ceiling", 1, 1, CeilOf},
    {"CeilToInt", 1, 1, CeilOf},
    {"trunc", 1, 1, Rounding<Trunc>},
    {"TruncToInt", 1, 1, Rounding<Trunc>},
    {"round", 1, 1, Rounding<Round>},
    {"RoundToInt", 1, 1, Rounding<Round>},
    {"RoundDecimal", 2, 2, RoundDigits},
    {"TruncToFloat", 1, 1, Rounding<TruncToFloat>},
    {"ToFloat", 1, 1, FloatOf},
    {"float", 1, 1, FloatOf},
    {"Identity", 1, 1, Same},
    {"Where", 3, 3, Select},
    {"where", 3, 3, Select},
    {"Equality", 2, 2, Relation<Eq>},
    {"Eq", 2, 2, Relation<Eq>},
    {"Unequality", 2, 2, Relation<Ne>},
    {"Ne", 2, 2, Relation<Ne>},
    {"StrictLessThan", 2, 2, Relation<Lt>},
    {"Lt", 2, 2, Relation<Lt>},
    {"LessThan", 2, 2, Relation<Le>},
    {"Le", 2, 2, Relation<Le>},
    {"StrictGreaterThan", 2, 2, Relation<Gt>},
    {"Gt", 2, 2, Relation<Gt>},
    {"GreaterThan", 2, 2, Relation<Ge>},
    {"Ge", 2, 2, Relation<Ge>},
    {"And", 1, -1, Logic<And>},
    {"Or", 1, -1, Logic<Or>},
    {"Not", 1, 1, Unary<Not>},
    {"BitwiseFn_bitwise_and", 2, 2, Binary<BitAnd>},
    {"BitwiseFn_bitwise_or", 2, 2, Binary<BitOr>},
    {"BitwiseFn_bitwise_xor", 2, 2, Binary<BitXor>},
    {"IsNonOverlappingAndDenseIndicator", 2, -1, Dense},
    {"sqrt", 1, 1, Opaque<SymOp::Sqrt>},
    {"cos", 1, 1, Opaque<SymOp::Cos>},
    {"cosh", 1, 1, Opaque<SymOp::Cosh>},
    {"sin", 1, 1, Opaque<SymOp::Sin>},
    {"sinh", 1, 1, Opaque<SymOp::Sinh>},
    {"tan", 1, 1, Opaque<SymOp::Tan>},
    {"tanh", 1, 1, Opaque<SymOp::Tanh>},
    {"asin", 1, 1, Opaque<SymOp::Asin>},
    {"acos", 1, 1, Opaque<SymOp::Acos>},
    {"atan", 1, 1, Opaque<SymOp::Atan>},
    {"exp", 1, 1, Opaque<SymOp::Exp>},
    {"log", 1, 1, Opaque<SymOp::Log>},
    {"asinh", 1, 1, Opaque<SymOp::Asinh>},
    {"log2", 1, 1, Opaque<SymOp::Log2>},
};

const Function* FindFunction(std::string_view name) {
  constexpr std::string_view kOpaque = "OpaqueUnaryFn_";
  if (name.starts_with(kOpaque)) name.remove_prefix(kOpaque.size());
  for (const Function& f : kFunctions) {
    if (f.name == name) return &f;
  }
  return nullptr;
}

}  // namespace pt2onnx::sym
