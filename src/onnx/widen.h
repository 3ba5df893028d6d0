// What is valid ONNX but has no kernel in ONNX Runtime, or is not even valid for a dtype, and has an exact form in a wider one: small integers in
// int32 or int64, half floats in float32 as PyTorch computes them. Which operators may, is one table; rules never look at it.
//
//   Relu(i8)  ->  Cast(i32), Relu, Cast(i8)
#pragma once

#include <vector>

#include "onnx/builder.h"
#include "onnx/table.h"

namespace pt2onnx {

// The dtype to compute in, Unknown: as it is.
DType WiderDType(OnnxOp op, std::span<const Arg> args, int opset, const OnnxOptions& options);
DType WidenedDType(OnnxOp op, std::span<const Arg> args);              // the dtype of what would be widened
std::vector<int> WidenedInputs(OnnxOp op, std::span<const Arg> args);  // the operands that would be

// Valid ONNX that ONNX Runtime surely has no kernel for.
bool RuntimeLacks(OnnxOp op, std::span<const Arg> args, int opset, const OnnxOptions& options);

}  // namespace pt2onnx
