// Calls whose sub-graph is part of the caller: no_grad and autocast regions, checkpoints.
#pragma once

#include "rewrite/sink.h"

namespace pt2onnx {

// Replays the call's sub-graph into `into`, on the call's operands; its outputs are the call's results.
Results InlineCall(const Call& call, Sink& into);

}  // namespace pt2onnx
