// Intervals and proofs; see sym_facts.h. Interval arithmetic on the normal form, where equal terms have already cancelled, and then
// a few inequalities that get rid of one atom at a time:
//
//   x//c <= x/c,  x//c >= (x - c + 1)/c,  max(a, b) >= a,  x % c = x - c*(x//c)
#include "ir/sym_facts.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/sym_internal.h"

namespace pt2onnx {
namespace sym {
namespace {

constexpr double kFloatInfinity = std::numeric_limits<double>::infinity();

// Beyond 64 bits is unbounded, or as good as the last bound within.
Interval Clamp(Interval in) {
  if (in.lo < INT64_MIN) in.lo = -kInfinity;
  if (in.hi > INT64_MAX) in.hi = kInfinity;
  return {std::min<Wide>(in.lo, INT64_MAX), std::max<Wide>(in.hi, INT64_MIN)};
}

Wide Times(Wide a, Wide b) {
  if (a == 0 || b == 0) return 0;
  bool infinite = a >= kInfinity || a <= -kInfinity || b >= kInfinity || b <= -kInfinity;
  return !infinite ? a * b : (a < 0) != (b < 0) ? -kInfinity : kInfinity;
}

// floor(a / b), b != 0, either may be infinite.
Wide Over(Wide a, Wide b) {
  bool negative = (a < 0) != (b < 0);
  if (b >= kInfinity || b <= -kInfinity) return a != 0 && negative ? -1 : 0;
  if (a >= kInfinity || a <= -kInfinity) return negative ? -kInfinity : kInfinity;
  Wide q = a / b;
  return q - (q * b != a && negative);
}

template <class F>
Interval Corners(F f, const Interval& a, const Interval& b) {
  auto [lo, hi] = std::minmax({f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)});
  return {lo, hi};
}

Interval Hull(const Interval& a, const Interval& b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Interval PowerInterval(const Interval& base, int64_t n) {
  Interval result{1, 1};
  // Larger powers than fit are unbounded anyway, but for the bases -1, 0 and 1.
  for (int64_t i = 0; i < std::min<int64_t>(n, 64 + n % 2); ++i) result = Clamp(Corners(Times, result, base));
  if (n % 2 == 0) result.lo = std::max<Wide>(result.lo, 0);
  return result;
}

Interval FloorDivInterval(const Interval& a, Interval b) {
  if (b.lo == 0) b.lo = 1;  // a divisor is not 0
  if (b.hi == 0) b.hi = -1;
  if (b.lo > b.hi) return {};
  if (b.lo < 0 && b.hi > 0) return Hull(Corners(Over, a, {b.lo, -1}), Corners(Over, a, {1, b.hi}));
  return Corners(Over, a, b);
}

Interval ModInterval(const Interval& a, const Interval& b) {
  if (b.lo >= 0) {
    if (a.lo >= 0 && a.hi < b.lo) return a;
    Wide most = std::max<Wide>(b.hi - 1, 0);
    return {0, a.lo >= 0 ? std::min(a.hi, most) : most};
  }
  if (b.hi <= 0) return {b.lo + 1, 0};
  return {b.lo + 1, b.hi - 1};
}

Interval FromFloats(std::pair<double, double> in) {
  auto bound = [](double x) -> Wide {
    if (!(x > -0x1p63)) return -kInfinity;
    return x < 0x1p63 ? static_cast<Wide>(x) : kInfinity;
  };
  return {bound(in.first), bound(in.second)};
}

Interval NodeInterval(const SymExpr& e, bool believe) {
  std::span<const SymExpr> args = e.args();
  auto of = [&](size_t i) { return IntervalOf(args[i], believe); };
  auto floats = [&] { return FloatIntervalOf(args[0], believe); };
  switch (e.op()) {
    case SymOp::Add: {
      Interval sum{0, 0};
      for (size_t i = 0; i < args.size(); ++i) {
        Interval in = of(i);
        sum.lo = sum.lo <= -kInfinity || in.lo <= -kInfinity ? -kInfinity : sum.lo + in.lo;
        sum.hi = sum.hi >= kInfinity || in.hi >= kInfinity ? kInfinity : sum.hi + in.hi;
      }
      return sum;
    }
    case SymOp::Mul: {
      Interval product{1, 1};
      for (size_t i = 0; i < args.size(); ++i) product = Clamp(Corners(Times, product, of(i)));
      return product;
    }
    case SymOp::Pow: {
      if (args[1].IsConst()) return PowerInterval(of(0), args[1].Const());
      Interval base = of(0);
      return base.lo >= 1 ? Interval{1, kInfinity} : base.lo >= 0 ? Interval{0, kInfinity} : Interval{};
    }
    case SymOp::FloorDiv: return FloorDivInterval(of(0), of(1));
    case SymOp::Mod: return ModInterval(of(0), of(1));
    case SymOp::Max: case SymOp::Min: {
      Interval in = of(0);
      for (size_t i = 1; i < args.size(); ++i) {
        Interval other = of(i);
        in = e.op() == SymOp::Max ? Interval{std::max(in.lo, other.lo), std::max(in.hi, other.hi)}
                                  : Interval{std::min(in.lo, other.lo), std::min(in.hi, other.hi)};
      }
      return in;
    }
    case SymOp::Abs: {
      Interval in = of(0);
      return {in.lo > 0 ? in.lo : in.hi < 0 ? -in.hi : 0, std::max(-in.lo, in.hi)};
    }
    case SymOp::Floor: {
      auto [lo, hi] = floats();
      return FromFloats({std::floor(lo), std::floor(hi)});
    }
    case SymOp::Ceil: {
      auto [lo, hi] = floats();
      return FromFloats({std::ceil(lo), std::ceil(hi)});
    }
    case SymOp::Trunc: {
      auto [lo, hi] = floats();
      return FromFloats({std::trunc(lo), std::trunc(hi)});
    }
    case SymOp::Round: {
      auto [lo, hi] = floats();
      return FromFloats({std::nearbyint(lo), std::nearbyint(hi)});
    }
    case SymOp::Where: return Hull(of(1), of(2));
    case SymOp::IsNonOverlappingAndDense: return {0, 1};
    case SymOp::BitAnd: case SymOp::BitOr: case SymOp::BitXor: {
      Interval a = of(0), b = of(1);
      if (a.lo < 0 || b.lo < 0) return {};
      return {0, e.op() == SymOp::BitAnd ? std::min(a.hi, b.hi) : kInfinity};
    }
    default: return {};
  }
}

}  // namespace

Interval IntervalOf(SymExpr e, bool believe) {
  if (e.IsConst()) return {e.Const(), e.Const()};
  if (e.IsUnknown() || e.kind() != SymKind::Int) return {};
  Interval in = Clamp(NodeInterval(e, believe));
  if (!believe) return in;
  Range range = e.node()->pool->BelievedRange(e);
  if (range.lo) in.lo = std::max<Wide>(in.lo, *range.lo);
  if (range.hi) in.hi = std::min<Wide>(in.hi, *range.hi);
  return in;
}

// Rounding is monotone, so the rounded operation on the ends bounds the rounded result.
std::pair<double, double> FloatIntervalOf(SymExpr e, bool believe) {
  constexpr std::pair<double, double> kAll{-kFloatInfinity, kFloatInfinity};
  if (auto x = e.TryFloat()) return std::isnan(*x) ? kAll : std::pair(*x, *x);
  if (e.kind() == SymKind::Int) {
    Interval in = IntervalOf(e, believe);
    return {in.lo <= -kInfinity ? -kFloatInfinity : static_cast<double>(in.lo), in.hi >= kInfinity ? kFloatInfinity : static_cast<double>(in.hi)};
  }
  std::span<const SymExpr> args = e.args();
  auto of = [&](size_t i) { return FloatIntervalOf(args[i], believe); };
  auto corners = [&](auto f) -> std::pair<double, double> {
    auto [a, b] = of(0);
    auto [c, d] = of(1);
    auto [lo, hi] = std::minmax({f(a, c), f(a, d), f(b, c), f(b, d)});
    return {lo, hi};
  };
  switch (e.op()) {
    case SymOp::ToFloat: return of(0);
    case SymOp::Add: {
      auto [a, b] = of(0);
      auto [c, d] = of(1);
      return {std::isinf(a) ? -kFloatInfinity : a + c, std::isinf(b) ? kFloatInfinity : b + d};
    }
    case SymOp::Mul: return corners([](double x, double y) { return x == 0 || y == 0 ? 0 : x * y; });
    case SymOp::TrueDiv: {
      auto divisor = of(1);
      if (divisor.first <= 0 && divisor.second >= 0) return kAll;
      return corners([](double x, double y) { return std::isinf(y) ? 0 : x / y; });
    }
    case SymOp::Max: case SymOp::Min: {
      auto in = of(0);
      for (size_t i = 1; i < args.size(); ++i) {
        auto other = of(i);
        in = e.op() == SymOp::Max ? std::pair(std::max(in.first, other.first), std::max(in.second, other.second))
                                  : std::pair(std::min(in.first, other.first), std::min(in.second, other.second));
      }
      return in;
    }
    case SymOp::Abs: {
      auto [lo, hi] = of(0);
      return {lo > 0 ? lo : hi < 0 ? -hi : 0, std::max(-lo, hi)};
    }
    case SymOp::TruncToFloat: {
      auto [lo, hi] = of(0);
      return {std::trunc(lo), std::trunc(hi)};
    }
    case SymOp::Where: {
      auto a = of(1), b = of(2);
      return {std::min(a.first, b.first), std::max(a.second, b.second)};
    }
    case SymOp::Sqrt: {
      auto [lo, hi] = of(0);
      return {std::sqrt(std::max(lo, 0.0)), hi < 0 ? kFloatInfinity : std::sqrt(hi)};
    }
    case SymOp::FloatPow: return of(0).first >= 0 ? std::pair(0.0, kFloatInfinity) : kAll;
    case SymOp::Exp: case SymOp::Cosh: return {0, kFloatInfinity};
    default: return kAll;
  }
}

namespace {

// x % c = x - c*(x//c), which may cancel with other terms.
SymExpr ExpandMods(SymExpr e) {
  for (const Term& term : ToPoly(e)) {
    if (term.monomial.op() != SymOp::Mod) continue;
    SymExpr x = term.monomial.args()[0], c = term.monomial.args()[1];
    e += term.coefficient * (x - c * FloorDiv(x, c) - term.monomial);
    if (e.IsUnknown()) break;
  }
  return e;
}

bool NonNegative(SymExpr e, int depth);

// e with one atom replaced by what bounds it from the side that matters, so that the result >= 0 gives e >= 0.
bool NonNegativeWithout(const Term& term, SymExpr e, int depth) {
  SymExpr atom = term.monomial;
  int64_t k = term.coefficient;
  auto with = [&](SymExpr other) { return NonNegative(e + k * (other - atom), depth - 1); };
  auto any = [&](std::span<const SymExpr> choices) { return std::ranges::any_of(choices, with); };
  auto all = [&](std::span<const SymExpr> choices) { return std::ranges::all_of(choices, with); };
  switch (atom.op()) {
    case SymOp::FloorDiv: {
      SymExpr x = atom.args()[0], c = atom.args()[1];
      // k*(x//c) >= k*(x - c + 1)/c for k > 0, >= k*x/c for k < 0; all times c.
      if (IsPositiveConst(c)) return NonNegative(c * (e - k * atom) + k * (k > 0 ? x - c + 1 : x), depth - 1);
      return k < 0 && IntervalOf(x, true).lo >= 0 && IntervalOf(c, true).lo >= 0 && with(x);
    }
    case SymOp::Mod: return k < 0 && IntervalOf(atom.args()[0], true).lo >= 0 && IntervalOf(atom.args()[1], true).lo >= 0 && with(atom.args()[0]);
    case SymOp::Max: return k > 0 ? any(atom.args()) : all(atom.args());
    case SymOp::Min: return k > 0 ? all(atom.args()) : any(atom.args());
    case SymOp::Where: return all(atom.args().subspan(1));
    default: return false;
  }
}

bool NonNegative(SymExpr e, int depth) {
  if (e.IsUnknown()) return false;
  if (IntervalOf(e, true).lo >= 0) return true;
  if (depth == 0) return false;
  for (const Term& term : ToPoly(e)) {
    if (!term.monomial.IsConst() && NonNegativeWithout(term, e, depth)) return true;
  }
  return false;
}

bool AreInts(const SymExpr& a, const SymExpr& b) {
  return !AnyUnknown({a, b}) && a.kind() == SymKind::Int && b.kind() == SymKind::Int;
}

}  // namespace
}  // namespace sym

using namespace sym;

Range BoundsOf(SymExpr e) {
  Interval in = IntervalOf(e, true);
  Range range;
  if (in.lo > -kInfinity) range.lo = static_cast<int64_t>(std::min<Wide>(in.lo, INT64_MAX));
  if (in.hi < kInfinity) range.hi = static_cast<int64_t>(std::max<Wide>(in.hi, INT64_MIN));
  return range;
}

bool ProvablyNonNegative(SymExpr a) {
  constexpr int kDepth = 3;
  if (a.IsUnknown() || a.kind() != SymKind::Int) return false;
  if (NonNegative(a, kDepth)) return true;
  SymExpr expanded = ExpandMods(a);
  return !expanded.IsSame(a) && NonNegative(expanded, kDepth);
}

bool ProvablyPositive(SymExpr a) { return ProvablyNonNegative(a - 1); }
bool ProvablyLessEqual(SymExpr a, SymExpr b) { return AreInts(a, b) && ProvablyNonNegative(b - a); }
bool ProvablyLess(SymExpr a, SymExpr b) { return AreInts(a, b) && ProvablyNonNegative(b - a - 1); }

bool ProvablyEqual(SymExpr a, SymExpr b) {
  if (a == b) return true;
  if (!AreInts(a, b)) return false;
  SymExpr difference = a - b;
  if (difference.IsUnknown()) return false;
  if (difference.IsConst()) return difference.Const() == 0;
  return ExpandMods(difference) == SymExpr(0) || (ProvablyNonNegative(difference) && ProvablyNonNegative(-difference));
}

bool ProvablyNotEqual(SymExpr a, SymExpr b) {
  if (!AreInts(a, b)) return false;
  SymExpr difference = a - b;
  if (difference.IsUnknown()) return false;
  return Eq(difference, 0).TryBool() == false || ProvablyPositive(difference) || ProvablyPositive(-difference);
}

bool ProvablyDivisible(SymExpr a, int64_t by) {
  if (a.IsUnknown() || a.kind() != SymKind::Int || by == 0) return false;
  SymExpr rest = Mod(a, by);
  if (rest == SymExpr(0)) return true;
  SymExpr expanded = ExpandMods(a);
  return !expanded.IsUnknown() && Mod(expanded, by) == SymExpr(0);
}

std::optional<bool> Decide(SymExpr condition) {
  if (condition.IsUnknown() || condition.kind() != SymKind::Bool) return std::nullopt;
  if (auto value = condition.TryBool()) return value;
  std::span<const SymExpr> args = condition.args();
  switch (condition.op()) {
    case SymOp::Not: {
      auto inner = Decide(args[0]);
      return inner ? std::optional(!*inner) : std::nullopt;
    }
    case SymOp::And: case SymOp::Or: {
      bool neutral = condition.op() == SymOp::And, all_known = true;
      for (const SymExpr& arg : args) {
        auto value = Decide(arg);
        if (value == !neutral) return !neutral;
        all_known &= value.has_value();
      }
      return all_known ? std::optional(neutral) : std::nullopt;
    }
    case SymOp::Eq: case SymOp::Ne: {
      bool is_eq = condition.op() == SymOp::Eq;
      if (ProvablyEqual(args[0], args[1])) return is_eq;
      if (ProvablyNotEqual(args[0], args[1])) return !is_eq;
      return std::nullopt;
    }
    case SymOp::Le: case SymOp::Lt: {
      bool is_le = condition.op() == SymOp::Le;
      if (AreInts(args[0], args[1])) {
        if (ProvablyLessEqual(args[0], args[1])) return true;
        if (ProvablyLess(args[1], args[0])) return false;
        return std::nullopt;
      }
      auto [a_lo, a_hi] = FloatIntervalOf(args[0], true);
      auto [b_lo, b_hi] = FloatIntervalOf(args[1], true);
      if (is_le ? a_hi <= b_lo : a_hi < b_lo) return true;
      if (is_le ? a_lo > b_hi : a_lo >= b_hi) return false;
      return std::nullopt;
    }
    default: return std::nullopt;
  }
}

}  // namespace pt2onnx
