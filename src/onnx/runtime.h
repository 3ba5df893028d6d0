// What ONNX Runtime's CPU provider has a kernel for.
#pragma once

#include "onnx/table.h"

namespace pt2onnx {

// Of the operator's main dtype. True where nothing is known.
bool RuntimeRuns(OnnxOp op, int opset, DType dtype);

}  // namespace pt2onnx
