// A .pt2 as torch.export.save of torch 2.9 and later writes it: every entry stored at a multiple of 64 bytes, one raw file for each storage.
// Weights are copied as ranges of the file that was read, never through the heap.
#pragma once

#include <string>

#include "ir/context.h"
#include "ir/program.h"
#include "support/result.h"

namespace pt2onnx {

// `graph`: the program's graph after passes; no op in it writes. The file appears whole or not at all. Where something can't be written, that
// is in the context's diagnostics and there is no file.
Status WritePt2(Context& context, const Program& program, const Graph& graph, const std::string& path);

}  // namespace pt2onnx
