// torch's schema language: "my::op(Tensor(a!) x, int[2] size=0, *, float eps=1e-05) -> (Tensor, Tensor[] rest)".
#pragma once

#include <string_view>

#include "ir/context.h"
#include "support/result.h"

namespace pt2onnx {

// The schema of a custom operator; its parts live in the context. Not registered. Kind and view class as far as the text tells them:
// written arguments make it Inplace (Out if all are keyword-only), an alias without a write View.
Result<OpSchema> ParseSchema(std::string_view text, Context& context);

// The value that an argument has when a call leaves it out, typed as the argument is (SymInt: SymExpr, SymInt[]: Dims); None if it has none.
// A number for int[2] stands for two. `text` is that of default_text.
Arg FillDefault(Context& context, const ArgSchema& arg);

// The name as our tables have it: PyTorch also writes a plain overload as "my::op.default".
inline std::string_view WithoutDefault(std::string_view op) {
  constexpr std::string_view kDefault = ".default";
  if (op.ends_with(kDefault)) op.remove_suffix(kDefault.size());
  return op;
}

}  // namespace pt2onnx
