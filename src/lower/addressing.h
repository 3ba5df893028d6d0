// Which elements of a tensor index tensors address, as NumPy and torch define it. The one mechanism behind reading (index) and writing (index_put).
//
//   x[:, i, j]        indices [None, i, j]        i and j are broadcast together; their dims replace those they index, or come first if those
//                                                 are separated: x[i, :, j]
//   x[mask]           indices [mask]              a mask of r dims stands for r index vectors: where it is true
#pragma once

#include "lower/indexing.h"

namespace pt2onnx {

struct Addressing {
  IntVec dims;          // of self that are addressed, in order
  Vals coords;          // for each an int64 tensor; they broadcast together
  int64_t rank = 0;     // of their broadcast
  int64_t place = 0;    // of the broadcast's dims among the result's
  OptVal stacked;       // [..., k]: all coordinates side by side, where one mask gives them

  IntVec Front(int64_t self_rank) const { return MoveDims(self_rank, dims, Axes(0, std::ssize(dims))); }  // perm that brings `dims` to the front
};

bool IsMask(Val index);
// The only index there is, if it is a mask; `dim`: the first that it covers.
struct SoleMask {
  Val mask;             // bool
  int64_t dim;
};
std::optional<SoleMask> SoleMaskOf(Onnx& b, const OptVals& indices);

// A mask of rank 0 addresses a dim of size 1 that it brings along: x[m] is x[None][m[None]]. Nothing where there is none.
struct WithMaskDims {
  Val self;
  OptVals indices;
};
std::optional<WithMaskDims> ScalarMasksSpread(Onnx& b, Val self, const OptVals& indices);

Addressing AddressingOf(Onnx& b, Val self, const OptVals& indices);
// The shape that the coordinates broadcast to: none before the model has run if masks are among them.
std::optional<DimVec> BroadcastDims(Onnx& b, const Addressing& a);
Val BroadcastShapeOf(Onnx& b, const Addressing& a);
// [..., k] int64, for GatherND and ScatterND
Val Stacked(Onnx& b, const Addressing& a);
// One int64 vector: positions in self with the addressed dims in front and merged.
Val Linear(Onnx& b, const Addressing& a, Val self);

// self[indices]
Val IndexInto(Onnx& b, Val self, const OptVals& indices);
// self[..., index, ...]; nothing is emitted where index counts all of the dim's elements.
Val GatherAlong(Onnx& b, Val self, Val index, int64_t axis);

}  // namespace pt2onnx
