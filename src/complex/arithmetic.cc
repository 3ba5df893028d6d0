// Arithmetic of complex numbers, their parts, and comparison.
//
//   %y : c64[n] = aten::mul.Tensor(%z, %w)    ->    re = zr wr - zi wi,  im = zr wi + zi wr
#include "complex/arithmetic.h"

#include <cmath>

#include "ir/infer.h"

namespace pt2onnx {

Val Modulus(Pairs& b, const Parts& z) {
  if (!z.re || !z.im) return b(aten::abs{.self = z.re ? *z.re : *z.im});
  return b(aten::hypot{.self = *z.re, .other = *z.im});
}

Val Argument(Pairs& b, const Parts& z) {
  if (!z.im) return b(aten::angle{.self = *z.re});
  return b(aten::atan2{.self = *z.im, .other = z.re ? *z.re : b.Filled(z, z.im->shape(), false)});
}

Val Conjugate(Pairs& b, Val z) {
  if (!IsComplex(z.dtype())) return z;
  Parts parts = b.Of(z);
  if (parts.im) parts.im = Negative(*parts.im);
  return b.Pack(parts, z.shape());
}

namespace {

Dims Together(Pairs& b, Val x, Val y) { return b.Copy(BroadcastShape(x.shape(), y.shape())); }

// Whether both are there as pairs, which add up as they are.
bool BothInPairs(Pairs& b, Val x, Val y) { return x.dtype() == b.complex() && y.dtype() == b.complex() && b.HasPair(x) && b.HasPair(y); }

// z as a pair and the real number to scale it with, laid along the pair's dim; none if z is in parts, or the other is no real number.
std::optional<std::pair<Val, Val>> PairAndReal(Pairs& b, Val z, Val other) {
  if (z.dtype() != b.complex() || !b.HasPair(z)) return std::nullopt;
  const Parts parts = IsComplex(other.dtype()) && b.HasPair(other) ? Parts{} : b.Of(other);
  if (!parts.re || parts.im) return std::nullopt;
  const Val real = other.IsScalar() ? *parts.re : b(aten::unsqueeze{.self = *parts.re, .dim = -1});
  return std::pair(b.Pair(z), real);
}

Parts Scaled(Parts x, const Scalar& by, Pairs& b) { return by.Is(1) ? x : Times(x, b.Of(by)); }

Val Add(Pairs& b, Val x, Val y, const Scalar& alpha) {
  if (BothInPairs(b, x, y) && !alpha.IsComplex()) return b.FromPair(b(aten::add_Tensor{.self = b.Pair(x), .other = b.Pair(y), .alpha = alpha}));
  const Parts z = b.Of(x), w = Scaled(b.Of(y), alpha, b);
  return b.Pack({Sum(z.re, w.re), Sum(z.im, w.im)}, Together(b, x, y));
}
Val Sub(Pairs& b, Val x, Val y, const Scalar& alpha) {
  if (BothInPairs(b, x, y) && !alpha.IsComplex()) return b.FromPair(b(aten::sub_Tensor{.self = b.Pair(x), .other = b.Pair(y), .alpha = alpha}));
  const Parts z = b.Of(x), w = Scaled(b.Of(y), alpha, b);
  return b.Pack({Difference(z.re, w.re), Difference(z.im, w.im)}, Together(b, x, y));
}
Val AddNumber(Pairs& b, Val x, const Parts& w) {
  const Parts z = b.Of(x);
  return b.Pack({Sum(z.re, w.re), Sum(z.im, w.im)}, x.shape());
}
Val Minus(Pairs& b, Val x, const Scalar& number, const Scalar& alpha) {
  const Parts z = b.Of(x), w = Scaled(b.Of(number), alpha, b);
  return b.Pack({Difference(z.re, w.re), Difference(z.im, w.im)}, x.shape());
}

Val Mul(Pairs& b, Val x, Val y) {
  for (const auto& operands : {PairAndReal(b, x, y), PairAndReal(b, y, x)})
    if (operands) return b.FromPair(operands->first * operands->second);
  return b.Pack(Times(b.Of(x), b.Of(y)), Together(b, x, y));
}

OptVal Over(const OptVal& x, Val y) { return x ? OptVal(*x / y) : std::nullopt; }

// z / w = z conj(w) / |w|^2, with w scaled by s = max(|wr|, |wi|) so that squares neither overflow nor vanish:
//   z conj(w / s) / (|w|^2 / s)
Parts Quotient(Pairs& b, const Parts& z, const Parts& w) {
  if (!w.im) {
    const Val under = w.re ? *w.re : b.Constant(Scalar(0.0), b.real());
    return {Over(z.re, under), Over(z.im, under)};
  }
  if (!w.re) return {Over(z.im, *w.im), z.re ? OptVal(Negative(*z.re) / *w.im) : std::nullopt};  // z / (i d) = -i z / d
  const Val scale = b(aten::maximum{.self = b(aten::abs{.self = *w.re}), .other = b(aten::abs{.self = *w.im})});
  const Parts unit{*w.re / scale, *w.im / scale};
  const Val square = *w.re * *unit.re + *w.im * *unit.im;
  const Parts up{Sum(Product(z.re, unit.re), Product(z.im, unit.im)), Difference(Product(z.im, unit.re), Product(z.re, unit.im))};
  return {Over(up.re, square), Over(up.im, square)};
}
Val Div(Pairs& b, Val x, Val y) {
  if (const auto operands = PairAndReal(b, x, y)) return b.FromPair(operands->first / operands->second);
  return b.Pack(Quotient(b, b.Of(x), b.Of(y)), Together(b, x, y));
}
Val One(Pairs& b) { return b.Constant(Scalar(1.0), b.real()); }
Val Reciprocal(Pairs& b, Val x) { return b.Pack(Quotient(b, {One(b), std::nullopt}, b.Of(x)), x.shape()); }

Val Neg(Pairs& b, Val x) {
  if (b.HasPair(x)) return b.FromPair(Negative(b.Pair(x)));
  Parts z = b.Of(x);
  if (z.re) z.re = Negative(*z.re);
  if (z.im) z.im = Negative(*z.im);
  return b.Pack(z, x.shape());
}

// In one reduction where the value is there as a pair.
Val Size(Pairs& b, Val z) {
  if (!b.HasPair(z)) return b.Expand(Modulus(b, b.Of(z)), z.shape());
  const DType wide = z.dtype() == DType::C32 ? DType::F32 : DType::F64;
  const Val pair = b.Cast(b.Pair(z), wide);
  return b.Cast(b.Typed(aten::linalg_vector_norm{.self = pair, .ord = 2, .dim = b.Copy(std::vector<int64_t>{-1})}, wide, z.shape()), b.real());
}
Val Angle(Pairs& b, Val z) {
  const Parts parts = b.Of(z);
  return parts.re || parts.im ? Argument(b, parts) : b.Re(z);
}

// z / |z|, 0 at 0
Val Sgn(Pairs& b, Val z) {
  const Val size = Size(b, z), zero = b.Constant(Scalar(0.0), b.real());
  const Val at_zero = b(aten::eq_Tensor{.self = size, .other = zero});
  const Parts parts = b.Of(z);
  const auto part = [&](const OptVal& x) {
    return x ? OptVal(b(aten::where_self{.condition = at_zero, .self = zero, .other = *x / size})) : std::nullopt;
  };
  return b.Pack({part(parts.re), part(parts.im)}, z.shape());
}

Val PowerOfNumber(Pairs& b, Val z, const Scalar& exponent) {
  if (exponent.IsSymbolic()) return Power(b, z, b.Constant(exponent, b.real()));
  const std::complex<double> n = exponent.AsComplex();
  if (n.imag() == 0) {
    if (n.real() == 0.5) return b(aten::sqrt{.self = z});
    if (n.real() == -0.5) return Reciprocal(b, b(aten::sqrt{.self = z}));
    if (n.real() == std::trunc(n.real()) && std::fabs(n.real()) <= 8) return WholePower(b, z, static_cast<int64_t>(n.real()));
    return Power(b, z, b.Constant(Scalar(n.real()), b.real()));
  }
  return Power(b, z, b.Pack(b.Of(exponent), {}));
}

Val And(Pairs& b, Val x, Val y) { return b(aten::logical_and{.self = x, .other = y}); }
Val Or(Pairs& b, Val x, Val y) { return b(aten::logical_or{.self = x, .other = y}); }
Val Not(Pairs& b, Val x) { return b(aten::logical_not{.self = x}); }

// Equal in both parts; a missing part is 0.
Val Equal(Pairs& b, const Parts& z, const Parts& w, Dims shape) {
  const auto same = [&](const OptVal& x, const OptVal& y) -> OptVal {
    if (!x && !y) return std::nullopt;
    const Val zero = b.Constant(Scalar(0.0), b.real());
    return b(aten::eq_Tensor{.self = x ? *x : zero, .other = y ? *y : zero});
  };
  const OptVal re = same(z.re, w.re), im = same(z.im, w.im);
  if (!re && !im) return b(aten::full{.size = shape, .fill_value = true, .dtype = DType::Bool});
  return b.Expand(re && im ? And(b, *re, *im) : re ? *re : *im, shape);
}
Val NotZero(Pairs& b, Val z) { return IsComplex(z.dtype()) ? Not(b, Equal(b, b.Of(z), {}, z.shape())) : z; }

// Whether any part is so.
template <class Op>
Val Either(Pairs& b, Val z) {
  const Parts parts = b.Of(z);
  if (!parts.re || !parts.im) return b(Op{.self = parts.re ? *parts.re : b.Im(z)});
  return Or(b, b(Op{.self = *parts.re}), b(Op{.self = *parts.im}));
}
Val IsFinite(Pairs& b, Val z) {
  return Not(b, Or(b, Either<aten::isnan>(b, z), Either<aten::isinf>(b, z)));
}
Val IsReal(Pairs& b, Val z) { return b(aten::eq_Scalar{.self = b.Im(z), .other = 0.0}); }

// |z - w| <= atol + rtol |w|, or equal; with equal_nan two that are NaN too
Val IsClose(Pairs& b, Val z, Val w, double rtol, double atol, bool equal_nan) {
  const Val slack = Size(b, w) * Scalar(rtol) + Scalar(atol);
  const Val near = b(aten::le_Tensor{.self = Size(b, z - w), .other = slack});
  Val close = Or(b, Equal(b, b.Of(z), b.Of(w), Together(b, z, w)), And(b, near, And(b, IsFinite(b, z), IsFinite(b, w))));
  if (equal_nan) close = Or(b, close, And(b, Either<aten::isnan>(b, z), Either<aten::isnan>(b, w)));
  return close;
}

Val FromPolar(Pairs& b, Val size, Val angle) { return b.Pack({size * b(aten::cos{.self = angle}), size * b(aten::sin{.self = angle})}); }

Val RealPart(Pairs& b, Val z) { return b.Re(z); }
Val ImaginaryPart(Pairs& b, Val z) { return b.Im(z); }
Val ToPair(Pairs& b, Val z) { return b.Pair(z); }
Val ToComplex(Pairs& b, Val pair) { return b.FromPair(pair); }

}  // namespace

// By squaring: z^0 = 1, z^-n = 1 / z^n
Val WholePower(Pairs& b, Val z, int64_t n) {
  if (n < 0) return Reciprocal(b, WholePower(b, z, -n));
  std::optional<Parts> power;
  Parts square = b.Of(z);
  for (; n; n >>= 1) {
    if (n & 1) power = power ? Times(*power, square) : square;
    if (n > 1) square = Times(square, square);
  }
  return b.Pack(power.value_or(Parts{One(b), std::nullopt}), z.shape());
}

// z^w = exp(w log z); of z = 0: 1 for w = 0, else 0
Val Power(Pairs& b, Val z, Val w) {
  const Dims shape = Together(b, z, w);
  const Parts base = b.Of(z), exponent = b.Of(w);
  const Val none = b(prims::convert_element_type{.a = Equal(b, exponent, {}, w.shape()), .dtype = b.real()});
  if (!base.re && !base.im) return b.Pack({none, std::nullopt}, shape);
  const Val size = Modulus(b, base), zero = b.Constant(Scalar(0.0), b.real());
  const Val at_zero = b(aten::eq_Tensor{.self = size, .other = zero});
  const Val safe = b(aten::where_self{.condition = at_zero, .self = One(b), .other = size});
  const Parts log{b(aten::log{.self = safe}), Argument(b, base)};
  const Parts product = Times(log, exponent);
  const Val power = b(aten::exp{.self = b.Pack(product, shape)});
  return b(aten::where_self{.condition = at_zero, .self = b.Pack({none, std::nullopt}, w.shape()), .other = power});
}

void ComplexArithmetic(Rules<Pairs>& r) {
  r.On([](Pairs& b, const aten::add_Tensor& op) { return Add(b, op.self, op.other, op.alpha); });
  r.On([](Pairs& b, const aten::sub_Tensor& op) { return Sub(b, op.self, op.other, op.alpha); });
  r.On([](Pairs& b, const aten::add_Scalar& op) { return AddNumber(b, op.self, Scaled(b.Of(op.other), op.alpha, b)); });
  r.On([](Pairs& b, const aten::sub_Scalar& op) { return Minus(b, op.self, op.other, op.alpha); });
  r.On([](Pairs& b, const aten::mul_Tensor& op) { return Mul(b, op.self, op.other); });
  r.On([](Pairs& b, const aten::mul_Scalar& op) {
    if (!op.other.IsComplex()) return Mul(b, op.self, b.Constant(op.other, b.real()));
    return b.Pack(Times(b.Of(op.self), b.Of(op.other)), op.self.shape());
  });
  r.On([](Pairs& b, const aten::div_Tensor& op) { return Div(b, op.self, op.other); });
  r.On([](Pairs& b, const aten::div_Scalar& op) {
    if (op.other.IsSymbolic()) return Div(b, op.self, b.Constant(op.other, b.real()));
    const std::complex<double> inverse = op.other.AsComplex();
    if (inverse.imag() == 0) return Div(b, op.self, b.Constant(Scalar(inverse.real()), b.real()));
    return b.Pack(Quotient(b, b.Of(op.self), b.Of(inverse)), op.self.shape());
  });
  OfSelf<Reciprocal, aten::reciprocal>(r);
  OfSelf<Neg, aten::neg>(r);
  OfSelf<Size, aten::abs>(r);
  OfSelf<Angle, aten::angle>(r);
  OfSelf<Sgn, aten::sgn>(r);
  r.On([](Pairs& b, const aten::pow_Tensor_Scalar& op) { return PowerOfNumber(b, op.self, op.exponent); });
  r.On([](Pairs& b, const aten::pow_Tensor_Tensor& op) { return Power(b, op.self, op.exponent); });
  r.On([](Pairs& b, const aten::pow_Scalar& op) { return Power(b, b.Pack(b.Of(op.self), {}), op.exponent); });
  // self + weight (end - self)
  r.On([](Pairs&, const aten::lerp_Tensor& op) { return op.self + op.weight * (op.end - op.self); });
  r.On([](Pairs& b, const aten::lerp_Scalar& op) { return op.self + b(aten::mul_Scalar{.self = op.end - op.self, .other = op.weight}); });

  r.On([](Pairs& b, const aten::eq_Tensor& op) { return Equal(b, b.Of(op.self), b.Of(op.other), Together(b, op.self, op.other)); });
  r.On([](Pairs& b, const aten::ne_Tensor& op) { return Not(b, Equal(b, b.Of(op.self), b.Of(op.other), Together(b, op.self, op.other))); });
  r.On([](Pairs& b, const aten::eq_Scalar& op) { return Equal(b, b.Of(op.self), b.Of(op.other), op.self.shape()); });
  r.On([](Pairs& b, const aten::ne_Scalar& op) { return Not(b, Equal(b, b.Of(op.self), b.Of(op.other), op.self.shape())); });
  r.On([](Pairs& b, const aten::logical_not& op) { return Not(b, NotZero(b, op.self)); });
  r.On([](Pairs& b, const aten::logical_and& op) { return And(b, NotZero(b, op.self), NotZero(b, op.other)); });
  r.On([](Pairs& b, const aten::logical_or& op) { return Or(b, NotZero(b, op.self), NotZero(b, op.other)); });
  r.On([](Pairs& b, const aten::logical_xor& op) { return b(aten::logical_xor{.self = NotZero(b, op.self), .other = NotZero(b, op.other)}); });
  OfSelf<Either<aten::isnan>, aten::isnan>(r);
  OfSelf<Either<aten::isinf>, aten::isinf>(r);
  OfSelf<IsFinite, aten::isfinite>(r);
  OfSelf<IsReal, aten::isreal>(r);
  r.On([](Pairs& b, const aten::isclose& op) { return IsClose(b, op.self, op.other, op.rtol, op.atol, op.equal_nan); });
  r.On([](Pairs& b, const aten::nonzero& op) {
    return b.Typed(aten::nonzero{.self = NotZero(b, op.self)}, DType::I64, b.call().types[0].shape);
  });
  r.On([](Pairs& b, const aten::argwhere& op) {
    return b.Typed(aten::argwhere{.self = NotZero(b, op.self)}, DType::I64, b.call().types[0].shape);
  });
  r.On([](Pairs& b, const aten::any& op) { return b(aten::any{.self = NotZero(b, op.self)}); });
  r.On([](Pairs& b, const aten::all& op) { return b(aten::all{.self = NotZero(b, op.self)}); });
  r.On([](Pairs& b, const aten::any_dim& op) { return b(aten::any_dim{.self = NotZero(b, op.self), .dim = op.dim, .keepdim = op.keepdim}); });
  r.On([](Pairs& b, const aten::all_dim& op) { return b(aten::all_dim{.self = NotZero(b, op.self), .dim = op.dim, .keepdim = op.keepdim}); });
  r.On([](Pairs& b, const aten::any_dims& op) {
    return b.Typed(aten::any_dims{.self = NotZero(b, op.self), .dim = op.dim, .keepdim = op.keepdim}, DType::Bool, b.call().types[0].shape);
  });
  r.On([](Pairs& b, const aten::all_dims& op) {
    return b.Typed(aten::all_dims{.self = NotZero(b, op.self), .dim = op.dim, .keepdim = op.keepdim}, DType::Bool, b.call().types[0].shape);
  });
  r.On([](Pairs& b, const aten::count_nonzero& op) {
    return b.Typed(aten::count_nonzero{.self = NotZero(b, op.self), .dim = op.dim}, DType::I64, b.call().types[0].shape);
  });
  r.On([](Pairs& b, const aten::count_nonzero_dim_IntList& op) {
    return b.Typed(aten::count_nonzero_dim_IntList{.self = NotZero(b, op.self), .dim = op.dim}, DType::I64, b.call().types[0].shape);
  });

  r.On([](Pairs& b, const aten::complex& op) { return b.Pack({op.real, op.imag}); });
  r.On([](Pairs& b, const aten::polar& op) { return FromPolar(b, op.abs, op.angle); });
  OfSelf<RealPart, aten::real>(r);
  OfSelf<ImaginaryPart, aten::imag>(r);
  OfSelf<ToPair, aten::view_as_real, aten::view_as_real_copy>(r);
  OfSelf<ToComplex, aten::view_as_complex, aten::view_as_complex_copy>(r);
  OfSelf<Conjugate, aten::conj_physical, aten::_conj_physical, aten::_conj, aten::_conj_copy, aten::conj>(r);
  OfSelf<Neg, aten::_neg_view, aten::_neg_view_copy>(r);
}

}  // namespace pt2onnx
