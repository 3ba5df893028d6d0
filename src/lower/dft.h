// The discrete Fourier transform along one axis of a tensor of pairs [..., 2]: what the rules of FFTs and of short-time transforms share.
#pragma once

#include "lower/rules.h"

namespace pt2onnx {

// Of each axis: 0 none, 1 divided by sqrt(n), 2 by n, as ATen counts them.
Val FftComplex(Onnx& b, Val pairs, const IntVec& axes, int64_t normalization, bool forward);
// Real numbers to half the spectrum along the last axis, or to all of it: [...] -> [..., 2]
Val FftOfReal(Onnx& b, Val x, const IntVec& axes, int64_t normalization, bool onesided);
// Half a spectrum along the last axis back to `size` real numbers: [..., 2] -> [...]
Val FftToReal(Onnx& b, Val pairs, const IntVec& axes, int64_t normalization, SymExpr size);

// The columns that take `n` real numbers to `bins` pairs: row-major [n, bins, 2] of cos and -sin of 2 pi j k / n.
std::vector<double> ForwardBasis(int64_t n, int64_t bins);
// The rows that take half a spectrum to n real numbers: [n / 2 + 1, 2, n]; what it leaves out counts by symmetry. Not divided by n.
std::vector<double> InverseBasis(int64_t n);
// The most bytes that a matrix of the transform may have in the model; larger ones are done by ONNX's DFT.
inline constexpr int64_t kMatrixBytes = 1 << 20;

}  // namespace pt2onnx
