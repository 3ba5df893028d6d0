// Elementwise arithmetic and the elementary functions. Operands arrive in one dtype (passes/promote), Python numbers as Scalars of any kind.
//
//   %y : f32[s0, 4] = aten::add.Tensor(%a, %b, alpha=2)    ->    %y = Add(%a, Mul(%b, 2))
#include <cmath>
#include <limits>
#include <numbers>

#include "lower/elementary.h"

namespace pt2onnx {
namespace {

using std::numbers::ln10;
using std::numbers::ln2;
using std::numbers::pi;

// ---- Arithmetic ---------------------------------------------------------------------------------------------------------------------

// self + alpha * other; on bool, + is "or" and * is "and".
Val Add(Val self, Val other, const Scalar& alpha) { return self + (alpha.Is(1) ? other : other * alpha); }
Val Sub(Val self, Val other, const Scalar& alpha) { return self - (alpha.Is(1) ? other : other * alpha); }
Val Mul(Onnx&, Val self, Val other) { return self * other; }
Val Plus(Onnx&, Val self, Val other) { return self + other; }
Val Minus(Onnx&, Val self, Val other) { return self - other; }
Val Div(Onnx&, Val self, Val other) { return self / other; }  // integers arrive as floats

// rounding_mode: none, "trunc", "floor"
Val DivideRounded(Onnx& b, Val self, Val other, const std::optional<std::string_view>& mode) {
  if (!mode) return self / other;
  if (*mode == "floor") return FloorDivide(b, self, other);
  return IsFloat(self.dtype()) ? Truncate(b, self / other) : b.Div(self, other);
}

// The remainder of the quotient toward zero: the dividend's sign.
Val Fmod(Onnx& b, Val self, Val other) { return b.Mod(self, other, {.fmod = 1}); }

Val PowerOfTensors(Onnx& b, Val self, Val exponent) { return IsFloat(self.dtype()) ? b.Pow(self, exponent) : IntPower(b, self, exponent); }

// PyTorch takes roots where the exponent says so: they differ from pow at -0.0 and -inf.
Val PowerOfNumber(Onnx& b, Val self, const Scalar& exponent) {
  if (exponent.IsSymbolic()) return PowerOfTensors(b, self, Like(self, exponent));
  if (!IsFloat(self.dtype())) {
    if (exponent.AsInt() >= 0) return IntPower(b, self, exponent.AsInt());
    return IntPower(b, self, Like(self, exponent));
  }
  if (exponent.Is(1)) return self;
  if (exponent.Is(0.5)) return b.Sqrt(self);
  if (exponent.Is(-0.5)) return b.Reciprocal(b.Sqrt(self));
  if (exponent.Is(-1)) return b.Reciprocal(self);
  return b.Pow(self, Like(self, exponent));
}

// 0 for NaN, which ONNX's Sign keeps.
Val Sign(Onnx& b, Val x) {
  if (x.dtype() == DType::Bool) return x;
  return IsFloat(x.dtype()) ? b.Where(b.IsNaN(x), Like(x, 0), b.Sign(x)) : b.Sign(x);
}

Val Rsqrt(Onnx& b, Val x) { return b.Reciprocal(b.Sqrt(x)); }

// sign bit of y ? -|x| : |x|
Val CopySign(Onnx& b, Val x, Val y) {
  const Val magnitude = b.Abs(x);
  return b.Where(SignBit(b, y), b.Neg(magnitude), magnitude);
}

// x == 0 ? values : x > 0
Val Heaviside(Onnx& b, Val x, Val values) {
  const Val zero = Like(x, 0);
  if (x.dtype() == DType::Bool) return b.Or(x, values);
  return b.Where(b.Equal(x, zero), values, b.Cast(b.Greater(x, zero), x.dtype()));
}

// sqrt(x^2 + y^2), in float64 so that squares of float32 do not overflow
Val Hypot(Onnx& b, Val x, Val y) {
  x = Double(b, x), y = Double(b, y);
  return b.Sqrt(x * x + y * y);
}

// The neighbour of x toward y. With m bits of mantissa, 2^-m |x| is once to twice the distance of two floats there: 0.6 of it moves x by 0.6 to 1.2
// distances, which is rounded to the next one.
Val NextAfter(Onnx& b, Val x, Val y) {
  const bool wide = x.dtype() == DType::F64;
  if (!wide && x.dtype() != DType::F32) return b.Unsupported("nextafter of half floats has no ONNX form", "use float32");
  const Val most = Like(x, wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max());
  const Val least = Like(x, wide ? std::numeric_limits<double>::denorm_min() : std::numeric_limits<float>::denorm_min());
  const Val finite = b.Clip(x, b.Neg(most), most);
  const Val step = b.Max(b.Abs(finite) * (0.6 * (wide ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon())), least);
  const Val direction = b.Sign(b.Where(b.Equal(x, y), Like(x, 0.0), y - x));
  return b.Where(b.Equal(x, y), y, finite + direction * b.Where(b.IsInf(x), Like(x, 0.0), step));
}

// The one that isn't NaN, else the larger.
Val Fmax(Onnx& b, Val x, Val y) {
  if (!IsFloat(x.dtype())) return Maximum(b, x, y);
  return b.Where(b.IsNaN(x), y, b.Where(b.IsNaN(y), x, b.Max(x, y)));
}
Val Fmin(Onnx& b, Val x, Val y) {
  if (!IsFloat(x.dtype())) return Minimum(b, x, y);
  return b.Where(b.IsNaN(x), y, b.Where(b.IsNaN(y), x, b.Min(x, y)));
}

// x mantissa * 2^exponent with 0.5 <= |mantissa| < 1. The exponent from log2, put right by one where that is rounded to a power of two.
Vals Frexp(Onnx& b, const aten::frexp_Tensor& op) {
  const Val x = Double(b, op.self), size = b.Abs(x), one = Like(x, 1.0), two = Like(x, 2.0), zero = Like(x, 0.0);
  const Val plain = b.And(b.Less(size, Like(x, INFINITY)), b.Greater(size, zero));
  const Val guess = b.Floor(b.Log(b.Where(plain, size, one)) / ln2) + 1.0;
  const Val m = size / b.Pow(two, guess);
  const Val exponent = guess + b.Cast(b.GreaterOrEqual(m, one), DType::F64) - b.Cast(b.Less(m, Like(x, 0.5)), DType::F64);
  return {b.Where(plain, x / b.Pow(two, exponent), x), b.Where(plain, exponent, zero)};
}

// Euclid's algorithm on all elements at once, until every remainder is 0.
Val Gcd(Onnx& b, Val x, Val y) {
  const Type& type = Recorded(b);
  const auto any = [&](Val rest) { return b.Greater(b.ReduceSum(b.Cast(b.Flatten1D(b.Cast(rest, DType::Bool)), DType::I64), {0}), b.IntScalar(0)); };
  x = b.Expand(b.Abs(x), type.shape), y = b.Expand(b.Abs(y), type.shape);
  return b.Loop({}, any(y), {x, y}, [&](Onnx&, Val, const Vals& now) -> LoopStep {
    const Val zero = Like(x, 0), done = b.Equal(now[1], zero);
    const Val rest = b.Where(done, zero, b.Mod(now[0], b.Where(done, Like(x, 1), now[1])));
    return {any(rest), {b.Where(done, now[0], now[1]), rest}, {}};
  })[0];
}
// |x / gcd * y|, 0 if both are 0
Val Lcm(Onnx& b, Val x, Val y) {
  const Val divisor = Gcd(b, x, y);
  return b.Abs(b.Div(x, b.Where(b.Equal(divisor, Like(x, 0)), Like(x, 1), divisor)) * y);
}

// ---- Bounds and choice --------------------------------------------------------------------------------------------------------------

// Of min > max: max. NaN stays.
Val ClampTensor(Onnx& b, Val self, const OptVal& min, const OptVal& max) {
  if (min) self = Maximum(b, self, *min);
  return max ? Minimum(b, self, *max) : self;
}
Val Clamp(Onnx& b, Val self, const OptScalar& min, const OptScalar& max) {
  const auto bound = [&](const OptScalar& x) { return x ? OptVal(Like(self, *x)) : OptVal(); };
  return min || max ? b.Clip(self, bound(min), bound(max)) : self;
}

Val Choose(Onnx& b, Val condition, Val self, Val other) { return b.Where(b.Cast(condition, DType::Bool), self, other); }

// |weight| < 0.5 ? self + weight (end - self) : end - (end - self) (1 - weight): each end is met exactly.
Val Lerp(Onnx& b, Val self, Val end, Val weight) {
  const Val span = end - self;
  return b.Where(b.Less(b.Abs(weight), Like(weight, 0.5)), self + weight * span, end - span * (1 - weight));
}
Val LerpByNumber(Onnx& b, const aten::lerp_Scalar& op) {
  if (op.weight.IsSymbolic()) return Lerp(b, op.self, op.end, Like(op.self, op.weight));
  const Val span = op.end - op.self;
  const double weight = op.weight.AsDouble();
  return std::fabs(weight) < 0.5 ? op.self + span * weight : op.end - span * (1 - weight);
}

double LargestFinite(DType dtype) {
  switch (dtype) {
    case DType::F16: return 65504;
    case DType::BF16: return 0x1.fep127;
    case DType::F32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
  }
}
Val NanToNum(Onnx& b, const aten::nan_to_num& op) {
  Val x = op.self;
  if (!IsFloat(x.dtype())) return x;
  const double most = LargestFinite(x.dtype());
  const Val numbers = b.Where(b.IsNaN(x), Like(x, op.nan.value_or(0)), x);
  if (!op.posinf && !op.neginf) return b.Clip(numbers, Like(x, -most), Like(x, most));
  const Val below = b.Where(b.Equal(x, Like(x, -INFINITY)), Like(x, op.neginf.value_or(-most)), numbers);
  return b.Where(b.Equal(x, Like(x, INFINITY)), Like(x, op.posinf.value_or(most)), below);
}

// ---- Rounding -----------------------------------------------------------------------------------------------------------------------

Val RoundDown(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.Floor(x) : x; }
Val RoundUp(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.Ceil(x) : x; }
Val RoundEven(Onnx& b, Val x) { return IsFloat(x.dtype()) ? b.Round(x) : x; }  // half to even

// round(x 10^n) / 10^n; for n < 0 with 1/10^-n
Val RoundTo(Onnx& b, Val x, int64_t decimals) {
  if (decimals == 0 || !IsFloat(x.dtype())) return RoundEven(b, x);
  const double scale = std::pow(10.0, static_cast<double>(std::abs(decimals)));
  return decimals > 0 ? b.Round(x * scale) / scale : b.Round(x / scale) * scale;
}

// fmod(x, 1)
Val Frac(Onnx& b, Val x) { return b.Mod(x, Like(x, 1), {.fmod = 1}); }

// ---- Exponentials -------------------------------------------------------------------------------------------------------------------

Val Exp2(Onnx& b, Val x) { return b.Pow(Like(x, 2), x); }
Val Log2(Onnx& b, Val x) { return b.Log(Wide(b, x)) / ln2; }
Val Log10(Onnx& b, Val x) { return b.Log(Wide(b, x)) / ln10; }
Val Log1pWide(Onnx& b, Val x) { return Log1p(b, Wide(b, x)); }
Val Expm1Wide(Onnx& b, Val x) { return Expm1(b, Wide(b, x)); }

// x == 0 and y not NaN ? 0 : x f(y)
template <auto f>
Val TimesLog(Onnx& b, Val x, Val y) {
  x = Wide(b, x), y = Wide(b, y);
  return b.Where(b.And(b.Equal(x, Like(x, 0)), b.Not(b.IsNaN(y))), Like(x, 0), x * f(b, y));
}
Val Log(Onnx& b, Val x) { return b.Log(x); }

// log(e^x + e^y) = max + log(1 + e^-|x - y|); equal ones: x + log 2, infinities too
Val LogAddExp(Onnx& b, Val x, Val y) {
  x = Wide(b, x), y = Wide(b, y);
  const Val apart = b.Max(x, y) + Softplus(b, b.Neg(b.Abs(x - y)));
  return b.Where(b.Equal(x, y), x + ln2, apart);
}
// The same to base 2.
Val LogAddExp2(Onnx& b, Val x, Val y) {
  x = Wide(b, x), y = Wide(b, y);
  const Val apart = b.Max(x, y) + Softplus(b, b.Abs(x - y) * -ln2) / ln2;
  return b.Where(b.Equal(x, y), x + 1.0, apart);
}

// log(x / (1 - x)), of x moved into [eps, 1 - eps]
Val Logit(Onnx& b, Val x, const std::optional<double>& eps) {
  x = Wide(b, x);
  if (eps) x = b.Clip(x, Like(x, *eps), Like(x, 1 - *eps));
  return b.Log(x / (1 - x));
}

// ---- Angles -------------------------------------------------------------------------------------------------------------------------

Val Deg2Rad(Onnx&, Val x) { return x * (pi / 180); }
Val Rad2Deg(Onnx&, Val x) { return x * (180 / pi); }
// sin(pi x) / (pi x), 1 at 0
Val Sinc(Onnx& b, Val x) {
  const Val angle = Wide(b, x) * pi;
  return b.Where(b.Equal(x, Like(x, 0)), Like(angle, 1), b.Sin(angle) / angle);
}
Val Atan2Wide(Onnx& b, Val y, Val x) { return Atan2(b, Wide(b, y), Wide(b, x)); }

// cbrt(x) = sign(x) |x|^(1/3)
Val Cbrt(Onnx& b, Val x) { return b.Sign(x) * b.Pow(b.Abs(x), Like(x, 1.0 / 3)); }

void ArithmeticRules(Rules<Onnx>& r) {
  r.On([](Onnx&, const aten::add_Tensor& op) { return Add(op.self, op.other, op.alpha); });
  r.On([](Onnx&, const aten::add_Scalar& op) { return Add(op.self, Like(op.self, op.other), op.alpha); });
  r.On([](Onnx&, const aten::sub_Tensor& op) { return Sub(op.self, op.other, op.alpha); });
  r.On([](Onnx&, const aten::sub_Scalar& op) { return Sub(op.self, Like(op.self, op.other), op.alpha); });
  UseAll<Mul, aten::mul_Tensor, prims::mul>(r);
  OfScalar<Mul, aten::mul_Scalar>(r);
  UseAll<Div, aten::div_Tensor>(r);
  OfScalar<Div, aten::div_Scalar>(r);
  r.On([](Onnx& b, const aten::div_Tensor_mode& op) { return DivideRounded(b, op.self, op.other, op.rounding_mode); });
  r.On([](Onnx& b, const aten::div_Scalar_mode& op) { return DivideRounded(b, op.self, Like(op.self, op.other), op.rounding_mode); });
  Use<prims::add, Plus>(r);
  Use<prims::sub, Minus>(r);
  // of integers: toward zero
  r.On([](Onnx& b, const prims::div& op) { return b.Div(op.self, op.other); });

  Use<aten::floor_divide, FloorDivide>(r);
  OfScalar<FloorDivide, aten::floor_divide_Scalar>(r);
  UseAll<Remainder, aten::remainder_Tensor, prims::remainder>(r);
  OfScalar<Remainder, aten::remainder_Scalar>(r);
  ScalarFirst<Remainder, aten::remainder_Scalar_Tensor>(r);
  UseAll<Fmod, aten::fmod_Tensor, prims::fmod>(r);
  OfScalar<Fmod, aten::fmod_Scalar>(r);

  UseAll<PowerOfTensors, aten::pow_Tensor_Tensor, prims::pow>(r);
  r.On([](Onnx& b, const aten::pow_Tensor_Scalar& op) { return PowerOfNumber(b, op.self, op.exponent); });
  r.On([](Onnx& b, const aten::pow_Scalar& op) { return PowerOfTensors(b, Like(op.exponent, op.self), op.exponent); });

  UseAll<Negate, aten::neg, prims::neg>(r);
  r.Map<aten::abs, &Onnx::Abs>();
  r.Map<prims::abs, &Onnx::Abs>();
  UseAll<Sign, aten::sign, aten::sgn, prims::sign>(r);
  r.Map<aten::reciprocal, &Onnx::Reciprocal>();
  r.Map<prims::reciprocal, &Onnx::Reciprocal>();
  r.Map<aten::sqrt, &Onnx::Sqrt>();
  r.Map<prims::sqrt, &Onnx::Sqrt>();
  UseAll<Rsqrt, aten::rsqrt, prims::rsqrt>(r);
  Use<prims::cbrt, Cbrt>(r);

  Use<aten::copysign_Tensor, CopySign>(r);
  OfScalar<CopySign, aten::copysign_Scalar>(r);
  Use<aten::heaviside, Heaviside>(r);
  UseAll<Hypot, aten::hypot, prims::hypot>(r);
  UseAll<NextAfter, aten::nextafter, prims::nextafter>(r);
  r.On<Frexp>();
  UseAll<Gcd, aten::gcd, prims::gcd>(r);
  Use<aten::lcm, Lcm>(r);
}

void ChoiceRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::clamp& op) { return Clamp(b, op.self, op.min, op.max); });
  r.On([](Onnx& b, const aten::clamp_min& op) { return Clamp(b, op.self, op.min, {}); });
  r.On([](Onnx& b, const aten::clamp_max& op) { return Clamp(b, op.self, {}, op.max); });
  r.On([](Onnx& b, const aten::clamp_Tensor& op) { return ClampTensor(b, op.self, op.min, op.max); });
  UseAll<Maximum, aten::clamp_min_Tensor, aten::maximum, prims::maximum>(r);
  UseAll<Minimum, aten::clamp_max_Tensor, aten::minimum, prims::minimum>(r);
  UseAll<Fmax, aten::fmax, prims::fmax>(r);
  UseAll<Fmin, aten::fmin, prims::fmin>(r);
  UseAll<Choose, aten::where_self, prims::where>(r);
  r.On([](Onnx& b, const aten::where_Scalar& op) {
    return Choose(b, op.condition, b.Constant(op.self, Recorded(b).dtype), b.Constant(op.other, Recorded(b).dtype));
  });
  r.On([](Onnx& b, const aten::where_ScalarSelf& op) { return Choose(b, op.condition, Like(op.other, op.self), op.other); });
  r.On([](Onnx& b, const aten::where_ScalarOther& op) { return Choose(b, op.condition, op.self, Like(op.self, op.other)); });
  Use<aten::lerp_Tensor, Lerp>(r);
  r.On<LerpByNumber>();
  r.On<NanToNum>();
}

void RoundingRules(Rules<Onnx>& r) {
  UseAll<RoundDown, aten::floor, prims::floor>(r);
  UseAll<RoundUp, aten::ceil, prims::ceil>(r);
  UseAll<RoundEven, aten::round, prims::round>(r);
  UseAll<Truncate, aten::trunc, prims::trunc>(r);
  Use<aten::frac, Frac>(r);
  r.On([](Onnx& b, const aten::round_decimals& op) { return RoundTo(b, op.self, op.decimals); });
  r.On([](Onnx& b, const aten::special_round& op) { return RoundTo(b, op.self, op.decimals); });
}

void ExponentialRules(Rules<Onnx>& r) {
  r.Map<aten::exp, &Onnx::Exp>();
  r.Map<prims::exp, &Onnx::Exp>();
  UseAll<Exp2, aten::exp2, prims::exp2>(r);
  UseAll<Expm1Wide, aten::expm1, prims::expm1>(r);
  r.Map<aten::log, &Onnx::Log>();
  r.Map<prims::log, &Onnx::Log>();
  UseAll<Log1pWide, aten::log1p, prims::log1p>(r);
  UseAll<Log2, aten::log2, prims::log2>(r);
  UseAll<Log10, aten::log10, prims::log10>(r);
  Use<aten::xlogy_Tensor, TimesLog<Log>>(r);
  OfScalar<TimesLog<Log>, aten::xlogy_Scalar_Other>(r);
  ScalarFirst<TimesLog<Log>, aten::xlogy_Scalar_Self>(r);
  Use<aten::special_xlog1py, TimesLog<Log1p>>(r);
  OfScalar<TimesLog<Log1p>, aten::special_xlog1py_other_scalar>(r);
  ScalarFirst<TimesLog<Log1p>, aten::special_xlog1py_self_scalar>(r);
  Use<aten::logaddexp, LogAddExp>(r);
  Use<aten::logaddexp2, LogAddExp2>(r);
  r.On([](Onnx& b, const aten::logit& op) { return Logit(b, op.self, op.eps); });
  r.Map<aten::sigmoid, &Onnx::Sigmoid>();
}

void AngleRules(Rules<Onnx>& r) {
  r.Map<aten::sin, &Onnx::Sin>();
  r.Map<prims::sin, &Onnx::Sin>();
  r.Map<aten::cos, &Onnx::Cos>();
  r.Map<prims::cos, &Onnx::Cos>();
  r.Map<aten::tanh, &Onnx::Tanh>();
  r.Map<prims::tanh, &Onnx::Tanh>();
  UseAll<Tan, aten::tan, prims::tan>(r);
  UseAll<Asin, aten::asin, prims::asin>(r);
  UseAll<Acos, aten::acos, prims::acos>(r);
  UseAll<Atan, aten::atan, prims::atan>(r);
  UseAll<Atan2Wide, aten::atan2, prims::atan2>(r);
  UseAll<Sinh, aten::sinh, prims::sinh>(r);
  UseAll<Cosh, aten::cosh, prims::cosh>(r);
  UseAll<Asinh, aten::asinh, prims::asinh>(r);
  UseAll<Acosh, aten::acosh, prims::acosh>(r);
  UseAll<Atanh, aten::atanh, prims::atanh>(r);
  Use<aten::deg2rad, Deg2Rad>(r);
  Use<aten::rad2deg, Rad2Deg>(r);
  // of a real number: pi where it is negative
  r.On([](Onnx& b, const aten::angle& op) {
    const Val x = b.Cast(op.self, Recorded(b).dtype);
    return b.Where(b.Less(x, Like(x, 0)), Like(x, std::numbers::pi), b.Where(IsNaN(b, x), x, Like(x, 0)));
  });
  Use<aten::sinc, Sinc>(r);
}

}  // namespace

void PointwiseRules(Rules<Onnx>& r) {
  ArithmeticRules(r);
  ChoiceRules(r);
  RoundingRules(r);
  ExponentialRules(r);
  AngleRules(r);
}

}  // namespace pt2onnx
