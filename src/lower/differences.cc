// torch.gradient: derivatives by finite differences, second order inside, of order edge_order at the two ends.
//
//   h even steps:  (f[i+1] - f[i-1]) / 2h                                        ends: (f[1] - f[0]) / h, or (-3 f[0] + 4 f[1] - f[2]) / 2h
//   steps p, q:    -q/(p(p+q)) f[i-1] + (q-p)/(pq) f[i] + p/(q(p+q)) f[i+1]       ends: the same parabola's slope at its ends
#include "lower/indexing.h"

namespace pt2onnx {
namespace {

// f along one dim
struct Line {
  Onnx& b;
  Val f;
  int64_t dim;
  SymExpr n;
  Val At(SymExpr i) const { return b.Slice(f, dim, i, i + 1); }
  Val From(SymExpr i, SymExpr end) const { return b.Slice(f, dim, i, end); }
};

Val Even(const Line& l, Val h, int64_t order) {
  const SymExpr n = l.n;
  const Val inside = (l.From(2, n) - l.From(0, n - 2)) / (h * 2);
  if (order == 1) return l.b.Concat({(l.At(1) - l.At(0)) / h, inside, (l.At(n - 1) - l.At(n - 2)) / h}, l.dim);
  const Val first = (l.At(0) * -1.5 + l.At(1) * 2 - l.At(2) * 0.5) / h, last = (l.At(n - 1) * 1.5 - l.At(n - 2) * 2 + l.At(n - 3) * 0.5) / h;
  return l.b.Concat({first, inside, last}, l.dim);
}

// The parabola through three points, steps p and q apart: its slope at the first, the middle and the last.
Val SlopeFirst(Val p, Val q, Val x, Val y, Val z) { return (p + q) / (p * q) * y - (p * 2 + q) / (p * (p + q)) * x - p / (q * (p + q)) * z; }
Val SlopeMiddle(Val p, Val q, Val x, Val y, Val z) { return (q - p) / (p * q) * y - q / (p * (p + q)) * x + p / (q * (p + q)) * z; }
Val SlopeLast(Val p, Val q, Val x, Val y, Val z) { return q / (p * (p + q)) * x - (p + q) / (p * q) * y + (p + q * 2) / (q * (p + q)) * z; }

Val Uneven(const Line& l, Val at, int64_t order) {
  Onnx& b = l.b;
  const SymExpr n = l.n;
  const Val steps = b.Slice(at, 0, 1, n) - b.Slice(at, 0, 0, n - 1);
  const auto step = [&](SymExpr from, SymExpr end) { return LaidAlong(b, b.Slice(steps, 0, from, end), l.dim, l.f.rank()); };
  const auto one = [&](SymExpr i) { return step(i, i + 1); };
  const Val inside = SlopeMiddle(step(0, n - 2), step(1, n - 1), l.From(0, n - 2), l.From(1, n - 1), l.From(2, n));
  if (order == 1) return b.Concat({(l.At(1) - l.At(0)) / one(0), inside, (l.At(n - 1) - l.At(n - 2)) / one(n - 2)}, l.dim);
  return b.Concat({SlopeFirst(one(0), one(1), l.At(0), l.At(1), l.At(2)), inside, SlopeLast(one(n - 3), one(n - 2), l.At(n - 3), l.At(n - 2), l.At(n - 1))}, l.dim);
}

IntVec AllOrOne(Val x, const std::optional<int64_t>& dim) { return dim ? IntVec{*dim} : Axes(0, x.rank()); }

// of the k-th of the dims, by f(line, k)
template <class F>
Vals Each(Onnx& b, Val x, const IntVec& dims, F f) {
  Vals out;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t dim = Axis(dims[k], x.rank());
    const Val self = b.Cast(x, ResultDType(b, k));
    out.push_back(f(Line{b, self, dim, x.dim(dim)}, k));
  }
  return out;
}
Vals ByNumber(Onnx& b, Val x, const IntVec& dims, const Scalar& h, int64_t order) {
  return Each(b, x, dims, [&](const Line& l, size_t) { return Even(l, b.Constant(h, l.f.dtype()), order); });
}
Vals ByNumbers(Onnx& b, Val x, const IntVec& dims, const Scalars& h, int64_t order) {
  return Each(b, x, dims, [&](const Line& l, size_t k) { return Even(l, b.Constant(h[k], l.f.dtype()), order); });
}
Vals ByPlaces(Onnx& b, Val x, const IntVec& dims, const Vals& at, int64_t order) {
  return Each(b, x, dims, [&](const Line& l, size_t k) { return Uneven(l, b.Cast(at[k], l.f.dtype()), order); });
}

}  // namespace

void DifferenceRules(Rules<Onnx>& r) {
  using namespace aten;
  r.On([](Onnx& b, const gradient_array& op) { return ByNumber(b, op.self, op.dim, 1, op.edge_order); });
  r.On([](Onnx& b, const gradient_scalararray& op) { return ByNumber(b, op.self, op.dim, op.spacing, op.edge_order); });
  r.On([](Onnx& b, const gradient_scalarint& op) { return ByNumber(b, op.self, AllOrOne(op.self, op.dim), op.spacing.value_or(1), op.edge_order); });
  r.On([](Onnx& b, const gradient_scalarrayarray& op) { return ByNumbers(b, op.self, op.dim, op.spacing, op.edge_order); });
  r.On([](Onnx& b, const gradient_scalarrayint& op) { return ByNumbers(b, op.self, AllOrOne(op.self, op.dim), op.spacing, op.edge_order); });
  r.On([](Onnx& b, const gradient_tensorarray& op) { return ByPlaces(b, op.self, op.dim, op.spacing, op.edge_order); });
  r.On([](Onnx& b, const gradient_tensorarrayint& op) { return ByPlaces(b, op.self, AllOrOne(op.self, op.dim), op.spacing, op.edge_order); });
}

}  // namespace pt2onnx
