// Random numbers of rules that need them.
#pragma once

#include "lower/network.h"

namespace pt2onnx {

// Independent draws from [0, 1), or from the standard normal distribution; float32 or float64.
Val Uniform(Onnx& b, const DimVec& shape, DType dtype);
Val Normal(Onnx& b, const DimVec& shape, DType dtype);
// bool, each true with probability p.
Val Chance(Onnx& b, const DimVec& shape, double p);

}  // namespace pt2onnx
