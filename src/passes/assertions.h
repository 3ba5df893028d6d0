// Assertions of the program (torch._check, sizes that must be in a range) as checks of the model, for --assertions keep.
//
//   aten::_assert_scalar(u0 <= 10, "u0 <= 10")    ->    Gather([1], Cast(Not(u0 <= 10)))     out of bounds where it does not hold
//
// ONNX has no operator that fails; a Gather out of bounds does, and runtimes tell its name, which holds the message. The checks' ones are the shape
// that the first output is expanded to, so that no runtime leaves them out.
#pragma once

#include <vector>

#include "onnx/builder.h"

namespace pt2onnx {

bool IsAssertion(const OpSchema& op);
std::string_view MessageOf(const Node& node);  // of an assertion; "" if it has none

class Assertions {
 public:
  explicit Assertions(Onnx& b) : b_(b) {}

  void Add(const Call& call, bool in_body);
  Value* Tie(Value* output);  // the same output, which now needs the checks

 private:
  struct Pending {  // its symbols may be defined later in the program
    SymExpr condition;
    Call call;
  };
  void Check(Val condition, const Call& call);
  void Refuse(const Call& call, std::string message);
  void Settle(bool last);

  Onnx& b_;
  std::vector<Pending> pending_;
  Vals checks_;  // int64[1] each: 1
};

}  // namespace pt2onnx
