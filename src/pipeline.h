// The pipeline: which passes, in which order. Reads as a table of contents.
#pragma once

#include "ir/context.h"
#include "ir/program.h"
#include "passes/implementations.h"
#include "pt2onnx/options.h"

namespace pt2onnx {

// Functional, Core: as further passes take them. FunctionalFile, CoreFile: as a .pt2 has them, for eager PyTorch; CoreFile has decomposed
// also what has a lowering of its own, to Core ATen. Onnx: everything.
enum class Until { Functional, FunctionalFile, Core, CoreFile, Onnx };

// The program after the passes up to `until`, as a new graph. options.separate_passes: one graph a pass; the same text either way.
Graph* RunPasses(Context& context, const Program& program, Until until, const Options& options, Implementations implementations = {});

}  // namespace pt2onnx
