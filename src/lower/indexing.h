// What the rules of shapes, slices, indices and scatters share: dims counted from the front, Python's bounds, ranges of indices, and the ways
// to write into a part of a tensor.
//
//   x[lo:hi:step] = v     ReplaceAlong(b, x, axis, Progression(b, lo, step, n), v)
//   x[:, index] += v      ScatterAlong(b, x, 1, index, v, "add")
#pragma once

#include "lower/rules.h"

namespace pt2onnx {

// One rule for several ops whose structs have the same fields.
template <class... Ops, class F>
void OnEach(Rules<Onnx>& r, F) {
  (r.On([](Onnx& b, const Ops& op) { return F{}(b, op); }), ...);
}

// Counted from the front; the axis of a rank-0 tensor is that of the vector of one element.
inline int64_t Axis(int64_t dim, int64_t rank) { return dim < 0 ? dim + std::max<int64_t>(rank, 1) : dim; }

// The result's shape is recorded with each op, with -1 resolved: rules read it instead of computing it again.
// Of a result that the op does not have (batch_norm shares a rule with native_batch_norm, which saves statistics): no dims, Unknown.
inline Dims ResultShape(const Onnx& b, size_t i = 0) { return i < b.call().types.size() ? b.call().types[i].shape : Dims(); }
inline DType ResultDType(const Onnx& b, size_t i = 0) { return i < b.call().types.size() ? b.call().types[i].dtype : DType::Unknown; }

// shape with dims [axis, axis + count) replaced by `by`.
DimVec WithDims(Dims shape, int64_t axis, int64_t count, const DimVec& by);
// {first, ..., last - 1}
IntVec Axes(int64_t first, int64_t last);
// The permutation of `rank` dims that moves `from` to the places `to`, the others staying in order; and the inverse of one.
IntVec MoveDims(int64_t rank, const IntVec& from, const IntVec& to);
IntVec InversePerm(const IntVec& perm);

// A slice's bound as Python takes it: -k counts from the end, clipped to [0, n].
SymExpr ClipBound(SymExpr at, SymExpr n);
// An index into n elements, counted from the front.
SymExpr FrontIndex(SymExpr at, SymExpr n);

// A rank-0 tensor as a vector of one element; others as they are.
Val AtLeast1D(Onnx& b, Val x);
// x as int64, the dtype of ONNX indices.
Val AsIndex(Onnx& b, Val x);
// start, start + step, ...: n of them, int64. A constant where all three are.
Val Progression(Onnx& b, SymExpr start, SymExpr step, SymExpr n);
inline Val Iota(Onnx& b, SymExpr n) { return Progression(b, 0, 1, n); }
// index < 0 ? index + n : index
Val Wrapped(Onnx& b, Val index, SymExpr n);
// A vector laid along `axis` of `rank` dims: [n] -> [1, n, 1]
Val LaidAlong(Onnx& b, Val vector, int64_t axis, int64_t rank);
// x without leading dims expanded to rank
Val WithRank(Onnx& b, Val x, int64_t rank);
// rows x cols: column - row == offset
Val OnDiagonal(Onnx& b, SymExpr rows, SymExpr cols, SymExpr offset);

// The smallest or largest value of a dtype.
Scalar ExtremeOf(DType dtype, bool largest);

// One result of an op whose other results can be had: a problem that is reported only if somebody reads it.
Val LaterUnsupported(Onnx& b, size_t result, std::string message, std::string help = "");

// x with x[..., positions, ...] = v; positions: int64 vector, of distinct indices or the last one wins. Moves whole slices.
Val ReplaceAlong(Onnx& b, Val x, int64_t axis, Val positions, Val v);
// x with x[..., index[j], ...] = v[..., j, ...], combined by `reduction`: "none", "add", "mul", "max", "min".
Val ScatterAlong(Onnx& b, Val x, int64_t axis, Val index, Val v, std::string_view reduction);
// ScatterElements where x may be larger than the index, in a dtype that ONNX Runtime combines.
Val ScatterAt(Onnx& b, Val x, int64_t axis, Val index, Val v, std::string_view reduction);

}  // namespace pt2onnx
