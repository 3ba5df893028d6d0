// Elementary functions that ONNX lacks, or that the runtime lacks for float64. See the header.
//
//   Tan(%x : f64)    ->    Div(Sin(%x), Cos(%x))
#include "lower/elementary.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace pt2onnx {
namespace {

using std::numbers::ln2;
using std::numbers::pi;

bool IsDouble(Val x) { return x.dtype() == DType::F64; }
double Largest(Val x) { return IsDouble(x) ? 1e300 : 1e37; }

}  // namespace

Val Wide(Onnx& b, Val x) { return x.dtype() == DType::F16 || x.dtype() == DType::BF16 ? b.Cast(x, DType::F32) : x; }
Val Double(Onnx& b, Val x) { return b.Cast(x, DType::F64); }

Val Polynomial(Val x, std::span<const double> c) {
  Val y = Like(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) y = y * x + c[i];
  return y;
}

// (e^x + e^-x) / 2
Val Cosh(Onnx& b, Val x) { return IsDouble(x) ? (b.Exp(x) + b.Exp(b.Neg(x))) * 0.5 : b.Cosh(x); }
// tanh(x) cosh(x)
Val Sinh(Onnx& b, Val x) { return IsDouble(x) ? b.Tanh(x) * Cosh(b, x) : b.Sinh(x); }
Val Tan(Onnx& b, Val x) { return IsDouble(x) ? b.Sin(x) / b.Cos(x) : b.Tan(x); }

// float64: y = atan(x) in float32, then one step  y + atan((x - tan y) / (1 + x tan y)), where the last atan's argument is so small that it is its
// own value.
Val Atan(Onnx& b, Val x) {
  if (!IsDouble(x)) return b.Atan(x);
  x = b.Clip(x, Like(x, -1e30), Like(x, 1e30));
  const Val y = Double(b, b.Atan(b.Cast(x, DType::F32)));
  const Val s = b.Sin(y), c = b.Cos(y);
  return y + (x * c - s) / (c + x * s);
}

// atan(x / sqrt((1 - x)(1 + x)))
Val Asin(Onnx& b, Val x) { return IsDouble(x) ? Atan(b, x / b.Sqrt((1.0 - x) * (1.0 + x))) : b.Asin(x); }
// 2 atan(sqrt((1 - x) / (1 + x)))
Val Acos(Onnx& b, Val x) { return IsDouble(x) ? Atan(b, b.Sqrt((1.0 - x) / (1.0 + x))) * 2.0 : b.Acos(x); }

// The angle of (x, y) from atan(y / |x|), which has y's sign; where x has a minus sign: +-pi - it.
// Zeros and infinities are moved to numbers so small or large that the angle is the same: 0/0 becomes 0, inf/inf becomes 1.
Val Atan2(Onnx& b, Val y, Val x) {
  const double most = Largest(x), least = IsDouble(x) ? 1e-320 : 1e-44;
  const Val lo = Like(x, -most), hi = Like(x, most), zero = Like(x, 0.0);
  x = b.Clip(x, lo, hi), y = b.Clip(y, lo, hi);
  const Val angle = Atan(b, y / b.Max(b.Abs(x), Like(x, least)));
  const Val left = b.Less(b.Reciprocal(x), zero), below = b.Less(b.Reciprocal(y), zero);  // of -0.0 too
  return b.Where(left, b.Where(below, Like(x, -pi), Like(x, pi)) - angle, angle);
}

// sign(x) log(|x| + sqrt(x^2 + 1)), which is log1p(a + a / (1/a + sqrt(1/a^2 + 1))) of a = |x|: no square that overflows
Val Asinh(Onnx& b, Val x) {
  if (!IsDouble(x)) return b.Asinh(x);
  const Val a = b.Abs(x), inverse = b.Reciprocal(a);
  return b.Sign(x) * Log1p(b, a + a / (inverse + b.Sqrt(inverse * inverse + 1.0)));
}
// log(x + sqrt(x - 1) sqrt(x + 1))
Val Acosh(Onnx& b, Val x) { return IsDouble(x) ? b.Log(x + b.Sqrt(x - 1.0) * b.Sqrt(x + 1.0)) : b.Acosh(x); }
// (log1p(x) - log1p(-x)) / 2
Val Atanh(Onnx& b, Val x) { return IsDouble(x) ? (Log1p(b, x) - Log1p(b, b.Neg(x))) * 0.5 : b.Atanh(x); }

// e^x - 1 = tanh(x/2) (e^x + 1)
Val Expm1(Onnx& b, Val x) { return b.Tanh(x * 0.5) * (b.Exp(x) + 1.0); }

// With u = 1 + x as it is rounded: log(u) x / (u - 1), where the rounding of u cancels. Where u is 1: x; where it is x + 1 exactly: log(u).
Val Log1p(Onnx& b, Val x) {
  const Val u = x + 1.0, d = u - 1.0;
  const Val ratio = b.Where(b.Equal(d, x), Like(x, 1.0), x / d);
  return b.Where(b.Equal(d, Like(x, 0.0)), x, b.Log(u) * ratio);
}

// max(x, 0) + log(1 + e^-|x|)
Val Softplus(Onnx& b, Val x) {
  return IsDouble(x) ? b.Max(x, Like(x, 0.0)) + b.Log(b.Exp(b.Neg(b.Abs(x))) + 1.0) : b.Softplus(x);
}

// erfcx(x) = P(1 - 2k/(x + k)) / (x + k) for x >= 0 with k = 2.5, where P is a polynomial: Chebyshev interpolation of erfcx(x) (x + k), which goes
// to 1/sqrt(pi). To 1e-9 for float32, 1e-13 for float64. For x < 0: erfcx(x) = 2 exp(x^2) - erfcx(-x).
Val ErfcxOfAbs(Onnx& b, Val x) {
  static constexpr double kSingle[] = {1.054031814,    -0.8046518508,   0.4539145368,     -0.1712510446,  0.02835659183,    0.008391841028,
                                       -0.004797126193, -0.0004338135605, 0.0006590233154, 4.688190218e-05, -7.005345691e-05, -7.223227241e-06};
  static constexpr double kDouble[] = {
      1.054031820305718,       -0.80465184943927348,   0.45391411664798881,    -0.17125114523691626,  0.028361550139907283,
      0.0083930441057812576,   -0.0048187856954474599, -0.0004392063275762659, 0.00070269544947537796, 5.8297310629909986e-05,
      -0.00011261438473089991, -1.949813085995202e-05, 1.8276375737773591e-05, 6.6850764451958939e-06, -2.4001553495666143e-06,
      -1.8743309450865072e-06, 8.6362245115554344e-08, 3.7956655369109126e-07, 5.8714941268587634e-08, -4.0819966735866755e-08,
      -1.1986611480896143e-08};
  const Val shifted = b.Abs(x) + 2.5;
  const Val t = 1.0 - Like(x, 5.0) / shifted;
  return Polynomial(t, IsDouble(x) ? std::span<const double>(kDouble) : kSingle) / shifted;
}
Val Erfcx(Onnx& b, Val x) {
  const Val positive = ErfcxOfAbs(b, x);
  return b.Where(b.Less(x, Like(x, 0.0)), b.Exp(x * x) * 2.0 - positive, positive);
}

// exp(-x^2) erfcx(|x|), and 2 - that for x < 0
Val Erfc(Onnx& b, Val x) {
  const Val positive = b.Exp(b.Neg(x * x)) * ErfcxOfAbs(b, x);
  return b.Where(b.Less(x, Like(x, 0.0)), 2.0 - positive, positive);
}
Val Erf(Onnx& b, Val x) { return IsDouble(x) ? 1.0 - Erfc(b, x) : b.Erf(x); }

Val Truncate(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.Where(b.Less(x, Like(x, 0.0)), b.Ceil(x), b.Floor(x)) : x; }

// -x; unsigned: 0 - x, modulo 2^n
Val Negate(Onnx& b, Val x) { return IsUnsigned(x.dtype()) ? Like(x, 0) - x : b.Neg(x); }

Val IsNaN(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.IsNaN(x) : b.Full(x.shape(), false, DType::Bool); }

// x < 0 or 1/x < 0: the first knows -inf, the second -0.0
Val SignBit(Onnx& b, Val x) {
  if (IsUnsigned(x.dtype()) || x.dtype() == DType::Bool) return b.Full(x.shape(), false, DType::Bool);
  const Val zero = Like(x, 0), negative = b.Less(x, zero);
  return IsFloat(x.dtype()) ? b.Or(negative, b.Less(b.Reciprocal(x), zero)) : negative;
}

Val Maximum(Onnx& b, Val x, Val y) { return x.dtype() == DType::Bool ? b.Or(x, y) : b.Max(x, y); }
Val Minimum(Onnx& b, Val x, Val y) { return x.dtype() == DType::Bool ? b.And(x, y) : b.Min(x, y); }

// Integers: ONNX's Mod has the divisor's sign, as Python's. Floats: fmod has the dividend's; where the signs differ (and it isn't 0) add y.
Val Remainder(Onnx& b, Val x, Val y) {
  if (!IsFloat(x.dtype())) return b.Mod(x, y);
  const Val m = b.Mod(x, y, {.fmod = 1});
  return b.Where(b.Less(m * y, Like(m, 0.0)), m + y, m);
}

// Integers: (x - x % y) / y.
// Floats: with m = fmod(x, y), (x - m) / y is whole but for rounding; one less where m and y differ in sign. x / 0 is x / 0.
Val FloorDivide(Onnx& b, Val x, Val y) {
  if (IsUnsigned(x.dtype())) return b.Div(x, y);
  if (!IsFloat(x.dtype())) return b.Div(x - b.Mod(x, y), y);
  const Val zero = Like(x, 0.0), m = b.Mod(x, y, {.fmod = 1});
  const Val below = b.Cast(b.Less(m * y, zero), x.dtype());
  return b.Where(b.Equal(y, zero), x / y, b.Round((x - m) / y - below));
}

// By squaring: x^13 = x x^4 x^8.
Val IntPower(Onnx& b, Val x, int64_t exponent) {
  OptVal out;
  for (Val square = x; exponent > 0; square = square * square) {
    if (exponent & 1) out = out ? *out * square : square;
    exponent >>= 1;
    if (exponent == 0) break;
  }
  return out ? *out : b.Full(x.shape(), 1, x.dtype());
}

// By squaring, over the bits of the exponent; more than 6 bits matter for -1, 0, 1 only, where the lowest one is enough.
// x^-n is 0 unless x is 1 or -1; there the lowest bit decides too.
Val IntPower(Onnx& b, Val x, Val exponent) {
  const auto number = [&](int64_t n) { return Like(x, n); };
  const Val one = number(1);
  Val square = x, rest = exponent;
  OptVal out;
  for (int bit = 0; bit < 6; ++bit) {
    const Val factor = b.Where(b.Equal(b.Mod(rest, number(2)), one), square, one);
    out = out ? *out * factor : factor;
    if (bit == 5) break;
    square = square * square;
    rest = b.Div(rest, number(2));
  }
  if (IsUnsigned(x.dtype())) return *out;
  const Val unit = b.Equal(b.Abs(x), one);
  return b.Where(b.And(b.Less(exponent, number(0)), b.Not(unit)), number(0), *out);
}

}  // namespace pt2onnx
