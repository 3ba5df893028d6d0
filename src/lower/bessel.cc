// Bessel functions, modified ones, and Airy's, in float64: the power series near 0, and far out the asymptotic one.
//
//   J0(x) = sum of (-x^2 / 4)^k / k!^2                                                    |x| < 12
//   J0(x) = sqrt(2 / (pi x)) (P cos(x - pi/4) - Q sin(x - pi/4)), P and Q series in 1/x    beyond
#include <cmath>
#include <limits>
#include <numbers>

#include "lower/special.h"

namespace pt2onnx {
namespace {

using std::numbers::pi;
using Coefficients = std::vector<double>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kEuler = std::numbers::egamma;
constexpr double kSwitch = 12;   // the smallest asymptotic term there is e^-24
constexpr int kSeries = 48;      // terms of a power series
constexpr int kAsymptotic = 24;  // terms of an asymptotic series: after that they grow at kSwitch

// sign^k / (k! (k + order)!): what J (sign -1) and I (sign 1) are of x^2/4, but for (x/2)^order.
Coefficients PowerSeries(int order, int sign) {
  Coefficients c;
  double term = 1.0 / std::tgamma(order + 1.0);
  for (int k = 0; k < kSeries; ++k) {
    c.push_back(term);
    term *= sign / ((k + 1.0) * (k + 1.0 + order));
  }
  return c;
}
// a(k) = (4v^2 - 1)(4v^2 - 9) ... (4v^2 - (2k - 1)^2) / (k! 8^k)
Coefficients HankelSeries(double order) {
  Coefficients c = {1};
  for (int k = 1; k < kAsymptotic; ++k) c.push_back(c.back() * (4 * order * order - (2 * k - 1) * (2 * k - 1)) / (8.0 * k));
  return c;
}

// Amplitude and phase of J and Y far out: J = scale (P cos - Q sin), Y = scale (P sin + Q cos), of x - (v/2 + 1/4) pi.
struct Wave {
  Val p, q, sine, cosine, scale;
  Val J() const { return scale * (p * cosine - q * sine); }
  Val Y() const { return scale * (p * sine + q * cosine); }
};
Wave FarOut(Onnx& b, Val x, double order) {
  const Coefficients a = HankelSeries(order);
  Coefficients even, odd;
  for (size_t k = 0; k < a.size(); ++k) (k % 2 ? odd : even).push_back(k % 4 < 2 ? a[k] : -a[k]);
  const Val inverse = 1.0 / b.Max(x, Like(x, kSwitch)), square = inverse * inverse;
  const Val phase = x - (order / 2 + 0.25) * pi;
  return {Polynomial(square, even), Polynomial(square, odd) * inverse, b.Sin(phase), b.Cos(phase), b.Sqrt(inverse * (2 / pi))};
}

// Of |x|: J0, and J1 = sign(x) J1(|x|). Infinity: NaN, as PyTorch has it.
Val SeriesJ(Onnx& b, Val x, int order) {
  const Val near = b.Min(x, Like(x, kSwitch));
  const Val y = Polynomial(near * near * 0.25, PowerSeries(order, -1));
  return order == 0 ? y : y * near * 0.5;
}
Val BesselJ(Onnx& b, Val v, int order) {
  v = Double(b, v);
  const Val x = b.Abs(v);
  const Val y = b.Where(b.Less(x, Like(x, kSwitch)), SeriesJ(b, x, order), FarOut(b, x, order).J());
  return order == 0 ? y : y * b.Sign(v);
}
Val J0(Onnx& b, Val x) { return BesselJ(b, x, 0); }
Val J1(Onnx& b, Val x) { return BesselJ(b, x, 1); }

// Y0 = 2/pi ((log(x/2) + g) J0 - sum of (-1)^k H(k) (x/2)^2k / k!^2), g Euler's constant, H(k) = 1 + 1/2 + ... + 1/k
// Y1 = 2/pi (log(x/2) J1 - 1/x) - 1/pi sum of (-1)^k (psi(k + 1) + psi(k + 2)) (x/2)^(2k + 1) / (k! (k + 1)!)
// At 0: -inf; below: NaN.
Val BesselY(Onnx& b, Val x, int order) {
  x = Double(b, x);
  const Val near = b.Min(x, Like(x, kSwitch)), half = near * 0.5, log = b.Log(half);
  Coefficients c = PowerSeries(order, -1);
  double harmonic = 0;
  for (int k = 0; k < kSeries; ++k) {
    const double next = harmonic + 1.0 / (k + 1);
    c[static_cast<size_t>(k)] *= order == 0 ? harmonic : (harmonic + next - 2 * kEuler) / 2;
    harmonic = next;
  }
  const Val rest = Polynomial(half * half, c);
  const Val close = order == 0 ? ((log + kEuler) * SeriesJ(b, near, 0) - rest) * (2 / pi)
                               : (log * SeriesJ(b, near, 1) - 1.0 / near - rest * half) * (2 / pi);
  const Val y = b.Where(b.Less(x, Like(x, kSwitch)), close, FarOut(b, x, order).Y());
  return b.Where(b.Equal(x, Like(x, 0.0)), Like(x, -kInf), y);
}
Val Y0(Onnx& b, Val x) { return BesselY(b, x, 0); }
Val Y1(Onnx& b, Val x) { return BesselY(b, x, 1); }

// e^-|x| I(x): e^-x times the power series, all terms positive; beyond 20: sum of (-1)^k a(k) / x^k / sqrt(2 pi x).
Val ScaledI(Onnx& b, Val v, int order) {
  constexpr double kFar = 20;
  const Val x = b.Abs(v), near = b.Min(x, Like(x, kFar)), far = b.Max(x, Like(x, kFar));
  Val close = Polynomial(near * near * 0.25, PowerSeries(order, 1)) * b.Exp(b.Neg(near));
  if (order == 1) close = close * near * 0.5;
  Coefficients a = HankelSeries(order);
  for (size_t k = 1; k < a.size(); k += 2) a[k] = -a[k];
  const Val distant = Polynomial(1.0 / far, a) / b.Sqrt(far * (2 * pi));
  const Val y = b.Where(b.Less(x, Like(x, kFar)), close, distant);
  return order == 0 ? y : y * b.Sign(v);
}
Val I0e(Onnx& b, Val x) { return ScaledI(b, Double(b, x), 0); }
Val I1e(Onnx& b, Val x) { return ScaledI(b, Double(b, x), 1); }
Val I0(Onnx& b, Val x) { return I0e(b, x) * b.Exp(b.Abs(Double(b, x))); }
Val I1(Onnx& b, Val x) { return I1e(b, x) * b.Exp(b.Abs(Double(b, x))); }

// e^x K_v(x) = integral over t >= 0 of exp(-x (cosh t - 1)) cosh(v t), with t = u / sqrt x, by the trapezoidal rule, whose error is far below
// float64's for x >= 2: the integrand is analytic and falls off like a Gaussian. x (cosh t - 1) = 2 (sqrt x sinh(t / 2))^2.
Val ScaledKFar(Onnx& b, Val x, double order) {
  constexpr double kStep = 0.35;
  constexpr int kPoints = 28;
  x = b.Clip(x, Like(x, 2.0), Like(x, 1e300));
  const Val root = AlongLast(b, b.Sqrt(x)), t = Steps(b, kPoints) * kStep / root, s = root * Sinh(b, t * 0.5);
  Coefficients weights(kPoints, kStep);
  weights[0] = kStep / 2;
  Val y = b.Exp(s * s * -2.0) * b.Tensor({kPoints}, weights, DType::F64);
  if (order != 0) y = y * Cosh(b, t * order);
  return b.ReduceSum(y / root, {-1});
}
// K0 = -(log(x/2) + g) I0 + sum of H(k) (x/2)^2k / k!^2
// K1 = 1/x + log(x/2) I1 - 1/2 sum of (psi(k + 1) + psi(k + 2)) (x/2)^(2k + 1) / (k! (k + 1)!)
// At 0: inf; below: NaN.
Val BesselK(Onnx& b, Val x, int order, bool scaled) {
  x = Double(b, x);
  const Val two = Like(x, 2.0), near = b.Min(x, two), half = near * 0.5, log = b.Log(half), square = half * half;
  const Coefficients i = PowerSeries(order, 1);
  Coefficients c = i;
  double harmonic = 0;
  for (int k = 0; k < kSeries; ++k) {
    const double next = harmonic + 1.0 / (k + 1);
    c[static_cast<size_t>(k)] *= order == 0 ? harmonic - kEuler : (harmonic + next - 2 * kEuler) / 2;
    harmonic = next;
  }
  constexpr size_t kShort = 16;  // up to 2 so many terms do
  const Val first = Polynomial(square, std::span(i).first(kShort)), rest = Polynomial(square, std::span(c).first(kShort));
  const Val close = order == 0 ? rest - log * first : 1.0 / near + (log * first - rest) * half;
  const Val far = ScaledKFar(b, x, order);
  const Val y = b.Where(b.LessOrEqual(x, two), scaled ? close * b.Exp(x) : close, scaled ? far : far * b.Exp(b.Neg(x)));
  return b.Where(b.Equal(x, Like(x, 0.0)), Like(x, kInf), y);
}
Val K0(Onnx& b, Val x) { return BesselK(b, x, 0, false); }
Val K1(Onnx& b, Val x) { return BesselK(b, x, 1, false); }
Val K0Scaled(Onnx& b, Val x) { return BesselK(b, x, 0, true); }
Val K1Scaled(Onnx& b, Val x) { return BesselK(b, x, 1, true); }

// sin(x) / x; 1 at 0, 0 at infinity
Val SphericalJ0(Onnx& b, Val x) {
  x = Double(b, x);
  const Val y = b.Where(b.Equal(x, Like(x, 0.0)), Like(x, 1.0), b.Sin(x) / x);
  return b.Where(b.IsInf(x), Like(x, 0.0), y);
}

// Ai: between -7 and 2 its power series c1 f(x) - c2 g(x), f = sum of 1 4 7 ... x^3k / (3k)!, g = sum of 2 5 8 ... x^(3k + 1) / (3k + 1)!.
// With z = 2/3 |x|^(3/2): above, sqrt(x / 3) K_1/3(z) / pi; below, (sin(z + pi/4) P - cos(z + pi/4) Q) / (sqrt(pi) |x|^1/4), where P and Q are of
// the coefficients u(k) = u(k - 1) (6k - 5)(6k - 3)(6k - 1) / (216 k (2k - 1)). Infinity: NaN, as PyTorch has it.
Val AiryAi(Onnx& b, Val x) {
  x = Double(b, x);
  const Val low = Like(x, -7.0), high = Like(x, 2.5), near = b.Clip(x, low, high), cube = near * near * near;
  Coefficients f = {1}, g = {1};
  for (int k = 1; k < kSeries; ++k) {
    f.push_back(f.back() / ((3.0 * k - 1) * (3.0 * k)));
    g.push_back(g.back() / ((3.0 * k) * (3.0 * k + 1)));
  }
  const double c1 = 1 / (std::pow(3.0, 2.0 / 3) * std::tgamma(2.0 / 3)), c2 = 1 / (std::pow(3.0, 1.0 / 3) * std::tgamma(1.0 / 3));
  const Val close = Polynomial(cube, f) * c1 - Polynomial(cube, g) * near * c2;

  const Val above = b.Max(x, high), zeta_above = above * b.Sqrt(above) * (2.0 / 3);
  const Val right = b.Sqrt(above / 3.0) * ScaledKFar(b, zeta_above, 1.0 / 3) * b.Exp(b.Neg(zeta_above)) / pi;

  const Val below = b.Neg(b.Min(x, low)), root = b.Sqrt(below), z = below * root * (2.0 / 3), inverse = 1.0 / z;
  Coefficients even, odd;
  double u = 1;
  for (int k = 0; k < kAsymptotic; ++k) {
    (k % 2 ? odd : even).push_back(k % 4 < 2 ? u : -u);
    u *= (6.0 * k + 1) * (6.0 * k + 3) * (6.0 * k + 5) / (216.0 * (k + 1) * (2 * k + 1));
  }
  const Val phase = z + pi / 4, square = inverse * inverse;
  const Val wave = b.Sin(phase) * Polynomial(square, even) - b.Cos(phase) * Polynomial(square, odd) * inverse;
  const Val left = wave / (b.Sqrt(root) * std::sqrt(pi));

  const Val y = b.Where(b.Less(x, low), left, b.Where(b.Greater(x, high), right, close));
  return b.Where(b.IsInf(x), Like(x, kNaN), y);
}

}  // namespace

void BesselRules(Rules<Onnx>& r) {
  UseAll<J0, aten::special_bessel_j0, prims::bessel_j0>(r);
  UseAll<J1, aten::special_bessel_j1, prims::bessel_j1>(r);
  Use<aten::special_bessel_y0, Y0>(r);
  Use<aten::special_bessel_y1, Y1>(r);
  UseAll<I0, aten::i0, aten::special_modified_bessel_i0, prims::bessel_i0>(r);
  UseAll<I1, aten::special_i1, aten::special_modified_bessel_i1, prims::bessel_i1>(r);
  UseAll<I0e, aten::special_i0e, prims::bessel_i0e>(r);
  UseAll<I1e, aten::special_i1e, prims::bessel_i1e>(r);
  Use<aten::special_modified_bessel_k0, K0>(r);
  Use<aten::special_modified_bessel_k1, K1>(r);
  Use<aten::special_scaled_modified_bessel_k0, K0Scaled>(r);
  Use<aten::special_scaled_modified_bessel_k1, K1Scaled>(r);
  UseAll<SphericalJ0, aten::special_spherical_bessel_j0, prims::spherical_bessel_j0>(r);
  Use<aten::special_airy_ai, AiryAi>(r);
}

}  // namespace pt2onnx
