// All operators but the integer arithmetic of sym_arith.cc: floats, Max and Min, conditions, bits.
// Floats: only constants fold and only the two sides of a sum or product change places; IEEE arithmetic allows no more.
// What Python refuses (division by zero, a logarithm of 0) is Unknown.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "ir/sym_internal.h"

namespace pt2onnx {
namespace sym {

// A result that is not finite although the arguments are means that Python raises an error.
static SymExpr FiniteOrUnknown(double result, bool finite_arguments) {
  return finite_arguments && !std::isfinite(result) ? SymExpr::Unknown() : SymExpr::Float(result);
}

SymExpr FloatBinary(SymOp op, SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  auto x = a.TryFloat(), y = b.TryFloat();
  bool is_commutative = op == SymOp::Add || op == SymOp::Mul;
  if (x && y) {
    bool finite = std::isfinite(*x) && std::isfinite(*y);
    if (op == SymOp::Add) return SymExpr::Float(*x + *y);
    if (op == SymOp::Mul) return SymExpr::Float(*x * *y);
    if (op == SymOp::FloatPow) return FiniteOrUnknown(std::pow(*x, *y), finite);
    return *y == 0 ? SymExpr::Unknown() : SymExpr::Float(*x / *y);
  }
  if (op == SymOp::Mul && x == 1.0) return b;
  if (op == SymOp::Mul && y == 1.0) return a;
  if (op == SymOp::TrueDiv && y == 1.0) return a;
  if (is_commutative && Less(b, a)) std::swap(a, b);
  return MakeNode(op, SymKind::Float, {a, b});
}

// Python's int / int: the exact quotient, rounded once.
static double DivideInts(int64_t a, int64_t b) {
  using Unsigned = unsigned __int128;
  auto magnitude = [](int64_t v) { return v < 0 ? -static_cast<Unsigned>(v) : static_cast<Unsigned>(v); };
  auto bits = [](Unsigned v) { return static_cast<int>(std::bit_width(static_cast<uint64_t>(v))); };
  Unsigned x = magnitude(a), y = magnitude(b);
  // At least 55 bits of quotient and a sticky bit, so that the conversion rounds correctly.
  int shift = std::max(0, 56 + bits(y) - bits(x));
  Unsigned quotient = (x << shift) / y;
  if ((x << shift) % y != 0) quotient |= 1;
  double result = std::ldexp(static_cast<double>(quotient), -shift);
  return (a < 0) != (b < 0) ? -result : result;
}

static SymExpr ToInt(double value) {
  if (!(value >= -0x1p63 && value < 0x1p63)) return SymExpr::Unknown();
  return static_cast<int64_t>(value);
}

// Floor, Ceil, Trunc and Round; an Int is its own.
static SymExpr RoundTo(SymOp op, SymExpr a) {
  if (a.IsUnknown()) return a;
  a = AsNumber(a);
  if (a.kind() == SymKind::Int) return a;
  if (auto x = a.TryFloat()) {
    switch (op) {
      case SymOp::Floor: return ToInt(std::floor(*x));
      case SymOp::Ceil: return ToInt(std::ceil(*x));
      case SymOp::Trunc: return ToInt(std::trunc(*x));
      default: return ToInt(std::nearbyint(*x));
    }
  }
  if (a.op() == SymOp::TruncToFloat) return RoundTo(SymOp::Trunc, a.args()[0]);
  return MakeNode(op, SymKind::Int, {a});
}

static double Apply(SymOp op, double x) {
  switch (op) {
    case SymOp::Sqrt: return std::sqrt(x);
    case SymOp::Cos: return std::cos(x);
    case SymOp::Cosh: return std::cosh(x);
    case SymOp::Sin: return std::sin(x);
    case SymOp::Sinh: return std::sinh(x);
    case SymOp::Tan: return std::tan(x);
    case SymOp::Tanh: return std::tanh(x);
    case SymOp::Asin: return std::asin(x);
    case SymOp::Acos: return std::acos(x);
    case SymOp::Atan: return std::atan(x);
    case SymOp::Exp: return std::exp(x);
    case SymOp::Log: return std::log(x);
    case SymOp::Asinh: return std::asinh(x);
    case SymOp::Log2: return std::log2(x);
    default: PT2ONNX_UNREACHABLE();
  }
}

// Flat, sorted, each argument once. Constants are folded by `fold`; nothing is left of them but one at most, in front.
static std::vector<SymExpr> Flatten(SymOp op, SymExpr a, SymExpr b) {
  std::vector<SymExpr> args;
  for (const SymExpr& e : {a, b}) {
    if (e.op() == op) {
      args.insert(args.end(), e.args().begin(), e.args().end());
    } else {
      args.push_back(e);
    }
  }
  std::ranges::sort(args, Less);
  auto repeated = std::ranges::unique(args, [](const SymExpr& x, const SymExpr& y) { return x.IsSame(y); });
  args.erase(repeated.begin(), repeated.end());
  return args;
}

static SymExpr MaxOrMin(SymOp op, SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  a = AsNumber(a), b = AsNumber(b);
  bool is_max = op == SymOp::Max;
  if (a.kind() == SymKind::Float || b.kind() == SymKind::Float) {
    std::vector<SymExpr> args = Flatten(op, ToFloat(a), ToFloat(b));
    if (args.size() > 1 && args[1].TryFloat()) {
      double x = *args[0].TryFloat(), y = *args[1].TryFloat();
      args.erase(args.begin());
      args[0] = SymExpr::Float(is_max == (x > y) ? x : y);
    }
    return args.size() == 1 ? args[0] : MakeNode(op, SymKind::Float, args);
  }
  // An argument that never exceeds another is dropped: max(s0, s0 + 1), max(0, s0 % 2).
  std::vector<SymExpr> args = Flatten(op, a, b);
  for (size_t i = 0; i < args.size(); ++i) {
    for (size_t j = 0; j < args.size(); ++j) {
      if (i == j) continue;
      SymExpr excess = is_max ? args[j] - args[i] : args[i] - args[j];
      if (excess.IsUnknown() || IntervalOf(excess, false).lo < 0) continue;
      args.erase(args.begin() + static_cast<std::ptrdiff_t>(i--));
      break;
    }
  }
  return args.size() == 1 ? args[0] : MakeNode(op, SymKind::Int, args);
}

static SymExpr AndOrOr(SymOp op, SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  if (a.kind() != SymKind::Bool) a = Ne(a, 0);
  if (b.kind() != SymKind::Bool) b = Ne(b, 0);
  bool neutral = op == SymOp::And;
  std::vector<SymExpr> args = Flatten(op, a, b);
  std::erase_if(args, [&](const SymExpr& e) { return e.TryBool() == neutral; });
  for (const SymExpr& e : args) {
    if (e.TryBool() || std::ranges::find(args, Not(e)) != args.end()) return SymExpr::Bool(!neutral);
  }
  if (args.empty()) return SymExpr::Bool(neutral);
  return args.size() == 1 ? args[0] : MakeNode(op, SymKind::Bool, args);
}

// 0 <= difference as "negative terms <= positive terms", or 0 == difference likewise.
static SymExpr Relation(SymOp op, const Poly& difference) {
  Poly left, right;
  for (const Term& term : difference) {
    if (term.coefficient == INT64_MIN) return SymExpr::Unknown();
    term.coefficient < 0 ? left.push_back({-term.coefficient, term.monomial}) : right.push_back(term);
  }
  // Equations read with the symbols on the left.
  if (op != SymOp::Le) std::swap(left, right);
  return MakeNode(op, SymKind::Bool, {FromPoly(left), FromPoly(right)});
}

static SymExpr EqInts(SymOp op, SymExpr a, SymExpr b) {
  bool is_eq = op == SymOp::Eq;
  if (a.IsConst() && b.IsConst()) return SymExpr::Bool((a.Const() == b.Const()) == is_eq);
  SymExpr difference = a - b;
  if (difference.IsUnknown()) return difference;
  if (difference.IsConst()) return SymExpr::Bool((difference.Const() == 0) == is_eq);
  Poly poly = ToPoly(difference);
  if (std::ranges::any_of(poly, [](const Term& term) { return term.coefficient == INT64_MIN; })) return SymExpr::Unknown();
  int64_t g = ContentOf(poly);
  if (ConstantOf(poly) % g != 0) return SymExpr::Bool(!is_eq);
  if (poly[0].coefficient < 0) g = -g;
  for (Term& term : poly) term.coefficient /= g;
  Interval in = IntervalOf(FromPoly(poly), false);
  if (in.lo > 0 || in.hi < 0) return SymExpr::Bool(!is_eq);
  return Relation(op, poly);
}

static SymExpr LeInts(SymExpr a, SymExpr b) {
  if (a.IsConst() && b.IsConst()) return SymExpr::Bool(a.Const() <= b.Const());
  SymExpr difference = b - a;
  if (difference.IsUnknown()) return difference;
  if (difference.IsConst()) return SymExpr::Bool(difference.Const() >= 0);
  // 0 <= g*p + c  is  0 <= p + c//g
  Poly poly = ToPoly(difference);
  int64_t g = ContentOf(poly);
  for (Term& term : poly) term.coefficient = term.monomial.IsConst() ? FloorDivInt(term.coefficient, g) : term.coefficient / g;
  std::erase_if(poly, [](const Term& term) { return term.coefficient == 0; });
  Interval in = IntervalOf(FromPoly(poly), false);
  if (in.lo >= 0) return SymExpr::Bool(true);
  if (in.hi < 0) return SymExpr::Bool(false);
  return Relation(SymOp::Le, poly);
}

static SymExpr Compare(SymOp op, SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  bool is_equation = op == SymOp::Eq || op == SymOp::Ne;
  if (is_equation && a.kind() == SymKind::Bool && b.kind() == SymKind::Bool) {
    if (a.IsAnyConst()) std::swap(a, b);
    if (auto value = b.TryBool()) return *value == (op == SymOp::Eq) ? a : Not(a);
    if (a == b) return SymExpr::Bool(op == SymOp::Eq);
  } else {
    a = AsNumber(a), b = AsNumber(b);
    if (a.kind() == SymKind::Int && b.kind() == SymKind::Int) {
      if (is_equation) return EqInts(op, a, b);
      return op == SymOp::Le ? LeInts(a, b) : LeInts(a + 1, b);
    }
    if (a.IsAnyConst() && b.IsAnyConst()) {
      // Python compares an int with a float exactly.
      auto value = [](SymExpr e) { return e.IsConst() ? static_cast<long double>(e.Const()) : static_cast<long double>(*e.TryFloat()); };
      long double x = value(a), y = value(b);
      return SymExpr::Bool(op == SymOp::Eq ? x == y : op == SymOp::Ne ? x != y : op == SymOp::Le ? x <= y : x < y);
    }
  }
  if (is_equation && Less(b, a)) std::swap(a, b);
  return MakeNode(op, SymKind::Bool, {a, b});
}

static SymExpr BitOp(SymOp op, SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  if (a.kind() == SymKind::Bool && b.kind() == SymKind::Bool) return op == SymOp::BitAnd ? And(a, b) : op == SymOp::BitOr ? Or(a, b) : Ne(a, b);
  a = AsNumber(a), b = AsNumber(b);
  if (a.kind() != SymKind::Int || b.kind() != SymKind::Int) return SymExpr::Unknown();
  if (a.IsConst() && b.IsConst()) {
    int64_t x = a.Const(), y = b.Const();
    return op == SymOp::BitAnd ? x & y : op == SymOp::BitOr ? x | y : x ^ y;
  }
  if (Less(b, a)) std::swap(a, b);
  return MakeNode(op, SymKind::Int, {a, b});
}

}  // namespace sym

using namespace sym;

SymExpr TrueDiv(SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  a = AsNumber(a), b = AsNumber(b);
  if (a.kind() == SymKind::Float || b.kind() == SymKind::Float) return FloatBinary(SymOp::TrueDiv, ToFloat(a), ToFloat(b));
  if (b.IsSame(0)) return SymExpr::Unknown();
  if (a.IsConst() && b.IsConst()) return SymExpr::Float(DivideInts(a.Const(), b.Const()));
  // Both round the exact quotient once.
  if (b.IsConst()) {
    if (auto exact = TryDivideExactly(a, b)) return ToFloat(*exact);
  }
  return MakeNode(SymOp::TrueDiv, SymKind::Float, {a, b});
}

SymExpr Abs(SymExpr a) {
  if (a.IsUnknown()) return a;
  a = AsNumber(a);
  if (auto x = a.TryFloat()) return SymExpr::Float(std::fabs(*x));
  if (a.kind() == SymKind::Float) return a.op() == SymOp::Abs ? a : MakeNode(SymOp::Abs, SymKind::Float, {a});
  if (a.IsConst()) return a.Const() < 0 ? -a : a;
  Interval in = IntervalOf(a, false);
  if (in.lo >= 0) return a;
  if (in.hi <= 0) return -a;
  if (ToPoly(a)[0].coefficient < 0) a = -a;
  return a.IsUnknown() ? a : MakeNode(SymOp::Abs, SymKind::Int, {a});
}

SymExpr Max(SymExpr a, SymExpr b) { return MaxOrMin(SymOp::Max, a, b); }
SymExpr Min(SymExpr a, SymExpr b) { return MaxOrMin(SymOp::Min, a, b); }

SymExpr ToFloat(SymExpr a) {
  a = AsNumber(a);
  if (a.IsUnknown() || a.kind() == SymKind::Float) return a;
  if (a.IsConst()) return SymExpr::Float(static_cast<double>(a.Const()));
  return MakeNode(SymOp::ToFloat, SymKind::Float, {a});
}

SymExpr Floor(SymExpr a) { return RoundTo(SymOp::Floor, a); }
SymExpr Ceil(SymExpr a) { return RoundTo(SymOp::Ceil, a); }
SymExpr Trunc(SymExpr a) { return RoundTo(SymOp::Trunc, a); }
SymExpr Round(SymExpr a) { return RoundTo(SymOp::Round, a); }

SymExpr TruncToFloat(SymExpr a) {
  a = ToFloat(a);
  if (auto x = a.TryFloat()) return SymExpr::Float(std::trunc(*x));
  if (a.IsUnknown() || a.op() == SymOp::ToFloat || a.op() == SymOp::TruncToFloat) return a;
  return MakeNode(SymOp::TruncToFloat, SymKind::Float, {a});
}

SymExpr RoundDecimal(SymExpr a, SymExpr digits) {
  if (AnyUnknown({a, digits}) || digits.kind() != SymKind::Int) return SymExpr::Unknown();
  a = ToFloat(a);
  auto x = a.TryFloat();
  if (!x || !digits.IsConst()) return MakeNode(SymOp::RoundDecimal, SymKind::Float, {a, digits});
  // Correctly rounded decimal digits, ties to even, as Python's own.
  if (!std::isfinite(*x) || digits.Const() > 323) return a;
  if (digits.Const() < 0) return SymExpr::Unknown();
  std::array<char, 700> text;
  std::snprintf(text.data(), text.size(), "%.*f", static_cast<int>(digits.Const()), *x);
  return SymExpr::Float(std::strtod(text.data(), nullptr));
}

SymExpr UnaryFunction(SymOp op, SymExpr a) {
  PT2ONNX_CHECK(op >= SymOp::Sqrt && op <= SymOp::Log2);
  a = ToFloat(a);
  if (a.IsUnknown()) return a;
  if (auto x = a.TryFloat()) return FiniteOrUnknown(Apply(op, *x), std::isfinite(*x));
  return MakeNode(op, SymKind::Float, {a});
}

SymExpr BitAnd(SymExpr a, SymExpr b) { return BitOp(SymOp::BitAnd, a, b); }
SymExpr BitOr(SymExpr a, SymExpr b) { return BitOp(SymOp::BitOr, a, b); }
SymExpr BitXor(SymExpr a, SymExpr b) { return BitOp(SymOp::BitXor, a, b); }

// 1 if the dims, sorted by stride and without those of size 1, have the strides of a contiguous tensor.
SymExpr IsNonOverlappingAndDense(std::span<const SymExpr> args) {
  if (args.size() % 2 != 0) return SymExpr::Unknown();
  for (const SymExpr& arg : args) {
    if (arg.IsUnknown() || arg.kind() != SymKind::Int) return SymExpr::Unknown();
  }
  if (!std::ranges::all_of(args, [](const SymExpr& e) { return e.IsConst(); })) return MakeNode(SymOp::IsNonOverlappingAndDense, SymKind::Int, args);
  size_t rank = args.size() / 2;
  if (rank == 1) return args[1].Const() == 1 || args[0].Const() < 2 ? 1 : 0;
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return args[rank + i].Const(); });
  SymExpr expected = 1;
  for (size_t i : order) {
    if (args[i].Const() == 1) continue;
    if (!args[rank + i].IsSame(expected)) return 0;
    expected *= args[i];
  }
  return 1;
}

SymExpr Where(SymExpr condition, SymExpr a, SymExpr b) {
  if (AnyUnknown({condition, a, b})) return SymExpr::Unknown();
  if (condition.kind() != SymKind::Bool) condition = Ne(condition, 0);
  if (a.kind() != b.kind()) a = AsNumber(a), b = AsNumber(b);
  if (a.kind() != b.kind()) a = ToFloat(a), b = ToFloat(b);
  if (auto value = condition.TryBool()) return *value ? a : b;
  if (a.IsSame(b)) return a;
  // Of a condition and its opposite the lesser.
  if (SymExpr opposite = Not(condition); Less(opposite, condition)) return MakeNode(SymOp::Where, a.kind(), {opposite, b, a});
  return MakeNode(SymOp::Where, a.kind(), {condition, a, b});
}

SymExpr Eq(SymExpr a, SymExpr b) { return Compare(SymOp::Eq, a, b); }
SymExpr Ne(SymExpr a, SymExpr b) { return Compare(SymOp::Ne, a, b); }
SymExpr Lt(SymExpr a, SymExpr b) { return Compare(SymOp::Lt, a, b); }
SymExpr Le(SymExpr a, SymExpr b) { return Compare(SymOp::Le, a, b); }
SymExpr Gt(SymExpr a, SymExpr b) { return Lt(b, a); }
SymExpr Ge(SymExpr a, SymExpr b) { return Le(b, a); }
SymExpr And(SymExpr a, SymExpr b) { return AndOrOr(SymOp::And, a, b); }
SymExpr Or(SymExpr a, SymExpr b) { return AndOrOr(SymOp::Or, a, b); }

SymExpr Not(SymExpr a) {
  if (a.IsUnknown()) return a;
  if (a.kind() != SymKind::Bool) return Eq(a, 0);
  if (auto value = a.TryBool()) return SymExpr::Bool(!*value);
  if (a.op() == SymOp::Not) return a.args()[0];
  if (a.op() == SymOp::Eq) return MakeNode(SymOp::Ne, SymKind::Bool, a.args());
  if (a.op() == SymOp::Ne) return MakeNode(SymOp::Eq, SymKind::Bool, a.args());
  bool of_ints = a.op() == SymOp::Le && a.args()[0].kind() == SymKind::Int && a.args()[1].kind() == SymKind::Int;
  if (of_ints) return Lt(a.args()[1], a.args()[0]);
  return MakeNode(SymOp::Not, SymKind::Bool, {a});  // of floats x < y and y <= x can both be false
}

SymExpr MakeSym(SymOp op, std::span<const SymExpr> args) {
  auto fold = [&](SymExpr (*f)(SymExpr, SymExpr)) {
    SymExpr result = args[0];
    for (const SymExpr& arg : args.subspan(1)) result = f(result, arg);
    return result;
  };
  switch (op) {
    case SymOp::Unknown: return SymExpr::Unknown();
    case SymOp::Int: case SymOp::Float: case SymOp::Bool: case SymOp::Symbol: PT2ONNX_UNREACHABLE();
    case SymOp::Add: return fold([](SymExpr a, SymExpr b) { return a + b; });
    case SymOp::Mul: return fold([](SymExpr a, SymExpr b) { return a * b; });
    case SymOp::Pow: return Pow(args[0], args[1]);
    case SymOp::FloorDiv: return FloorDiv(args[0], args[1]);
    case SymOp::Mod: return Mod(args[0], args[1]);
    case SymOp::TrueDiv: return TrueDiv(args[0], args[1]);
    case SymOp::FloatPow: return FloatBinary(SymOp::FloatPow, ToFloat(args[0]), ToFloat(args[1]));
    case SymOp::Max: return fold(Max);
    case SymOp::Min: return fold(Min);
    case SymOp::Abs: return Abs(args[0]);
    case SymOp::Floor: case SymOp::Ceil: case SymOp::Trunc: case SymOp::Round: return RoundTo(op, args[0]);
    case SymOp::RoundDecimal: return RoundDecimal(args[0], args[1]);
    case SymOp::TruncToFloat: return TruncToFloat(args[0]);
    case SymOp::ToFloat: return ToFloat(args[0]);
    case SymOp::Where: return Where(args[0], args[1], args[2]);
    case SymOp::Eq: case SymOp::Ne: case SymOp::Le: case SymOp::Lt: return Compare(op, args[0], args[1]);
    case SymOp::And: return fold(And);
    case SymOp::Or: return fold(Or);
    case SymOp::Not: return Not(args[0]);
    case SymOp::BitAnd: case SymOp::BitOr: case SymOp::BitXor: return BitOp(op, args[0], args[1]);
    case SymOp::IsNonOverlappingAndDense: return IsNonOverlappingAndDense(args);
    case SymOp::Sqrt: case SymOp::Cos: case SymOp::Cosh: case SymOp::Sin: case SymOp::Sinh: case SymOp::Tan: case SymOp::Tanh: case SymOp::Asin:
    case SymOp::Acos: case SymOp::Atan: case SymOp::Exp: case SymOp::Log: case SymOp::Asinh: case SymOp::Log2: return UnaryFunction(op, args[0]);
  }
  PT2ONNX_UNREACHABLE();
}

}  // namespace pt2onnx
