// Families of orthogonal polynomials, by their recurrence, for all elements at once: a loop up to the largest degree, in which each element
// keeps its own degree's value.
//
//   p(0) = 1   p(1) = c1 z + c0   p(k + 1) = ((a0 + a1 k) z + (d0 + d1 k)) p(k) - (e0 + e1 k) p(k - 1), all over (k + 1) for some
#include "lower/special.h"

namespace pt2onnx {
namespace {

struct Family {
  double c1, c0;          // p(1)
  double a0, a1, d0, d1;  // what multiplies p(k)
  double e0, e1;          // what multiplies p(k - 1)
  bool over = false;      // divided by k + 1
  bool shifted = false;   // z = 2x - 1, else x
};
constexpr Family kChebyshevT = {1, 0, 2, 0, 0, 0, 1, 0}, kChebyshevU = {2, 0, 2, 0, 0, 0, 1, 0}, kChebyshevV = {2, -1, 2, 0, 0, 0, 1, 0},
                 kChebyshevW = {2, 1, 2, 0, 0, 0, 1, 0}, kShiftedT = {1, 0, 2, 0, 0, 0, 1, 0, false, true}, kShiftedU = {2, 0, 2, 0, 0, 0, 1, 0, false, true},
                 kShiftedV = {2, -1, 2, 0, 0, 0, 1, 0, false, true}, kShiftedW = {2, 1, 2, 0, 0, 0, 1, 0, false, true},
                 kHermiteH = {2, 0, 2, 0, 0, 0, 0, 2}, kHermiteHe = {1, 0, 1, 0, 0, 0, 0, 1}, kLaguerreL = {-1, 1, -1, 0, 1, 2, 0, 1, true},
                 kLegendreP = {1, 0, 1, 2, 0, 0, 0, 1, true};

// p(n) of x; 0 for n < 0. n is cut to a whole number.
template <const Family& family>
Val Orthogonal(Onnx& b, Val x, Val n) {
  const Type& type = Recorded(b);
  x = b.Expand(Double(b, x), type.shape);
  const Val degree = b.Expand(b.Cast(n, DType::I64), type.shape);
  const Val zero = Like(x, 0.0), one = Like(x, 1.0), first = b.Expand(one, type.shape);
  const Val z = family.shifted ? x * 2.0 - 1.0 : x;
  const Val start = b.Where(b.Equal(degree, b.IntScalar(0)), one, b.Expand(zero, type.shape));
  const Val largest = b.ReduceMax(b.Concat({b.Flatten1D(degree), b.Ints({0})}, 0), {0});
  // Step i has p(i) and p(i + 1), takes p(i + 1) where that is asked for, and makes p(i + 2).
  return b.Loop(largest, {}, {first, z * family.c1 + family.c0, start}, [&](Onnx&, Val i, const Vals& now) -> LoopStep {
    const Val index = i + b.IntScalar(1), k = b.Cast(index, DType::F64);
    const Val chosen = b.Where(b.Equal(degree, index), now[1], now[2]);
    const Val slope = family.a1 == 0 ? Like(x, family.a0) : k * family.a1 + family.a0;
    const Val factor = family.d0 == 0 && family.d1 == 0 ? z * slope : z * slope + (k * family.d1 + family.d0);
    Val next = factor * now[1] - (family.e1 == 0 ? Like(x, family.e0) : k * family.e1 + family.e0) * now[0];
    if (family.over) next = next / (k + 1.0);
    return {b.Constant(true, DType::Bool), {now[1], next, chosen}, {}};
  })[2];
}

// Both tensors, a degree for all, a point for all.
template <const Family& family, class Both, class OneDegree, class OnePoint>
void Polynomials(Rules<Onnx>& r) {
  r.On([](Onnx& b, const Both& op) { return Orthogonal<family>(b, op.x, op.n); });
  r.On([](Onnx& b, const OneDegree& op) { return Orthogonal<family>(b, op.x, b.Constant(op.n, DType::F64)); });
  r.On([](Onnx& b, const OnePoint& op) { return Orthogonal<family>(b, b.Constant(op.x, DType::F64), op.n); });
}

}  // namespace

void PolynomialRules(Rules<Onnx>& r) {
  using namespace aten;
  Polynomials<kChebyshevT, special_chebyshev_polynomial_t, special_chebyshev_polynomial_t_n_scalar, special_chebyshev_polynomial_t_x_scalar>(r);
  Polynomials<kChebyshevU, special_chebyshev_polynomial_u, special_chebyshev_polynomial_u_n_scalar, special_chebyshev_polynomial_u_x_scalar>(r);
  Polynomials<kChebyshevV, special_chebyshev_polynomial_v, special_chebyshev_polynomial_v_n_scalar, special_chebyshev_polynomial_v_x_scalar>(r);
  Polynomials<kChebyshevW, special_chebyshev_polynomial_w, special_chebyshev_polynomial_w_n_scalar, special_chebyshev_polynomial_w_x_scalar>(r);
  Polynomials<kShiftedT, special_shifted_chebyshev_polynomial_t, special_shifted_chebyshev_polynomial_t_n_scalar,
              special_shifted_chebyshev_polynomial_t_x_scalar>(r);
  Polynomials<kShiftedU, special_shifted_chebyshev_polynomial_u, special_shifted_chebyshev_polynomial_u_n_scalar,
              special_shifted_chebyshev_polynomial_u_x_scalar>(r);
  Polynomials<kShiftedV, special_shifted_chebyshev_polynomial_v, special_shifted_chebyshev_polynomial_v_n_scalar,
              special_shifted_chebyshev_polynomial_v_x_scalar>(r);
  Polynomials<kShiftedW, special_shifted_chebyshev_polynomial_w, special_shifted_chebyshev_polynomial_w_n_scalar,
              special_shifted_chebyshev_polynomial_w_x_scalar>(r);
  Polynomials<kHermiteH, special_hermite_polynomial_h, special_hermite_polynomial_h_n_scalar, special_hermite_polynomial_h_x_scalar>(r);
  Polynomials<kHermiteHe, special_hermite_polynomial_he, special_hermite_polynomial_he_n_scalar, special_hermite_polynomial_he_x_scalar>(r);
  Polynomials<kLaguerreL, special_laguerre_polynomial_l, special_laguerre_polynomial_l_n_scalar, special_laguerre_polynomial_l_x_scalar>(r);
  Polynomials<kLegendreP, special_legendre_polynomial_p, special_legendre_polynomial_p_n_scalar, special_legendre_polynomial_p_x_scalar>(r);
}

}  // namespace pt2onnx
