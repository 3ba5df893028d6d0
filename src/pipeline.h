// The pipeline: which passes, in which order. Reads as a table of contents.
#pragma once

#include "ir/context.h"
#include "ir/program.h"
#include "passes/implementations.h"
#include "pt2onnx/options.h"

namespace pt2onnx {

class WriteLog;

// CoreAten: decomposed is also what has a lowering of its own, for programs that are written; Core: as lowering takes it. Onnx: everything.
enum class Until { Functional, Core, CoreAten, Onnx };

// The program after the passes up to `until`, as a new graph. options.separate_passes: one graph a pass; the same text either way.
// log: told of each write; may be null.
Graph* RunPasses(Context& context, const Program& program, Until until, const Options& options, Implementations implementations = {}, WriteLog* log = nullptr);

}  // namespace pt2onnx
