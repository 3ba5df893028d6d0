// From what Lower emitted to the model that was promised (docs/design.md, "What a converted model promises"): inputs and outputs by the user's
// names, changed state as `<name>_next` outputs with its storage as an optional input, weights that are read as initializers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/context.h"
#include "ir/program.h"
#include "pt2onnx/options.h"
#include "support/result.h"

namespace pt2onnx {

struct StatePair {
  std::string name;     // "bn.running_mean"
  std::string output;   // "bn.running_mean_next"
  std::string input;    // the graph input that holds its storage
};

struct ModelFacts {
  std::vector<StatePair> state;
  std::vector<std::pair<size_t, std::string>> inputs, outputs;  // place among the leaves of what the user gives or gets, and name
  std::vector<std::pair<int, std::string>> left_out;  // positions of user outputs that are None or text
};

// Edits the graph's inputs and outputs and removes dead code. Problems (weights without data that are read) are reported in the context.
// Error E0152: names that were asked for and can't be given.
Result<ModelFacts> FinishModel(Context& context, const Program& program, Graph& model, const Options& options);

}  // namespace pt2onnx
