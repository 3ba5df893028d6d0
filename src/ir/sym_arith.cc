// Integer arithmetic in normal form: polynomials over atoms (symbols, floor divisions, Max, ...) with int64 coefficients.
//
//   (2*s0 + 3)//2      ->  s0 + 1                 multiples of the divisor come out of a floor division
//   (s0//2 + 1)//3     ->  (s0 + 2)//6            (x//b + r)//c = (x + r*b)//(b*c) for b, c > 0
//   (7*s0 + 4) % 3     ->  (s0 + 1) % 3           coefficients count modulo the divisor
//   (s0*s1 + s1)//s1   ->  s0 + 1                 wherever s1 != 0
#include <algorithm>
#include <numeric>

#include "ir/sym_internal.h"

namespace pt2onnx {
namespace sym {

constexpr size_t kMaxTerms = 256;  // larger products of sums stay products

int64_t FloorDivInt(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t FloorModInt(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

static bool IsConstPower(const SymExpr& e) { return e.op() == SymOp::Pow && e.args()[1].IsConst(); }

std::vector<Factor> FactorsOf(SymExpr monomial) {
  std::vector<Factor> factors;
  auto add = [&](const SymExpr& e) { factors.push_back(IsConstPower(e) ? Factor{e.args()[0], e.args()[1].Const()} : Factor{e, 1}); };
  if (monomial.IsConst()) return factors;
  if (monomial.op() == SymOp::Mul) {
    for (const SymExpr& arg : monomial.args()) add(arg);
  } else {
    add(monomial);
  }
  return factors;
}

static SymExpr FromFactors(const std::vector<Factor>& factors) {
  std::vector<SymExpr> args;
  for (const Factor& f : factors) args.push_back(f.exponent == 1 ? f.base : MakeNode(SymOp::Pow, SymKind::Int, {f.base, f.exponent}));
  if (args.empty()) return 1;
  return args.size() == 1 ? args[0] : MakeNode(SymOp::Mul, SymKind::Int, args);
}

// a * b ** sign, where a negative sign asks for an exact quotient of monomials.
static std::optional<SymExpr> MultiplyMonomials(SymExpr a, SymExpr b, int sign) {
  if (b.IsConst()) return a;
  if (a.IsConst() && sign > 0) return b;
  std::vector<Factor> x = FactorsOf(a), y = FactorsOf(b), out;
  size_t i = 0, j = 0;
  while (i < x.size() || j < y.size()) {
    int order = i == x.size() ? 1 : j == y.size() ? -1 : Compare(x[i].base, y[j].base);
    Factor factor = order <= 0 ? x[i++] : Factor{y[j].base, 0};
    if (order >= 0) {
      if (__builtin_add_overflow(factor.exponent, sign * y[j].exponent, &factor.exponent)) return std::nullopt;
      ++j;
    }
    if (factor.exponent < 0) return std::nullopt;
    if (factor.exponent > 0) out.push_back(factor);
  }
  return FromFactors(out);
}

// Degree downwards, then factors: an order that multiplication preserves, as TryDivideExactly needs.
static int CompareMonomials(const SymExpr& a, const SymExpr& b) {
  if (a.IsSame(b)) return 0;
  std::vector<Factor> x = FactorsOf(a), y = FactorsOf(b);
  auto degree = [](const std::vector<Factor>& factors) {
    Wide sum = 0;
    for (const Factor& f : factors) sum += f.exponent;
    return sum;
  };
  if (degree(x) != degree(y)) return degree(x) > degree(y) ? -1 : 1;
  for (size_t i = 0; i < x.size() && i < y.size(); ++i) {
    if (int order = Compare(x[i].base, y[i].base)) return order;
    if (x[i].exponent != y[i].exponent) return x[i].exponent > y[i].exponent ? -1 : 1;
  }
  return x.size() < y.size() ? -1 : 1;
}

static Term TermOf(const SymExpr& e) {
  if (e.IsConst()) return {e.Const(), 1};
  if (e.op() != SymOp::Mul || !e.args()[0].IsConst()) return {1, e};
  std::span<const SymExpr> rest = e.args().subspan(1);
  return {e.args()[0].Const(), rest.size() == 1 ? rest[0] : MakeNode(SymOp::Mul, SymKind::Int, rest)};
}

Poly ToPoly(SymExpr e) {
  PT2ONNX_CHECK(e.kind() == SymKind::Int && !e.IsUnknown());
  Poly poly;
  if (e.op() == SymOp::Add) {
    for (const SymExpr& arg : e.args()) poly.push_back(TermOf(arg));
  } else if (!(e.IsConst() && e.Const() == 0)) {
    poly.push_back(TermOf(e));
  }
  return poly;
}

static SymExpr FromTerm(const Term& term) {
  if (term.monomial.IsConst()) return term.coefficient;
  if (term.coefficient == 1) return term.monomial;
  std::vector<SymExpr> args{term.coefficient};
  if (term.monomial.op() == SymOp::Mul) {
    args.insert(args.end(), term.monomial.args().begin(), term.monomial.args().end());
  } else {
    args.push_back(term.monomial);
  }
  return MakeNode(SymOp::Mul, SymKind::Int, args);
}

SymExpr FromPoly(const Poly& poly) {
  if (poly.empty()) return 0;
  if (poly.size() == 1) return FromTerm(poly[0]);
  std::vector<SymExpr> args;
  for (const Term& term : poly) args.push_back(FromTerm(term));
  return MakeNode(SymOp::Add, SymKind::Int, args);
}

std::optional<Poly> AddPoly(const Poly& a, const Poly& b, int64_t times_b) {
  Poly sum;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    int order = i == a.size() ? 1 : j == b.size() ? -1 : CompareMonomials(a[i].monomial, b[j].monomial);
    Term term = order <= 0 ? a[i++] : Term{0, b[j].monomial};
    if (order >= 0) {
      int64_t scaled;
      if (__builtin_mul_overflow(b[j].coefficient, times_b, &scaled)) return std::nullopt;
      if (__builtin_add_overflow(term.coefficient, scaled, &term.coefficient)) return std::nullopt;
      ++j;
    }
    if (term.coefficient != 0) sum.push_back(term);
  }
  return sum;
}

// poly * term; none: overflow.
static std::optional<Poly> Scale(const Poly& poly, const Term& by) {
  Poly out;
  for (const Term& term : poly) {
    int64_t coefficient;
    auto monomial = MultiplyMonomials(term.monomial, by.monomial, 1);
    if (!monomial || __builtin_mul_overflow(term.coefficient, by.coefficient, &coefficient)) return std::nullopt;
    if (coefficient != 0) out.push_back({coefficient, *monomial});
  }
  std::ranges::sort(out, [](const Term& a, const Term& b) { return CompareMonomials(a.monomial, b.monomial) < 0; });
  return out;
}

int64_t ConstantOf(const Poly& poly) { return !poly.empty() && poly.back().monomial.IsConst() ? poly.back().coefficient : 0; }

int64_t ContentOf(const Poly& poly) {
  int64_t content = 0;
  for (const Term& term : poly) {
    if (term.coefficient == INT64_MIN) return 1;
    if (!term.monomial.IsConst()) content = std::gcd(content, term.coefficient);
  }
  return content;
}

// terms // c and terms % c, for c > 1. Both split every coefficient into a multiple of c and a rest in [0, c).
static SymExpr FloorDivConst(const Poly& poly, int64_t c) {
  Poly quotient, rest;
  for (const Term& term : poly) {
    if (int64_t q = FloorDivInt(term.coefficient, c)) quotient.push_back({q, term.monomial});
    if (int64_t r = FloorModInt(term.coefficient, c)) rest.push_back({r, term.monomial});
  }
  // k*(x % b) = k*x - k*b*(x//b): with c | k*b the second part comes out. Done where it makes the rest shorter: (s0 - s0%4)//4 = s0//4.
  for (const Term& term : rest) {
    if (term.monomial.op() != SymOp::Mod || !IsPositiveConst(term.monomial.args()[1])) continue;
    SymExpr x = term.monomial.args()[0];
    int64_t b = term.monomial.args()[1].Const(), k = term.coefficient - c, multiple;  // k = -1 rather than c - 1
    if (__builtin_mul_overflow(k, b, &multiple) || multiple % c != 0) continue;
    SymExpr shorter = FromPoly(rest) + k * x - term.coefficient * term.monomial;
    if (shorter.IsUnknown() || ToPoly(shorter).size() >= rest.size()) continue;
    return FromPoly(quotient) + term.monomial - (multiple / c) * FloorDiv(x, b) + FloorDiv(shorter, c);
  }
  int64_t r = ConstantOf(rest), g = std::gcd(ContentOf(rest), c);
  if (g == c) return FromPoly(quotient);  // no rest but the constant
  if (g > 1) {
    // (g*p + r) // (g*c) = (p + r//g) // c
    for (Term& term : rest) term.coefficient /= g;
    std::erase_if(rest, [](const Term& term) { return term.coefficient == 0; });
    r /= g;
    c /= g;
  }
  SymExpr inner = FromPoly(rest), outer = FromPoly(quotient);
  if (rest.size() <= 2 && rest[0].coefficient == 1 && rest[0].monomial.op() == SymOp::FloorDiv && (rest.size() == 1 || rest[1].monomial.IsConst()) &&
      IsPositiveConst(rest[0].monomial.args()[1])) {
    int64_t b = rest[0].monomial.args()[1].Const(), bc, br;
    if (!__builtin_mul_overflow(b, c, &bc) && !__builtin_mul_overflow(b, r, &br)) return outer + FloorDiv(rest[0].monomial.args()[0] + br, bc);
  }
  if (Interval in = IntervalOf(inner, false); in.lo > -kInfinity && in.hi < kInfinity) {
    int64_t lo = FloorDivInt(static_cast<int64_t>(in.lo), c), hi = FloorDivInt(static_cast<int64_t>(in.hi), c);
    if (lo == hi) return outer + lo;
  }
  return outer + MakeNode(SymOp::FloorDiv, SymKind::Int, {inner, c});
}

static SymExpr ModConst(const Poly& poly, int64_t c) {
  Poly rest;
  for (const Term& term : poly) {
    int64_t r = FloorModInt(term.coefficient, c), multiple;
    if (r == 0) continue;
    if (term.monomial.op() == SymOp::Mod && IsPositiveConst(term.monomial.args()[1]) &&
        !__builtin_mul_overflow(r, term.monomial.args()[1].Const(), &multiple) && multiple % c == 0) {
      return Mod(FromPoly(poly) + term.coefficient * (term.monomial.args()[0] - term.monomial), c);
    }
    rest.push_back({r, term.monomial});
  }
  int64_t r = ConstantOf(rest), g = std::gcd(ContentOf(rest), c);
  if (g == c) return r;
  if (g > 1) {
    // (g*p + r) % (g*c) = g * ((p + r//g) % c) + r % g
    for (Term& term : rest) term.coefficient /= g;
    std::erase_if(rest, [](const Term& term) { return term.coefficient == 0; });
    return g * Mod(FromPoly(rest), c / g) + r % g;
  }
  SymExpr inner = FromPoly(rest);
  if (Interval in = IntervalOf(inner, false); in.lo > -kInfinity && in.hi < kInfinity) {
    int64_t lo = FloorDivInt(static_cast<int64_t>(in.lo), c), hi = FloorDivInt(static_cast<int64_t>(in.hi), c);
    if (lo == hi) return inner - SymExpr(lo) * c;
  }
  return MakeNode(SymOp::Mod, SymKind::Int, {inner, c});
}

// Divides a and b by their common integer and monomial factor and gives that factor.
static SymExpr RemoveCommonFactor(Poly& a, Poly& b) {
  int64_t g = 0;
  for (const Poly* poly : {&a, &b}) {
    for (const Term& term : *poly) g = term.coefficient == INT64_MIN ? 1 : std::gcd(g, term.coefficient);
  }
  std::vector<Factor> common = FactorsOf(b[0].monomial);
  for (const Poly* poly : {&a, &b}) {
    for (const Term& term : *poly) {
      std::vector<Factor> factors = FactorsOf(term.monomial);
      for (Factor& f : common) {
        auto same = std::ranges::find_if(factors, [&](const Factor& other) { return other.base == f.base; });
        f.exponent = std::min(f.exponent, same == factors.end() ? 0 : same->exponent);
      }
      std::erase_if(common, [](const Factor& f) { return f.exponent == 0; });
    }
  }
  if (g <= 1 && common.empty()) return 1;
  SymExpr monomial = FromFactors(common);
  for (Poly* poly : {&a, &b}) {
    for (Term& term : *poly) term = {term.coefficient / g, *MultiplyMonomials(term.monomial, monomial, -1)};
  }
  return g * monomial;
}

static std::optional<Term> DivideTerms(const Term& a, const Term& b) {
  if (b.coefficient == -1 ? a.coefficient == INT64_MIN : a.coefficient % b.coefficient != 0) return std::nullopt;
  auto monomial = MultiplyMonomials(a.monomial, b.monomial, -1);
  if (!monomial) return std::nullopt;
  return Term{a.coefficient / b.coefficient, *monomial};
}

// FloorDiv (or Mod) by an expression: common factors cancel, terms that the divisor divides come out.
static SymExpr DivideBySymbolic(SymOp op, SymExpr a, SymExpr b) {
  bool is_mod = op == SymOp::Mod;
  Poly x = ToPoly(a), y = ToPoly(b);
  if (x.empty()) return 0;
  if (y[0].coefficient < 0) return is_mod ? -Mod(-a, -b) : FloorDiv(-a, -b);
  if (auto exact = TryDivideExactly(a, b)) return is_mod ? 0 : *exact;
  if (SymExpr common = RemoveCommonFactor(x, y); !common.IsSame(1)) {
    return is_mod ? common * Mod(FromPoly(x), FromPoly(y)) : FloorDiv(FromPoly(x), FromPoly(y));
  }
  Poly quotient, rest = x;
  if (y.size() == 1) {
    rest.clear();
    for (const Term& term : x) {
      auto q = DivideTerms(term, y[0]);
      q ? quotient.push_back(*q) : rest.push_back(term);
    }
  }
  SymExpr node = MakeNode(op, SymKind::Int, {FromPoly(rest), b});
  return is_mod ? node : FromPoly(quotient) + node;
}

}  // namespace sym

using namespace sym;

SymExpr operator+(SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  a = AsNumber(a), b = AsNumber(b);
  if (a.kind() == SymKind::Float || b.kind() == SymKind::Float) return FloatBinary(SymOp::Add, ToFloat(a), ToFloat(b));
  if (a.IsConst() && b.IsConst()) {
    int64_t sum;
    return __builtin_add_overflow(a.Const(), b.Const(), &sum) ? SymExpr::Unknown() : sum;
  }
  if (a.IsConst() && a.Const() == 0) return b;
  if (b.IsConst() && b.Const() == 0) return a;
  auto sum = AddPoly(ToPoly(a), ToPoly(b));
  return sum ? FromPoly(*sum) : SymExpr::Unknown();
}

SymExpr operator-(SymExpr a) { return -1 * a; }
SymExpr operator-(SymExpr a, SymExpr b) {
  if (a.IsConst() && b.IsConst()) {
    int64_t difference;
    return __builtin_sub_overflow(a.Const(), b.Const(), &difference) ? SymExpr::Unknown() : difference;
  }
  return a + -b;
}

SymExpr operator*(SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  a = AsNumber(a), b = AsNumber(b);
  if (a.kind() == SymKind::Float || b.kind() == SymKind::Float) return FloatBinary(SymOp::Mul, ToFloat(a), ToFloat(b));
  if (a.IsConst() && b.IsConst()) {
    int64_t product;
    return __builtin_mul_overflow(a.Const(), b.Const(), &product) ? SymExpr::Unknown() : product;
  }
  Poly x = ToPoly(a), y = ToPoly(b);
  if (x.size() < y.size()) std::swap(x, y);
  if (y.size() > 1 && x.size() * y.size() > kMaxTerms) {
    auto monomial = MultiplyMonomials(a, b, 1);
    return monomial ? *monomial : SymExpr::Unknown();
  }
  std::optional<Poly> sum = Poly();
  for (const Term& term : y) {
    auto scaled = Scale(x, term);
    if (scaled) sum = AddPoly(*sum, *scaled);
    if (!scaled || !sum) return SymExpr::Unknown();
  }
  return FromPoly(*sum);
}

SymExpr Pow(SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  a = AsNumber(a), b = AsNumber(b);
  if (a.kind() == SymKind::Float || b.kind() == SymKind::Float) return FloatBinary(SymOp::FloatPow, ToFloat(a), ToFloat(b));
  if (!b.IsConst()) return a.IsSame(1) ? SymExpr(1) : MakeNode(SymOp::Pow, SymKind::Int, {a, b});
  int64_t n = b.Const();
  if (n < 0) return SymExpr::Unknown();
  if (n == 0) return 1;
  if (a.IsSame(0) || a.IsSame(1)) return a;
  if (a.IsSame(-1)) return n % 2 ? -1 : 1;
  Poly poly = ToPoly(a);
  if (poly.size() == 1 && !poly[0].monomial.IsConst()) {
    std::vector<Factor> factors = FactorsOf(poly[0].monomial);
    for (Factor& f : factors) {
      if (__builtin_mul_overflow(f.exponent, n, &f.exponent)) return SymExpr::Unknown();
    }
    return Pow(poly[0].coefficient, n) * FromFactors(factors);
  }
  // A sum of k terms has C(k + n - 1, n) terms in its n-th power.
  Wide terms = 1;
  for (size_t i = 1; i < poly.size() && terms <= static_cast<Wide>(kMaxTerms); ++i) terms = terms * (n + static_cast<Wide>(i)) / static_cast<Wide>(i);
  if (poly.size() > 1 && terms > static_cast<Wide>(kMaxTerms)) return MakeNode(SymOp::Pow, SymKind::Int, {a, b});
  SymExpr power = 1;
  for (int64_t i = 0; i < n && !power.IsUnknown(); ++i) power *= a;
  return power;
}

SymExpr FloorDiv(SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  a = AsNumber(a), b = AsNumber(b);
  if (a.kind() == SymKind::Float || b.kind() == SymKind::Float) return SymExpr::Unknown();
  if (!b.IsConst()) return DivideBySymbolic(SymOp::FloorDiv, a, b);
  int64_t c = b.Const();
  if (c == 0 || c == INT64_MIN) return SymExpr::Unknown();
  if (c < 0) return FloorDiv(-a, -c);
  if (a.IsConst()) return FloorDivInt(a.Const(), c);
  return c == 1 ? a : FloorDivConst(ToPoly(a), c);
}

SymExpr Mod(SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b})) return SymExpr::Unknown();
  a = AsNumber(a), b = AsNumber(b);
  if (a.kind() == SymKind::Float || b.kind() == SymKind::Float) return SymExpr::Unknown();
  if (!b.IsConst()) return DivideBySymbolic(SymOp::Mod, a, b);
  int64_t c = b.Const();
  if (c == 0 || c == INT64_MIN) return SymExpr::Unknown();
  if (c < 0) return -Mod(-a, -c);
  if (a.IsConst()) return FloorModInt(a.Const(), c);
  return c == 1 ? 0 : ModConst(ToPoly(a), c);
}

SymExpr CeilDiv(SymExpr a, SymExpr b) {
  // For a constant the form that PyTorch records: (a + b - 1) // b.
  if (b.IsConst() && b.Const() > 0 && a.kind() == SymKind::Int) return FloorDiv(a + (b - 1), b);
  return -FloorDiv(-a, b);
}

// Polynomial long division; both orders agree, so the leading terms must divide each other.
std::optional<SymExpr> TryDivideExactly(SymExpr a, SymExpr b) {
  if (AnyUnknown({a, b}) || a.kind() != SymKind::Int || b.kind() != SymKind::Int) return std::nullopt;
  Poly rest = ToPoly(a), divisor = ToPoly(b), quotient;
  if (divisor.empty()) return std::nullopt;
  while (!rest.empty()) {
    auto term = DivideTerms(rest[0], divisor[0]);
    if (!term || quotient.size() >= kMaxTerms) return std::nullopt;
    quotient.push_back(*term);
    auto product = Scale(divisor, *term);
    auto next = product ? AddPoly(rest, *product, -1) : std::nullopt;
    if (!next) return std::nullopt;
    rest = std::move(*next);
  }
  return FromPoly(quotient);
}

}  // namespace pt2onnx
