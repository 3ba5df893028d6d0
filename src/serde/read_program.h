// model.json -> Program: the program as it was captured, with everything that only Python's tracing needed taken out.
//
// - Arguments are bound to the op's schema by name and defaults are filled: no rule counts arguments.
// - A size that the program computes is the expression that was recorded for it, not a value: the nodes that computed it are gone.
//   aten::item and dynamic number inputs define their symbol and stay, as values of Kind::Sym.
// - Sub-graphs are arguments; lists of results are flattened.
// - Where a tensor argument was given a number (x + 2), the number stays in the argument.
#pragma once

#include "ir/context.h"
#include "ir/program.h"
#include "support/result.h"

namespace pt2onnx {

// Errors E014x. An op that no table knows is not one: it gets a schema from how it is used, so that it can be looked at.
Result<Program> ReadProgram(Context& context, Archive archive);

}  // namespace pt2onnx
