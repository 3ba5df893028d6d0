// Decompose: an op that has a decomposition rule is replaced by what the rule emits, which goes through this sink again.
//
//   %y = aten::addcmul(%a, %b, %c)    ->    %m = aten::mul.Tensor(%b, %c)   %y = aten::add.Tensor(%a, %m)
//
// It looks at one call and its types only, so it commutes with writing the stream down: fused with Functionalize or apart, the text is the same.
#pragma once

#include "rewrite/aten.h"
#include "rewrite/rules.h"
#include "rewrite/sink.h"

namespace pt2onnx {

class Decompose : public PassSink {
 public:
  // `keep`: ops that stay although there is a rule, by id; may be empty.
  Decompose(Sink& down, const Rules<Aten>& rules, std::vector<bool> keep = {}) : PassSink(down), rules_(rules), keep_(std::move(keep)) {}
  Results Emit(const Call& call) override;

 private:
  const Rules<Aten>& rules_;
  std::vector<bool> keep_;
};

// The results of a rule as a call's results: named, and of the type that the program recorded. `fresh`: ids from here on were made by the rule.
// Several builders' drivers share it.
Results Settle(Sink& down, Builder& builder, const Call& call, const Answer& answer, uint32_t fresh);

}  // namespace pt2onnx
