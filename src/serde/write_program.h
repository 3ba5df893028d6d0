// Program -> model.json, as torch.export.load of torch 2.9 and later reads it.
//
// - The graph is the caller's: no op in it may write. Its inputs are the program's, in the same order, and possibly more of them.
// - Sizes become nodes (size_nodes.h), arguments that equal their default are left out, results get the names that they have, each once.
// - Changed state stands first among the outputs, as PyTorch has it; the user's outputs follow.
// - Call trees, ranges, guards, input specs and the graph's metadata stay as they were recorded.
#pragma once

#include <string>

#include "ir/context.h"
#include "ir/program.h"

namespace pt2onnx {

// The text of model.json. What can't be written is reported in the context's diagnostics (E0131).
std::string WriteProgram(Context& context, const Program& program, const Graph& graph);

// The name in the state dict of an input that the program did not have: a buffer that is a whole memory, of which others are parts.
std::string AddedStateName(const GraphInput& input);

}  // namespace pt2onnx
