// From the problems of a conversion to those of a Report.
#pragma once

#include "ir/context.h"
#include "ir/graph.h"
#include "pt2onnx/options.h"
#include "support/result.h"

namespace pt2onnx {

// Adds every warning, and every problem that was reported: those of one operator and message as one, with the first one's place and how many
// there are. In the order of their first occurrence. program: what was read, where the node is shown from; null if reading failed.
void AddProblems(Context& context, const Graph* program, Report& report);

// Problems whose poison is still in a graph without dead code: they reach something.
void ReportPoison(Diagnostics& diagnostics, const Graph& graph);

// Why a file could not be read or written.
void AddError(const Error& error, Report& report);

}  // namespace pt2onnx
