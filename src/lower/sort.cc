// Order: sort, topk, unique and what is read off a sorted row. TopK orders as PyTorch does: NaN above all numbers, equal values by index.
//
//   %v, %i = aten::sort(%x : f32[s0, n], 1)    ->    %v, %i = TopK(%x, n, axis=1, largest=0)
#include "lower/reduce.h"

namespace pt2onnx {
namespace {

Extreme Sorted(Onnx& b, Val x, int64_t dim, bool descending) {
  if (x.IsScalar()) return {x, b.IntScalar(0)};
  const int64_t axis = Axis(dim, x.rank());
  const TopKOut out = b.TopK(x, b.Int1(x.dim(axis)), {.axis = axis, .largest = descending});
  return {out.Values, out.Indices};
}
Vals Both(const Extreme& x) { return {x.value, x.index}; }

Vals TopK(Onnx& b, Val x, SymExpr k, int64_t dim, bool largest, bool sorted) {
  if (x.IsScalar()) return {x, b.IntScalar(0)};
  const TopKOut out = b.TopK(x, b.Int1(k), {.axis = Axis(dim, x.rank()), .largest = largest, .sorted = sorted});
  return {out.Values, out.Indices};
}

}  // namespace

void SortRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::sort& op) { return Both(Sorted(b, op.self, op.dim, op.descending)); });
  r.On([](Onnx& b, const aten::sort_stable& op) { return Both(Sorted(b, op.self, op.dim, op.descending)); });
  r.On([](Onnx& b, const aten::argsort& op) { return Sorted(b, op.self, op.dim, op.descending).index; });
  r.On([](Onnx& b, const aten::argsort_stable& op) { return Sorted(b, op.self, op.dim, op.descending).index; });
  r.On([](Onnx& b, const aten::msort& op) { return Sorted(b, op.self, 0, false).value; });
  r.On([](Onnx& b, const aten::topk& op) { return TopK(b, op.self, op.k, op.dim, op.largest, op.sorted); });
}

}  // namespace pt2onnx
