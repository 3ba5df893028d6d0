// Plans: random ones, and smaller ones.
#include <functional>
#include <random>

#include "program_maker.h"

namespace pt2onnx::property {
namespace {

Step RandomStep(std::mt19937_64& random, uint32_t& id, int depth) {
  Step step;
  step.id = ++id;
  step.kind = static_cast<uint32_t>(random());
  for (int i = 0; i < 16; ++i) step.words.push_back(static_cast<uint32_t>(random()));
  if (depth < 2) {
    for (uint64_t n = random() % 5; n > 0; --n) step.body.push_back(RandomStep(random, id, depth + 1));
    for (uint64_t n = random() % 4; n > 0; --n) step.otherwise.push_back(RandomStep(random, id, depth + 1));
  }
  return step;
}

// Without one step, anywhere; larger pieces first.
void Without(const std::vector<Step>& steps, const std::function<void(std::vector<Step>)>& add) {
  for (size_t length = steps.size(); length > 0; length /= 2) {
    for (size_t at = 0; at + length <= steps.size(); at += length) {
      std::vector<Step> fewer = steps;
      fewer.erase(fewer.begin() + static_cast<int64_t>(at), fewer.begin() + static_cast<int64_t>(at + length));
      add(std::move(fewer));
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto replaced = [&](Step step) {
      std::vector<Step> others = steps;
      others[i] = std::move(step);
      add(std::move(others));
    };
    Without(steps[i].body, [&](std::vector<Step> body) {
      Step step = steps[i];
      step.body = std::move(body);
      replaced(step);
    });
    Without(steps[i].otherwise, [&](std::vector<Step> body) {
      Step step = steps[i];
      step.otherwise = std::move(body);
      replaced(step);
    });
  }
}

}  // namespace

Plan RandomPlan(uint64_t seed, int64_t steps) {
  std::mt19937_64 random(seed);
  uint32_t id = 0;
  Plan plan;
  plan.inputs = RandomStep(random, id, 2);
  for (int i = 0; i < 48; ++i) plan.inputs.words.push_back(static_cast<uint32_t>(random()));
  const int64_t count = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(steps));
  for (int64_t i = 0; i < count; ++i) plan.steps.push_back(RandomStep(random, id, 0));
  plan.outputs = RandomStep(random, id, 2);
  return plan;
}

std::vector<Plan> Smaller(const Plan& plan) {
  std::vector<Plan> out;
  Without(plan.steps, [&](std::vector<Step> steps) {
    out.push_back(plan);
    out.back().steps = std::move(steps);
  });
  for (Step Plan::*part : {&Plan::inputs, &Plan::outputs}) {
    for (size_t i = 0; i < (plan.*part).words.size(); ++i) {
      if (!(plan.*part).words[i]) continue;
      out.push_back(plan);
      (out.back().*part).words[i] = 0;
    }
  }
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    for (size_t i = 0; i < plan.steps[s].words.size(); ++i) {
      if (!plan.steps[s].words[i]) continue;
      out.push_back(plan);
      out.back().steps[s].words[i] = 0;
    }
  }
  return out;
}

}  // namespace pt2onnx::property
