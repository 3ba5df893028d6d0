// Reductions that several rules share. PyTorch lets NaN win every maximum and minimum; ONNX Runtime's ReduceMax and ArgMax lose it now and
// then, its TopK orders NaN above all numbers and equal values by index, as PyTorch does. So floats are reduced by TopK of one.
//
//   %v, %i = aten::max.dim(%x : f32, 1)    ->    %v, %i = TopK(%x, 1, axis=1), each squeezed
#pragma once

#include "lower/network.h"

namespace pt2onnx {

// The dims of a reduction, from the front: None and an empty list are all of them.
IntVec ReducedAxes(const std::optional<Ints>& dim, int64_t rank);
IntVec ReducedAxes(const std::optional<int64_t>& dim, int64_t rank);
SymExpr CountAlong(Val x, const IntVec& axes);

// The first largest (or smallest) elements along an axis, and where they are. A tensor of rank 0 counts as a vector.
struct Extreme {
  Val value, index;
};
Extreme ExtremeAlong(Onnx& b, Val x, int64_t axis, bool largest, bool keepdim);
Val ExtremeOver(Onnx& b, Val x, IntVec axes, bool largest, bool keepdims);

// sum((x - mean)^2) / max(n - correction, 0)
struct Variance {
  Val var, mean;
};
Variance VarianceOver(Onnx& b, Val x, const IntVec& axes, double correction, bool keepdims);

// Of matrices whose rows run along dims[0], as torch.linalg.matrix_norm: 1 is the largest sum of a column, inf that of a row, 2 the largest
// singular value; negative, the smallest.
Val MatrixNorm(Onnx& b, Val x, double p, const IntVec& dims, bool keepdim);

// x != 0, bool
Val Truth(Onnx& b, Val x);
Val AnyOver(Onnx& b, Val x, const IntVec& axes, bool keepdim);
// How many are not NaN, int64.
Val CountNumbers(Onnx& b, Val x, const IntVec& axes, bool keepdim);

}  // namespace pt2onnx
