// Values looked up among others, and counted: one_hot, searchsorted, isin, bincount, histc.
//
//   %y = aten::bucketize.Tensor(%x, %edges)    ->    %y = ReduceSum(Cast(Less(%edges, Unsqueeze(%x, -1))), -1)
#include "lower/indexing.h"

namespace pt2onnx {
namespace {

Val OneHot(Onnx& b, const aten::one_hot& op) {
  const Val indices = AtLeast1D(b, AsIndex(b, op.self)), off_on = b.Ints({0, 1});
  const Val depth = op.num_classes < 0 ? b.ReduceMax(b.Flatten1D(indices), {0}) + 1 : b.IntScalar(op.num_classes);
  const Val out = b.OneHot(indices, depth, off_on);
  return op.self.IsScalar() ? b.Squeeze(out, {0}) : out;
}

// How many elements of the sorted row are less than the value (at most it, if right). NaN counts as larger than all.
Val CountBelow(Onnx& b, Val sorted, Val values, bool right) {
  const DType dtype = Promote(sorted.dtype(), values.dtype());
  sorted = b.Cast(sorted, dtype);
  values = b.Unsqueeze(b.Cast(values, dtype), {-1});
  if (sorted.rank() > 1) sorted = b.Unsqueeze(sorted, {-2});
  const bool ordered = !IsFloat(dtype);
  const Val below = ordered ? (right ? b.LessOrEqual(sorted, values) : b.Less(sorted, values))
                            : b.Not(right ? b.Greater(sorted, values) : b.GreaterOrEqual(sorted, values));
  return b.ReduceSum(b.Cast(below, DType::I64), {-1});
}

template <class Op>
Val SearchSorted(Onnx& b, const Op& op, Val values) {
  Val sorted = op.sorted_sequence;
  if (op.sorter) sorted = b.GatherElements(sorted, *op.sorter, {.axis = -1});
  return CountBelow(b, sorted, values, op.right || op.side == "right");
}

Val NumberLike(Onnx& b, const Scalar& x, Val other) {
  const bool fits = IsFloat(other.dtype()) || !x.IsFloat();
  return b.Constant(x, fits ? other.dtype() : DType::F32);
}

Val IsIn(Onnx& b, Val elements, Val tests, bool invert) {
  const DType dtype = Promote(elements.dtype(), tests.dtype());
  const Val equal = b.Equal(b.Unsqueeze(b.Cast(elements, dtype), {-1}), b.Flatten1D(b.Cast(tests, dtype)));
  const Val count = b.ReduceSum(b.Cast(equal, DType::I64), {-1});
  return invert ? b.Equal(count, b.IntScalar(0)) : b.Greater(count, b.IntScalar(0));
}

// out[v] = how often v occurs, or the sum of its weights
Val BinCount(Onnx& b, const aten::bincount& op) {
  const Val values = AsIndex(b, op.self), least = b.Int1(op.minlength - 1);
  const Val size = b.ReduceMax(b.Concat({values, least}, 0), {0}, true) + 1;
  const DType dtype = ResultDType(b);
  const Val each = op.weights ? b.Cast(*op.weights, dtype) : b.Expand(b.Constant(1, dtype), DimVec(values.shape()));
  return b.ScatterElements(b.ConstantOfShape(size, 0, dtype), values, each, {.reduction = "add"});
}

// Equal bins from min to max, the last one closed: element x counts in bin floor((x - min) * bins / (max - min)).
Val Histc(Onnx& b, const aten::histc& op) {
  const bool own_range = op.min.Is(0) && op.max.Is(0);
  const DType dtype = op.self.dtype(), real = IsFloat(dtype) ? dtype : DType::F32;
  const Val x = b.Cast(b.Flatten1D(op.self), real);
  Val low = b.Constant(op.min, real), high = b.Constant(op.max, real);
  if (own_range) {
    low = b.ReduceMin(x, {0});
    high = b.ReduceMax(x, {0});
  }
  if (own_range || (!op.min.IsSymbolic() && !op.max.IsSymbolic() && op.min.AsDouble() == op.max.AsDouble())) {
    const Val flat = b.Equal(low, high);
    low = b.Where(flat, low - 1, low);
    high = b.Where(flat, high + 1, high);
  }
  const Val inside = b.And(b.GreaterOrEqual(x, low), b.LessOrEqual(x, high));
  const Val position = (x - low) * b.Constant(op.bins, real) / (high - low);
  const Val bin = b.Cast(b.Where(inside, position, b.Constant(0, real)), DType::I64);
  const Val counts = b.Zeros({op.bins}, DType::I64);
  return b.ScatterElements(counts, b.Min(bin, b.IntScalar(op.bins - 1)), b.Cast(inside, DType::I64), {.reduction = "add"});
}

}  // namespace

void SearchRules(Rules<Onnx>& r) {
  r.On<OneHot>();
  r.On([](Onnx& b, const aten::searchsorted_Tensor& op) { return SearchSorted(b, op, op.self); });
  r.On([](Onnx& b, const aten::searchsorted_Scalar& op) { return SearchSorted(b, op, NumberLike(b, op.self, op.sorted_sequence)); });
  r.On([](Onnx& b, const aten::bucketize_Tensor& op) { return CountBelow(b, op.boundaries, op.self, op.right); });
  r.On([](Onnx& b, const aten::bucketize_Scalar& op) { return CountBelow(b, op.boundaries, NumberLike(b, op.self, op.boundaries), op.right); });
  r.On([](Onnx& b, const aten::isin_Tensor_Tensor& op) { return IsIn(b, op.elements, op.test_elements, op.invert); });
  r.On([](Onnx& b, const aten::isin_Tensor_Scalar& op) { return IsIn(b, op.elements, NumberLike(b, op.test_element, op.elements), op.invert); });
  r.On([](Onnx& b, const aten::isin_Scalar_Tensor& op) { return IsIn(b, NumberLike(b, op.element, op.test_elements), op.test_elements, op.invert); });
  r.On<BinCount>();
  r.On<Histc>();
}

}  // namespace pt2onnx
