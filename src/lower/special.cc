// Special functions: error functions, the gamma function's family, incomplete gamma functions. Computed in float64 where digits would be lost,
// and rounded at the end. Sums over k stand along one more axis, the last, so that they are one reduction.
//
//   psi(x) = psi(x + 8) - 1/x - 1/(x + 1) - ... - 1/(x + 7), and the asymptotic series from 8 on
#include "lower/special.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace pt2onnx {
namespace {

using std::numbers::pi;
using std::numbers::sqrt2;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kShift = 8;
// B(2j) of the Bernoulli numbers, from j = 1.
constexpr double kBernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6, -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};

// ---- Error functions ----------------------------------------------------------------------------------------------------------------

Val ErfRule(Onnx& b, Val x) { return Erf(b, Wide(b, x)); }
Val ErfcRule(Onnx& b, Val x) { return Erfc(b, Wide(b, x)); }
Val ErfcxRule(Onnx& b, Val x) { return Erfcx(b, Wide(b, x)); }

// y with erfc(y) = c, for 0 <= c <= 1. Winitzki's formula to 2e-3, then Newton's method on log erfc(y) = log erfcx(y) - y^2, whose slope is -2 / (sqrt(pi) erfcx(y)).
Val ErfcInv(Onnx& b, Val c) {
  constexpr double a = 0.147;
  const Val l = b.Log(c * (2.0 - c)), half = l * 0.5 + 2 / (pi * a), wanted = b.Log(c);
  Val y = b.Sqrt(b.Sqrt(half * half - l / a) - half);
  for (int i = 0; i < 2; ++i) {
    const Val e = Erfcx(b, y);
    y = y + (b.Log(e) - y * y - wanted) * e * (std::sqrt(pi) / 2);
  }
  return b.Where(b.Equal(c, Like(c, 0.0)), Like(c, kInf), y);
}
// sign(x) erfcinv(1 - |x|)
Val ErfInv(Onnx& b, Val x) {
  x = Double(b, x);
  return b.Sign(x) * ErfcInv(b, 1.0 - b.Abs(x));
}
// The normal distribution: erfc(-x / sqrt 2) / 2
Val Ndtr(Onnx& b, Val x) { return Erfc(b, Wide(b, x) * (-1 / sqrt2)) * 0.5; }
// Its inverse, from the nearer tail.
Val Ndtri(Onnx& b, Val p) {
  p = Double(b, p);
  const Val upper = b.Greater(p, Like(p, 0.5));
  const Val y = ErfcInv(b, b.Where(upper, 1.0 - p, p) * 2.0) * sqrt2;
  return b.Where(upper, y, b.Neg(y));
}
// x < -1: log(erfcx(-x / sqrt 2) / 2) - x^2 / 2; else log(1 - erfc(x / sqrt 2) / 2)
Val LogNdtr(Onnx& b, Val x) {
  x = Wide(b, x);
  const Val t = x / sqrt2;
  const Val left = b.Log(Erfcx(b, b.Neg(t)) * 0.5) - t * t;
  return b.Where(b.Less(x, Like(x, -1.0)), left, Log1p(b, Erfc(b, t) * -0.5));
}
// -x log x; 0 at 0, -inf below
Val Entr(Onnx& b, Val x) {
  x = Wide(b, x);
  const Val zero = Like(x, 0.0);
  const Val at_most_0 = b.Where(b.Less(x, zero), Like(x, -kInf), b.Neg(x) * b.Log(x));
  return b.Where(b.Equal(x, zero), zero, at_most_0);
}

// ---- Gamma and its derivatives ------------------------------------------------------------------------------------------------------

// The fractional part, 0 at whole numbers: sin(pi x) is exact there.
Val Fraction(Onnx& b, Val x) { return x - b.Floor(x); }

// B2/z + ... : c[j] z^-(2j + 1), c[j] for j >= 0
Val OddInverse(Val z, std::span<const double> c) {
  const Val inverse = 1.0 / z;
  return Polynomial(inverse * inverse, c) * inverse;
}

// What is added up to reach the range of an asymptotic series: x < 8 moves up by 8.
struct Shifted {
  Val small, z;
};
Shifted ShiftUp(Onnx& b, Val x) {
  const Val small = b.Less(x, Like(x, static_cast<double>(kShift)));
  return {small, b.Where(small, x + static_cast<double>(kShift), x)};
}

// log|Gamma(x)|: Stirling's series (z - 1/2)(log z - 1) + (log 2pi - 1)/2 + sum B2j / (2j (2j - 1) z^(2j - 1)), less log of x (x + 1) ... (x + 7)
// below 8; below 1/2 log(pi / |sin pi x|) - log Gamma(1 - x).
Val LogGamma(Onnx& b, Val v) {
  const Val mirror = b.Less(v, Like(v, 0.5));
  const Val x = b.Where(mirror, 1.0 - v, v);
  const auto [small, z] = ShiftUp(b, x);
  std::vector<double> c;
  for (int j = 1; j <= 8; ++j) c.push_back(kBernoulli[j - 1] / (2 * j * (2 * j - 1)));
  const Val stirling = (z - 0.5) * (b.Log(z) - 1.0) + (std::log(2 * pi) - 1) / 2 + OddInverse(z, c);
  const Val y = stirling - b.Where(small, b.Log(b.ReduceProd(AlongLast(b, x) + Steps(b, kShift), {-1})), Like(x, 0.0));
  const Val mirrored = b.Log(Like(v, pi) / b.Abs(b.Sin(Fraction(b, v) * pi))) - y;
  return b.Where(b.IsInf(v), Like(v, kInf), b.Where(mirror, mirrored, y));
}

// psi(x): log z - 1/(2z) - sum B2j / (2j z^2j), moved up from below 8; below 1/2 psi(1 - x) - pi / tan(pi x). At 0: -1/0 with its sign; at -1, -2, ...: NaN.
Val Digamma(Onnx& b, Val v) {
  const Val mirror = b.Less(v, Like(v, 0.5)), zero = Like(v, 0.0);
  const Val x = b.Where(mirror, 1.0 - v, v);
  const auto [small, z] = ShiftUp(b, x);
  std::vector<double> c;
  for (int j = 1; j <= 8; ++j) c.push_back(kBernoulli[j - 1] / (2 * j));
  const Val series = b.Log(z) - 0.5 / z - OddInverse(z, c) / z;
  const Val y = series - b.Where(small, b.ReduceSum(b.Reciprocal(AlongLast(b, x) + Steps(b, kShift)), {-1}), zero);
  const Val fraction = Fraction(b, v), angle = fraction * pi;
  const Val mirrored = y - b.Cos(angle) / b.Sin(angle) * pi;
  const Val whole = b.And(mirror, b.Equal(fraction, zero));
  const Val pole = b.Where(b.Equal(v, zero), b.Neg(b.Reciprocal(v)), Like(v, kNaN));
  return b.Where(whole, pole, b.Where(mirror, mirrored, y));
}

// zeta(s, q) = sum over k >= 0 of (q + k)^-s, by Euler and Maclaurin: n terms, then with a = q + n
//   a^(1-s) / (s - 1) + a^-s / 2 + sum over j of B2j / (2j)! s (s + 1) ... (s + 2j - 2) a^(-s - 2j + 1)
// n is such that every a is 10 or more; 10 unless some q are negative.
Val Zeta(Onnx& b, Val s, Val q) {
  const Val lowest = b.ReduceMin(b.Concat({b.Flatten1D(q), b.Tensor({1}, {0.0}, DType::F64)}, 0), {0});
  const Val terms = b.Clip(b.Cast(b.Ceil(10.0 - lowest), DType::I64), b.IntScalar(10), b.IntScalar(10000));
  const Val steps = b.Cast(b.OnnxOps::Range(b.IntScalar(0), terms, b.IntScalar(1)), DType::F64);
  const Val head = b.ReduceSum(b.Pow(AlongLast(b, q) + steps, b.Neg(AlongLast(b, s))), {-1});
  const Val a = q + b.Cast(terms, DType::F64), power = b.Pow(a, b.Neg(s)), inverse = b.Reciprocal(a * a);
  Val y = head + b.Pow(a, 1.0 - s) / (s - 1.0) + power * 0.5;
  Val rising = s * power / a;  // s (s + 1) ... (s + 2j - 2) a^(-s - 2j + 1)
  double factorial = 2;        // (2j)!
  for (int j = 1; j <= 10; ++j) {
    y = y + rising * (kBernoulli[j - 1] / factorial);
    if (j == 10) break;
    rising = rising * (s + (2.0 * j - 1)) * (s + 2.0 * j) * inverse;
    factorial *= (2 * j + 1) * (2 * j + 2);
  }
  const Val zero = Like(q, 0.0), one = Like(s, 1.0);
  const Val pole = b.Or(b.And(b.LessOrEqual(q, zero), b.Equal(q, b.Floor(q))), b.Equal(s, one));
  return b.Where(b.Less(s, one), Like(s, kNaN), b.Where(pole, Like(q, kInf), y));
}

// The n-th derivative of psi: (-1)^(n + 1) n! zeta(n + 1, x)
Val Polygamma(Onnx& b, int64_t n, Val x) {
  x = Double(b, x);
  if (n == 0) return Digamma(b, x);
  const double factor = std::tgamma(static_cast<double>(n + 1)) * (n % 2 ? 1 : -1);
  return Zeta(b, Like(x, static_cast<double>(n + 1)), x) * factor;
}

// p (p - 1) / 4 log pi + sum over j < p of log Gamma(x - j / 2)
Val MultivariateLogGamma(Onnx& b, const aten::mvlgamma& op) {
  const double p = static_cast<double>(op.p);
  const Val x = AlongLast(b, Double(b, op.self)) - Steps(b, op.p) * 0.5;
  return b.ReduceSum(LogGamma(b, x), {-1}) + p * (p - 1) / 4 * std::log(pi);
}

Val LogGammaRule(Onnx& b, Val x) { return LogGamma(b, Double(b, x)); }
Val DigammaRule(Onnx& b, Val x) { return Digamma(b, Double(b, x)); }
Val ZetaRule(Onnx& b, Val s, Val q) { return Zeta(b, Double(b, s), Double(b, q)); }

// ---- Incomplete gamma functions -----------------------------------------------------------------------------------------------------

// Nodes and weights of Gauss and Legendre on [0, 1]: roots of the Legendre polynomial by Newton's method.
void GaussLegendre(int n, std::vector<double>& nodes, std::vector<double>& weights) {
  for (int i = 0; i < n; ++i) {
    double x = std::cos(pi * (i + 0.75) / (n + 0.5)), slope = 0;
    for (int step = 0; step < 50; ++step) {
      double p = 1, before = 0;
      for (int k = 1; k <= n; ++k) {
        const double next = ((2 * k - 1) * x * p - (k - 1) * before) / k;
        before = p;
        p = next;
      }
      slope = n * (x * p - before) / (x * x - 1);
      const double move = p / slope;
      x -= move;
      if (std::fabs(move) < 1e-16) break;
    }
    nodes.push_back((1 - x) / 2);
    weights.push_back(1 / ((1 - x * x) * slope * slope));
  }
}

// P(a, x) = (integral from 0 to x of t^(a-1) e^-t) / Gamma(a), and Q = 1 - P.
//   x < 100: the series x^a e^-x / Gamma(a + 1) sum of x^k / ((a + 1) ... (a + k)), 200 terms, all positive
//   else:    the integral from x out to where nothing is left, away from the peak at a - 1, by 48 points: Q if x is above the peak, else P
struct IncompleteGamma {
  Val p, q;
};
IncompleteGamma Incomplete(Onnx& b, Val a, Val x) {
  constexpr int kTerms = 200, kPoints = 48;
  const Val zero = Like(x, 0.0), gamma = LogGamma(b, a);
  const Val ratios = b.Log(AlongLast(b, x) / (AlongLast(b, a) + (Steps(b, kTerms) + 1.0)));
  const Val terms = b.Exp(b.CumSum(ratios, b.IntScalar(-1), {.exclusive = 1}));
  const Val series = b.Exp(a * b.Log(x) - x - gamma - b.Log(a)) * b.ReduceSum(terms, {-1});

  std::vector<double> nodes, weights;
  GaussLegendre(kPoints, nodes, weights);
  const Val peak = a - 1.0, width = b.Sqrt(b.Max(peak, Like(a, 64.0)));
  const Val above = b.Greater(x, peak);
  const Val far = b.Where(above, b.Max(peak + width * 11.5, x + width * 6.0), b.Max(zero, b.Min(peak - width * 7.5, x - width * 5.0)));
  const Val span = far - x;
  const Val t = AlongLast(b, x) + AlongLast(b, span) * b.Tensor({kPoints}, nodes, DType::F64);
  const Val density = b.Exp(AlongLast(b, peak) * b.Log(t) - t - AlongLast(b, gamma));
  const Val area = b.Abs(span * b.ReduceSum(density * b.Tensor({kPoints}, weights, DType::F64), {-1}));

  const Val near = b.Less(x, Like(x, 100.0));
  return {b.Where(near, series, b.Where(above, 1.0 - area, area)), b.Where(near, 1.0 - series, b.Where(above, area, 1.0 - area))};
}

// The edges: x = 0 or a = inf: P = 0; a = 0 or x = inf: P = 1; both, or less than 0: NaN.
Val RegularizedGamma(Onnx& b, Val a, Val x, bool upper) {
  a = Double(b, a), x = Double(b, x);
  const auto [p, q] = Incomplete(b, a, x);
  const Val zero = Like(x, 0.0), inf = Like(x, kInf);
  const Val nothing = b.Or(b.Equal(x, zero), b.Equal(a, inf)), all = b.Or(b.Equal(a, zero), b.Equal(x, inf));
  const Val bad = b.Or(b.And(nothing, all), b.Or(b.Less(a, zero), b.Less(x, zero)));
  const Val y = b.Where(nothing, Like(x, upper ? 1.0 : 0.0), b.Where(all, Like(x, upper ? 0.0 : 1.0), upper ? q : p));
  return b.Where(bad, Like(x, kNaN), y);
}
Val LowerGamma(Onnx& b, Val a, Val x) { return RegularizedGamma(b, a, x, false); }
Val UpperGamma(Onnx& b, Val a, Val x) { return RegularizedGamma(b, a, x, true); }

}  // namespace

Val AlongLast(Onnx& b, Val x) { return b.Unsqueeze(x, {-1}); }

Val Steps(Onnx& b, int64_t n) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(static_cast<double>(i));
  return b.Tensor({n}, values, DType::F64);
}

void SpecialRules(Rules<Onnx>& r) {
  UseAll<ErfRule, aten::erf, prims::erf>(r);
  UseAll<ErfcRule, aten::erfc, prims::erfc>(r);
  UseAll<ErfcxRule, aten::special_erfcx, prims::erfcx>(r);
  UseAll<ErfInv, aten::erfinv, prims::erf_inv>(r);
  Use<aten::special_ndtr, Ndtr>(r);
  UseAll<Ndtri, aten::special_ndtri, prims::ndtri>(r);
  Use<aten::special_log_ndtr, LogNdtr>(r);
  Use<aten::special_entr, Entr>(r);

  UseAll<LogGammaRule, aten::lgamma, prims::lgamma>(r);
  UseAll<DigammaRule, aten::digamma, prims::digamma>(r);
  r.On([](Onnx& b, const aten::polygamma& op) { return Polygamma(b, op.n, op.self); });
  r.On<MultivariateLogGamma>();
  UseAll<ZetaRule, aten::special_zeta, prims::zeta>(r);
  OfScalar<ZetaRule, aten::special_zeta_other_scalar>(r);
  ScalarFirst<ZetaRule, aten::special_zeta_self_scalar>(r);
  UseAll<LowerGamma, aten::igamma, prims::igamma>(r);
  UseAll<UpperGamma, aten::igammac, prims::igammac>(r);
}

}  // namespace pt2onnx
