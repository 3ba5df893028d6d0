// Cleanup: what nobody reads is gone, and what is computed twice is computed once. One walk back, one walk forward, one to order nodes; the only
// pass that looks at a whole graph. Programs are compared after it.
#pragma once

#include "ir/context.h"

namespace pt2onnx {

void RemoveDeadCode(Context& context, Graph& graph);

// Nodes with equal op and arguments become one; random ops and nodes with sub-graphs stay apart. Sub-graphs see what their parents computed.
void MergeEqual(Context& context, Graph& graph);

// Both, once each, since merging leaves no dead code; then the nodes in an order that does not depend on who compiled us (passes/order).
void Cleanup(Context& context, Graph& graph);

}  // namespace pt2onnx
