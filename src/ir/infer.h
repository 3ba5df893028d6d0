// Types of results of the ATen ops that passes and decompositions emit; what the program recorded checks it.
#pragma once

#include <vector>

#include "ir/context.h"

namespace pt2onnx {

// Empty: no row for this op. Strides are left out: emitted values are row-major.
std::vector<Type> InferTypes(Context& context, const OpSchema& op, std::span<const Arg> args);

// NumPy broadcasting. Dims that can't be decided take the other's if one is known to be 1, else `a`'s.
std::vector<SymExpr> BroadcastShape(Dims a, Dims b);

}  // namespace pt2onnx
