// Complex numbers in terms of real ones, op by op: one function for each family; ComplexRules is the only place that knows them all.
#pragma once

#include "complex/pairs.h"
#include "rewrite/rules.h"

namespace pt2onnx {

Rules<Pairs> ComplexRules();

// A rule that is a function of the op's one tensor: Val f(Pairs&, Val).
template <auto f, class... Ops>
void OfSelf(Rules<Pairs>& r) {
  (r.On([](Pairs& b, const Ops& op) { return f(b, op.self); }), ...);
}

}  // namespace pt2onnx
