// Numbers as the bytes of a tensor: rounded to nearest even, integers modulo 2^n.
#pragma once

#include <span>
#include <vector>

#include "rewrite/builder.h"

namespace pt2onnx {

std::vector<std::byte> EncodeScalar(const Scalar& value, DType dtype);  // not a symbolic one
std::vector<std::byte> EncodeNumbers(std::span<const double> values, DType dtype);


// Element i of data in memory: of floats, and of integers and bools up to 64 bits.
double FloatAt(const TensorData& data, int64_t i);
int64_t IntAt(const TensorData& data, int64_t i);

}  // namespace pt2onnx
