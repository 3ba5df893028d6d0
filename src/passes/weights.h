// State inputs and the archive: where each one's bytes lie, and which ones share memory.
#pragma once

#include "ir/context.h"
#include "ir/program.h"

namespace pt2onnx {

// Fills GraphInput::data, ::storage and the recorded strides of every parameter, buffer and constant of the program's graph. Inputs that share
// memory that is written get one storage number; if none of them covers that memory, an input `<first name>.storage` of rank 1 that does is added.
// Tensors that can't be used keep data == null: see WeightProblem.
void BindWeights(Context& context, Program& program);

// Why an input without data can't be used, as a half sentence: "is a tensor subclass, ..."
std::string WeightProblem(const Program& program, const GraphInput& input);

}  // namespace pt2onnx
