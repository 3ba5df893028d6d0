// Elementary functions as rules need them: the ONNX operator where the runtime computes it, else a formula from those it has in every float
// dtype (Exp, Log, Sqrt, Sin, Cos, Tanh). All of them keep NaN, infinities and signed zeros as PyTorch does.
//
//   Expm1(b, x)  ->  tanh(x/2) * (exp(x) + 1)          exact near 0, where exp(x) - 1 is not
#pragma once

#include <span>
#include <tuple>

#include "lower/rules.h"

namespace pt2onnx {

// The type that the program recorded for the result of this call.
inline const Type& Recorded(const Onnx& b, size_t result = 0) { return b.call().types[result]; }

// A number in x's dtype.
inline Val Like(Val x, Scalar number) { return x.builder->Constant(number, x.dtype()); }

// A rule from a function of the op's tensors: Use<aten::erfc, Erfc>(r).
template <class Op, auto f>
void Use(Rules<Onnx>& r) {
  r.On([](Onnx& b, const Op& op) { return std::apply([&](auto... x) { return f(b, x...); }, op.Tensors()); });
}
// The same for several ops.
template <auto f, class... Ops>
void UseAll(Rules<Onnx>& r) {
  (Use<Ops, f>(r), ...);
}

// Rules of the overloads with a number in place of a tensor: f(x, number), f(number, x).
template <auto f, class... Ops>
void OfScalar(Rules<Onnx>& r) {
  (r.On([](Onnx& b, const Ops& op) { return f(b, op.self, Like(op.self, op.other)); }), ...);
}
template <auto f, class... Ops>
void ScalarFirst(Rules<Onnx>& r) {
  (r.On([](Onnx& b, const Ops& op) { return f(b, Like(op.other, op.self), op.other); }), ...);
}

// Half floats as float32, which is what PyTorch computes them in; Lower rounds the result once. Other dtypes stay.
Val Wide(Onnx& b, Val x);
// As float64: for formulas that lose digits. Lower rounds the result.
Val Double(Onnx& b, Val x);

// c[0] + c[1] x + c[2] x^2 + ...
Val Polynomial(Val x, std::span<const double> c);

Val Sinh(Onnx& b, Val x);
Val Cosh(Onnx& b, Val x);
Val Tan(Onnx& b, Val x);
Val Asin(Onnx& b, Val x);
Val Acos(Onnx& b, Val x);
Val Atan(Onnx& b, Val x);
Val Atan2(Onnx& b, Val y, Val x);
Val Asinh(Onnx& b, Val x);
Val Acosh(Onnx& b, Val x);
Val Atanh(Onnx& b, Val x);
Val Expm1(Onnx& b, Val x);
Val Log1p(Onnx& b, Val x);
Val Erf(Onnx& b, Val x);
Val Erfc(Onnx& b, Val x);
Val Erfcx(Onnx& b, Val x);      // exp(x^2) erfc(x)
Val Softplus(Onnx& b, Val x);   // log(1 + exp(x))
Val Truncate(Onnx& b, Val x);      // toward zero; integers stay
Val Negate(Onnx& b, Val x);     // of any dtype
Val IsNaN(Onnx& b, Val x);      // false for integers
Val SignBit(Onnx& b, Val x);    // of -0.0 too; of NaN: false
Val Maximum(Onnx& b, Val x, Val y);  // NaN if one of them is; on bool: or
Val Minimum(Onnx& b, Val x, Val y);
Val FloorDivide(Onnx& b, Val x, Val y);  // Python's //
Val Remainder(Onnx& b, Val x, Val y);    // Python's %
Val IntPower(Onnx& b, Val x, Val exponent);      // integers
Val IntPower(Onnx& b, Val x, int64_t exponent);  // exponent >= 0

}  // namespace pt2onnx
