// Which inputs of a program may be written, by a look at its ops alone: through views, lists and sub-graphs, without asking where a view lies.
#pragma once

#include <unordered_set>

#include "ir/graph.h"

namespace pt2onnx {

// Values of graph inputs. Never misses one; an input that is only copied may be among them where an op may alias or copy.
std::unordered_set<const Value*> WrittenInputs(const Graph& graph);

}  // namespace pt2onnx
