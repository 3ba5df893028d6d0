// Norms of vectors, and distances and similarities made of them.
//
//   %d = aten::pairwise_distance(%a, %b)    ->    %d = ReduceL2(Add(Sub(%a, %b), 1e-6), axes=[-1])
#include "lower/network.h"

namespace pt2onnx {

Val VectorNorm(Onnx& b, Val x, double p, const IntVec& axes, bool keepdims) {
  if (p == 0) return b.ReduceSum(b.Cast(b.Not(b.Equal(x, b.Constant(0, x.dtype()))), x.dtype()), axes, keepdims);
  if (p == 1) return b.ReduceL1(x, axes, keepdims);
  if (p == 2) return b.ReduceL2(x, axes, keepdims);
  const Val size = b.Abs(x);
  if (std::isinf(p)) return p > 0 ? b.ReduceMax(size, axes, keepdims) : b.ReduceMin(size, axes, keepdims);
  const Val sum = b.ReduceSum(b.Pow(size, b.Constant(p, x.dtype())), axes, keepdims);
  return b.Pow(sum, b.Constant(1 / p, x.dtype()));
}

namespace {

// The norm of x - y + eps over the last dim.
Val PairwiseDistance(Onnx& b, Val x, Val y, double p, double eps, bool keepdim) {
  const Val whole = x - y;  // of integers too
  const Val d = (IsFloat(whole.dtype()) ? whole : b.Cast(whole, DType::F32)) + eps;
  return VectorNorm(b, d, p, {d.rank() - 1}, keepdim);
}

// sum(x / max(|x|, eps) * y / max(|y|, eps))
Val CosineSimilarity(Onnx& b, Val x, Val y, int64_t dim, double eps) {
  if (x.rank() == 0 && y.rank() == 0) return CosineSimilarity(b, b.Unsqueeze(x, {0}), b.Unsqueeze(y, {0}), 0, eps);
  const int64_t rank = std::max(x.rank(), y.rank());
  const int64_t from_end = Axis(dim, rank) - rank;
  const DType dtype = Promote(x.dtype(), y.dtype());
  const auto unit = [&](Val v) {
    v = b.Cast(v, dtype);
    if (v.rank() + from_end < 0) return v / b.Max(b.Abs(v), b.Constant(eps, dtype));  // broadcast along dim: one element, as often as there are
    return v / b.Max(VectorNorm(b, v, 2, {v.rank() + from_end}, true), b.Constant(eps, dtype));
  };
  // A side of size 1 along dim counts with the size of the other.
  const auto whole = [&](Val v, Val other) {
    const bool alike = v.rank() == rank && (other.rank() < rank || v.dim(from_end) == other.dim(from_end) || other.dim(from_end) == 1);
    if (alike) return v;
    DimVec shape(v.shape());
    while (std::ssize(shape) < rank) shape.insert(shape.begin(), 1);
    shape[static_cast<size_t>(rank + from_end)] = other.rank() + from_end < 0 ? SymExpr(1) : other.dim(from_end);
    return b.Expand(v, shape);
  };
  return b.ReduceSum(unit(whole(x, y)) * unit(whole(y, x)), {rank + from_end});
}

// Between every row of x [..., P, M] and every row of y [..., R, M].
Val AllDistances(Onnx& b, Val x, Val y, double p, std::optional<int64_t> mode) {
  const auto large = [](SymExpr n) { return n.IsConst() && n.Const() > 25; };
  const int64_t how = mode.value_or(0);  // 0: by products where there are many rows, 1: always, 2: never
  if (p == 2 && how != 2 && (how == 1 || large(x.dim(-2)) || large(y.dim(-2)))) {
    // |x - y|^2 = |x|^2 + |y|^2 - 2 x y
    IntVec swap = Axes(0, y.rank());
    std::swap(swap[swap.size() - 1], swap[swap.size() - 2]);
    const Val yt = b.Transpose(y, swap);
    const Val squares = b.ReduceSumSquare(x, {-1}, true) + b.ReduceSumSquare(yt, {-2}, true);
    return b.Sqrt(b.Max(squares - b.MatMul(x, yt) * 2, b.Constant(0, x.dtype())));
  }
  const Val d = b.Unsqueeze(x, {-2}) - b.Unsqueeze(y, {-3});
  return VectorNorm(b, d, p, {d.rank() - 1}, false);
}

// Between rows i < j, in the order of the pairs.
Val PairDistances(Onnx& b, Val x, double p) {
  const SymExpr n = x.dim(0);
  std::vector<double> first, second;
  Val i = b.IntScalar(0), j = i;
  if (n.IsConst()) {
    for (int64_t u = 0; u < n.Const(); ++u)
      for (int64_t v = u + 1; v < n.Const(); ++v) first.push_back(static_cast<double>(u)), second.push_back(static_cast<double>(v));
    i = b.Tensor({std::ssize(first)}, first, DType::I64);
    j = b.Tensor({std::ssize(second)}, second, DType::I64);
  } else {
    const Val pairs = b.NonZero(b.Trilu(b.Ones({n, n}, DType::I64), b.IntScalar(1)));
    i = b.Select(pairs, 0, 0);
    j = b.Select(pairs, 0, 1);
  }
  return VectorNorm(b, b.Gather(x, i, 0) - b.Gather(x, j, 0), p, {1}, false);
}

}  // namespace

void DistanceRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::pairwise_distance& op) { return PairwiseDistance(b, op.x1, op.x2, op.p, op.eps, op.keepdim); });
  r.On([](Onnx& b, const aten::cosine_similarity& op) { return CosineSimilarity(b, op.x1, op.x2, op.dim, op.eps); });
  r.On([](Onnx& b, const aten::cdist& op) { return AllDistances(b, op.x1, op.x2, op.p, op.compute_mode); });
  r.On([](Onnx& b, const aten::_cdist_forward& op) { return AllDistances(b, op.x1, op.x2, op.p, op.compute_mode.value_or(2)); });
  r.On([](Onnx& b, const aten::_euclidean_dist& op) { return AllDistances(b, op.x1, op.x2, 2, 1); });
  r.On([](Onnx& b, const aten::pdist& op) { return PairDistances(b, op.self, op.p); });
  r.On([](Onnx& b, const aten::_pdist_forward& op) { return PairDistances(b, op.self, op.p); });
}

}  // namespace pt2onnx
