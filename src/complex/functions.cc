// The elementary functions of a complex number z = x + iy. Those whose formulas cancel are computed in float64.
#include <cmath>
#include <numbers>

#include "complex/arithmetic.h"

namespace pt2onnx {
namespace {

Val F(Val x, Val (*f)(Aten&, Val)) { return f(*static_cast<Aten*>(x.builder), x); }
template <class Op>
Val Apply(Aten& b, Val x) {
  return b(Op{.self = x});
}
Val Sin(Val x) { return F(x, Apply<aten::sin>); }
Val Cos(Val x) { return F(x, Apply<aten::cos>); }
Val Tan(Val x) { return F(x, Apply<aten::tan>); }
Val Sinh(Val x) { return F(x, Apply<aten::sinh>); }
Val Cosh(Val x) { return F(x, Apply<aten::cosh>); }
Val Tanh(Val x) { return F(x, Apply<aten::tanh>); }
Val Exp(Val x) { return F(x, Apply<aten::exp>); }
Val Log(Val x) { return F(x, Apply<aten::log>); }
Val Log1p(Val x) { return F(x, Apply<aten::log1p>); }
Val Sqrt(Val x) { return F(x, Apply<aten::sqrt>); }
Val Abs(Val x) { return F(x, Apply<aten::abs>); }
Val Asinh(Val x) { return F(x, Apply<aten::asinh>); }
Val Atan2(Val y, Val x) { return (*static_cast<Aten*>(y.builder))(aten::atan2{.self = y, .other = x}); }

struct Complex {
  Val re, im;
};
Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Complex TimesI(Complex z) { return {Negative(z.im), z.re}; }
Complex OverI(Complex z) { return {z.im, Negative(z.re)}; }
Complex Conj(Complex z) { return {z.re, Negative(z.im)}; }
Complex Plus(Complex z, double x) { return {z.re + Scalar(x), z.im}; }

// f(z) of both parts, in their dtype or in float64.
template <Complex (*f)(Pairs&, Complex), bool wide = false>
Val On(Pairs& b, Val z) {
  Complex x{b.Re(z), b.Im(z)};
  if (wide) x = {b.Cast(x.re, DType::F64), b.Cast(x.im, DType::F64)};
  const Complex y = f(b, x);
  return b.Pack({b.Cast(y.re, b.real()), b.Cast(y.im, b.real())});
}

// e^x (cos y + i sin y)
Val Exponential(Pairs& b, Val z) {
  const Parts parts = b.Of(z);
  const OptVal size = parts.re ? OptVal(Exp(*parts.re)) : std::nullopt;
  if (!parts.im) return b.Pack({size ? *size : b.Constant(Scalar(1.0), b.real()), std::nullopt}, z.shape());
  const Val cos = Cos(*parts.im), sin = Sin(*parts.im);
  return b.Pack({size ? *size * cos : cos, size ? *size * sin : sin}, z.shape());
}
// e^x cos y - 1 = expm1(x) cos y - 2 sin(y/2)^2
Complex Expm1(Pairs& b, Complex z) {
  const Val half = Sin(z.im * Scalar(0.5));
  return {b(aten::expm1{.self = z.re}) * Cos(z.im) - half * half * Scalar(2.0), Exp(z.re) * Sin(z.im)};
}
// log |z| + i arg z, to base e^unit
template <double (*unit)()>
Val Logarithm(Pairs& b, Val z) {
  const Parts parts = b.Of(z);
  if (!parts.re && !parts.im) return b.Pack({Log(b.Re(z)), std::nullopt});
  Val size = Log(Modulus(b, parts)), angle = Argument(b, parts);
  if (unit() != 1) size = size / Scalar(unit()), angle = angle / Scalar(unit());
  return b.Pack({size, angle}, z.shape());
}
double BaseE() { return 1; }
double Base2() { return std::numbers::ln2; }
double Base10() { return std::numbers::ln10; }
// |1 + z|^2 = 1 + x (2 + x) + y^2
Complex Log1pOf(Pairs&, Complex z) {
  return {Log1p(z.re * (z.re + Scalar(2.0)) + z.im * z.im) * Scalar(0.5), Atan2(z.im, z.re + Scalar(1.0))};
}

// With t = sqrt((|z| + |x|) / 2): x >= 0: t + i y/2t, else |y|/2t + i t sign(y). At 0: 0.
Complex SquareRoot(Pairs& b, Complex z) {
  const Val t = Sqrt((Modulus(b, {z.re, z.im}) + Abs(z.re)) * Scalar(0.5)), zero = b.Constant(Scalar(0.0), t.dtype());
  const Val at_zero = b(aten::eq_Tensor{.self = t, .other = zero});
  const Val u = b(aten::where_self{.condition = at_zero, .self = zero, .other = Abs(z.im) / (t * Scalar(2.0))});
  const Val right = b(aten::ge_Tensor{.self = z.re, .other = zero});
  const Val re = b(aten::where_self{.condition = right, .self = t, .other = u}), im = b(aten::where_self{.condition = right, .self = u, .other = t});
  return {re, b(aten::copysign_Tensor{.self = im, .other = z.im})};
}

Complex Sine(Pairs&, Complex z) { return {Sin(z.re) * Cosh(z.im), Cos(z.re) * Sinh(z.im)}; }
Complex Cosine(Pairs&, Complex z) { return {Cos(z.re) * Cosh(z.im), Negative(Sin(z.re) * Sinh(z.im))}; }
Complex HyperbolicSine(Pairs&, Complex z) { return {Sinh(z.re) * Cos(z.im), Cosh(z.re) * Sin(z.im)}; }
Complex HyperbolicCosine(Pairs&, Complex z) { return {Cosh(z.re) * Cos(z.im), Sinh(z.re) * Sin(z.im)}; }
// With h = tanh x, t = tan y: (h (1 + t^2) + i t / cosh(x)^2) / (1 + h^2 t^2)
Complex HyperbolicTangent(Pairs&, Complex z) {
  const Val h = Tanh(z.re), t = Tan(z.im), c = Cosh(z.re), tt = t * t;
  const Val under = h * h * tt + Scalar(1.0);
  return {h * (tt + Scalar(1.0)) / under, t / c / c / under};
}
// -i tanh(iz)
Complex Tangent(Pairs& b, Complex z) { return OverI(HyperbolicTangent(b, TimesI(z))); }

// Kahan's forms. With p = sqrt(1 - z), q = sqrt(1 + z): asin z = atan2(x, Re(p q)) + i asinh(Im(conj(p) q))
Complex ArcSine(Pairs& b, Complex z) {
  const Complex p = SquareRoot(b, Plus({Negative(z.re), Negative(z.im)}, 1)), q = SquareRoot(b, Plus(z, 1));
  return {Atan2(z.re, (p * q).re), Asinh((Conj(p) * q).im)};
}
// 2 atan2(Re p, Re q) + i asinh(Im(conj(q) p))
Complex ArcCosine(Pairs& b, Complex z) {
  const Complex p = SquareRoot(b, Plus({Negative(z.re), Negative(z.im)}, 1)), q = SquareRoot(b, Plus(z, 1));
  return {Atan2(p.re, q.re) * Scalar(2.0), Asinh((Conj(q) * p).im)};
}
// With p = sqrt(z - 1): asinh(Re(conj(p) q)) + 2i atan2(Im p, Re q)
Complex AreaCosine(Pairs& b, Complex z) {
  const Complex p = SquareRoot(b, Plus(z, -1)), q = SquareRoot(b, Plus(z, 1));
  return {Asinh((Conj(p) * q).re), Atan2(p.im, q.re) * Scalar(2.0)};
}
// -i asin(iz)
Complex AreaSine(Pairs& b, Complex z) { return OverI(ArcSine(b, TimesI(z))); }
// log1p(4x / ((1 - x)^2 + y^2)) / 4 + i atan2(2y, (1 - x)(1 + x) - y^2) / 2
Complex AreaTangent(Pairs&, Complex z) {
  const Val left = Scalar(1.0) - z.re, yy = z.im * z.im;
  return {Log1p(z.re * Scalar(4.0) / (left * left + yy)) * Scalar(0.25), Atan2(z.im * Scalar(2.0), left * (z.re + Scalar(1.0)) - yy) * Scalar(0.5)};
}
// -i atanh(iz)
Complex ArcTangent(Pairs& b, Complex z) { return OverI(AreaTangent(b, TimesI(z))); }

Val Inverse(Pairs& b, Val z) { return b(aten::reciprocal{.self = z}); }
// 1 / (1 + e^-z)
Val Sigmoid(Pairs& b, Val z) { return Inverse(b, b(aten::add_Scalar{.self = b(aten::exp{.self = Negative(z)}), .other = 1.0})); }

// sin(pi z) / (pi z), 1 at 0
Val Sinc(Pairs& b, Val z) {
  const Val angle = b(aten::mul_Scalar{.self = z, .other = std::numbers::pi});
  const Val one = b.Pack({b.Constant(Scalar(1.0), b.real()), std::nullopt}, {});
  return b(aten::where_self{.condition = b(aten::eq_Scalar{.self = z, .other = 0.0}), .self = one, .other = b(aten::sin{.self = angle}) / angle});
}

// log(e^z + e^w) = m + log(1 + e^(n - m)), m the one with the larger real part
Val LogAddExp(Pairs& b, Val z, Val w) {
  const Val less = b(aten::lt_Tensor{.self = b.Re(z), .other = b.Re(w)});
  const Val m = b(aten::where_self{.condition = less, .self = w, .other = z}), n = b(aten::where_self{.condition = less, .self = z, .other = w});
  return m + b(aten::log1p{.self = b(aten::exp{.self = n - m})});
}

}  // namespace

void ComplexFunctions(Rules<Pairs>& r) {
  OfSelf<Exponential, aten::exp>(r);
  OfSelf<On<Expm1>, aten::expm1>(r);
  r.On([](Pairs& b, const aten::exp2& op) { return b(aten::exp{.self = b(aten::mul_Scalar{.self = op.self, .other = std::numbers::ln2})}); });
  OfSelf<Logarithm<BaseE>, aten::log>(r);
  OfSelf<Logarithm<Base2>, aten::log2>(r);
  OfSelf<Logarithm<Base10>, aten::log10>(r);
  OfSelf<On<Log1pOf, true>, aten::log1p>(r);
  OfSelf<On<SquareRoot>, aten::sqrt>(r);
  r.On([](Pairs& b, const aten::rsqrt& op) { return Inverse(b, b(aten::sqrt{.self = op.self})); });

  OfSelf<On<Sine>, aten::sin>(r);
  OfSelf<On<Cosine>, aten::cos>(r);
  OfSelf<On<Tangent>, aten::tan>(r);
  OfSelf<On<HyperbolicSine>, aten::sinh>(r);
  OfSelf<On<HyperbolicCosine>, aten::cosh>(r);
  OfSelf<On<HyperbolicTangent>, aten::tanh>(r);
  OfSelf<On<ArcSine, true>, aten::asin>(r);
  OfSelf<On<ArcCosine, true>, aten::acos>(r);
  OfSelf<On<ArcTangent, true>, aten::atan>(r);
  OfSelf<On<AreaSine, true>, aten::asinh>(r);
  OfSelf<On<AreaCosine, true>, aten::acosh>(r);
  OfSelf<On<AreaTangent, true>, aten::atanh>(r);

  r.On([](Pairs& b, const aten::logaddexp& op) { return LogAddExp(b, op.self, op.other); });
  OfSelf<Sinc, aten::sinc>(r);
  OfSelf<Sigmoid, aten::sigmoid>(r);
  r.On([](Pairs& b, const aten::silu& op) { return op.self * Sigmoid(b, op.self); });
}

}  // namespace pt2onnx
