// Random programs of the training IR: inputs and buffers, views of views, writes through them, reads.
//
// A Plan is what shrinking works on: each step is a kind and some random words. A step picks tensors by the smallest hash of (word, tensor), so
// that leaving out another step rarely changes its choice; a step that finds nothing to do does nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eager.h"
#include "ir/context.h"

namespace pt2onnx::property {

struct Step {
  uint32_t id = 0;
  uint32_t kind = 0;
  std::vector<uint32_t> words;
  std::vector<Step> body, otherwise;  // of a region; of the other branch
};

struct Plan {
  Step inputs;
  std::vector<Step> steps;
  Step outputs;
};

Plan RandomPlan(uint64_t seed, int64_t steps);

struct Made {
  Graph* graph = nullptr;
  std::vector<TensorPtr> inputs;  // at the start
};
// The graph, with the types that PyTorch would record: the program is run while it is made.
Made Make(Context& context, const Plan& plan);

// Plans that are a little smaller, best first.
std::vector<Plan> Smaller(const Plan& plan);

}  // namespace pt2onnx::property
