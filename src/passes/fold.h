// Fold: what is computed from constants only is a constant, as long as it stays small. Ranges, masks and tables of frequencies of a program with
// fixed sizes become numbers.
//
//   Mul(Unsqueeze(Range(0, 3, 1), 1), 2)    ->    Constant [[0], [2], [4]]
//
// Numbers are those of the runtime: operators that IEEE 754 rounds exactly, integers modulo 2^n, and elementary functions rounded from float64.
// What would be large stays computed, and so do operators that this file does not know. Sub-graphs too.
#pragma once

#include "ir/context.h"

namespace pt2onnx {

void FoldConstants(Context& context, Graph& graph);

}  // namespace pt2onnx
