// Inverses, linear systems and the exponential of complex matrices, by a real matrix of twice the size that multiplies as they do:
//
//   A + iB   ~   [A  -B]         [X]
//                [B   A]         [Y] stands for X + iY
#include "complex/arithmetic.h"

namespace pt2onnx {
namespace {

Val Below(Pairs& b, Val top, Val bottom) { return b(aten::cat{.tensors = {top, bottom}, .dim = -2}); }
Val Doubled(Pairs& b, Val z) {
  const Val re = b.Re(z), im = b.Im(z);
  const Val top = b(aten::cat{.tensors = {re, Negative(im)}, .dim = -1}), bottom = b(aten::cat{.tensors = {im, re}, .dim = -1});
  return Below(b, top, bottom);
}
// Of the first columns the upper half is the real part, the lower the imaginary one.
Val Halved(Pairs& b, Val x, SymExpr columns) {
  const SymExpr n = FloorDiv(x.dim(-2), 2);
  if (!(columns == x.dim(-1))) x = b(aten::slice_Tensor{.self = x, .dim = -1, .start = SymExpr(0), .end = columns});
  const auto half = [&](SymExpr from, SymExpr to) { return b(aten::slice_Tensor{.self = x, .dim = -2, .start = from, .end = to}); };
  return b.Pack({half(0, n), half(n, 2 * n)});
}
std::vector<SymExpr> Twice(Val z, bool columns) {
  std::vector<SymExpr> shape(z.shape().begin(), z.shape().end());
  shape[shape.size() - 2] = 2 * shape[shape.size() - 2];
  if (columns) shape.back() = 2 * shape.back();
  return shape;
}

Val Inverse(Pairs& b, Val z) {
  return Halved(b, b.Typed(aten::linalg_inv{.A = Doubled(b, z)}, b.real(), b.Copy(Twice(z, true))), z.dim(-1));
}
Val Exponential(Pairs& b, Val z) {
  return Halved(b, b.Typed(aten::matrix_exp{.self = Doubled(b, z)}, b.real(), b.Copy(Twice(z, true))), z.dim(-1));
}

// A X = B, or X A = B as its transpose.
Val Solve(Pairs& b, Val a, Val right, bool left) {
  const bool vector = right.rank() == 1 || (right.rank() == a.rank() - 1 && SameShape(right.shape(), a.shape().first(right.shape().size())));
  if (vector) right = b(aten::unsqueeze{.self = right, .dim = -1});
  const auto turned = [&](Val x) { return left ? x : b(aten::transpose_int{.self = x, .dim0 = -2, .dim1 = -1}); };
  a = turned(a), right = turned(right);
  const std::vector<SymExpr> answer(b.call().types[0].shape.begin(), b.call().types[0].shape.end());
  std::vector<SymExpr> shape = answer;
  if (vector) shape.push_back(1);
  if (!left) std::swap(shape[shape.size() - 2], shape.back());
  shape[shape.size() - 2] = 2 * shape[shape.size() - 2];
  const Val stacked = Below(b, b.Re(right), b.Im(right));
  const Val x = turned(Halved(b, b.Typed(aten::linalg_solve{.A = Doubled(b, a), .B = stacked}, b.real(), b.Copy(shape)), right.dim(-1)));
  return vector ? b.Reshape(x, b.Copy(answer)) : x;
}

// Only the triangle counts; its diagonal is 1 if so said.
Val SolveTriangular(Pairs& b, const aten::linalg_solve_triangular& op) {
  Val a = op.self;
  const int64_t diagonal = op.unitriangular ? 1 : 0;
  a = op.upper ? b(aten::triu{.self = a, .diagonal = diagonal}) : b(aten::tril{.self = a, .diagonal = -diagonal});
  if (op.unitriangular) a = a + b.Typed(aten::eye{.n = a.dim(-1), .dtype = b.real()}, b.real(), a.shape().last(2));
  return Solve(b, a, op.B, op.left);
}

// The second result says whether it failed: 0 for each matrix.
Vals WithInfo(Pairs& b, Val x) { return {x, b(aten::full{.size = b.call().types[1].shape, .fill_value = 0, .dtype = DType::I32})}; }

}  // namespace

Val MatrixInverse(Pairs& b, Val z) { return Inverse(b, z); }

void ComplexLinalg(Rules<Pairs>& r) {
  OfSelf<Inverse, aten::inverse>(r);
  OfSelf<Exponential, aten::matrix_exp, aten::linalg_matrix_exp>(r);
  r.On([](Pairs& b, const aten::linalg_inv& op) { return Inverse(b, op.A); });
  r.On([](Pairs& b, const aten::linalg_inv_ex& op) { return WithInfo(b, Inverse(b, op.A)); });
  r.On([](Pairs& b, const aten::linalg_solve& op) { return Solve(b, op.A, op.B, op.left); });
  r.On([](Pairs& b, const aten::linalg_solve_ex& op) { return WithInfo(b, Solve(b, op.A, op.B, op.left)); });
  r.On<SolveTriangular>();
}

}  // namespace pt2onnx
