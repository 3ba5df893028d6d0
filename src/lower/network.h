// Small helpers that the rules of network layers share.
#pragma once

#include "lower/indexing.h"

namespace pt2onnx {

inline DimVec Joined(Dims a, Dims b) {
  DimVec out(a);
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

// The dtype that a normalization or a loss of narrow floats is computed in.
inline DType Accumulator(DType d) { return d == DType::F16 || d == DType::BF16 ? DType::F32 : d; }

// Attributes of ONNX are 32-bit floats: a number they change by rounding, where the tensor would show it, must be a constant instead.
inline bool FitsAttribute(double x, DType dtype) { return dtype != DType::F64 || static_cast<double>(static_cast<float>(x)) == x; }

// (sum |x|^p)^(1/p) over the axes, for every p from 0 to infinity; p = 0 counts what is not zero.
Val VectorNorm(Onnx& b, Val x, double p, const IntVec& axes, bool keepdims);

}  // namespace pt2onnx
