// What holds for a graph at a stage. Run between passes it names the pass that broke something; each line of the answer is one fault.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace pt2onnx {

enum class Stage : uint8_t {
  Training,    // as read: views, writes
  Functional,  // nothing writes
  Core,        // decomposed
  Typed,       // operands converted: no more promotion
  Onnx,        // ONNX operators only; dims may be unknown
};

// Empty: the graph is sound. Always: operands are defined before their use and in scope, each value once; arguments are what the schema says;
// as many results as the schema says; sizes are known (not at Onnx); symbols come from an input or an earlier result. Linear.
std::vector<std::string> Verify(const Graph& graph, Stage stage);

}  // namespace pt2onnx
