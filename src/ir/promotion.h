// PyTorch's type promotion. Which ops compute in the common dtype of which arguments, and what they give.
// Source: torch.result_type and the elementwise promotion kinds of torch._prims_common.
#pragma once

#include <optional>
#include <span>

#include "ir/graph.h"

namespace pt2onnx {

enum class PromotionKind : uint8_t {
  Default,         // computes in and gives the common dtype
  IntToFloat,      // integers and bools are computed in the default float dtype
  AlwaysBool,      // compares in the common dtype, gives bool
  ComplexToFloat,  // as Default, but gives the real dtype
  BoolToLong,      // as Default, but bools become int64
};

struct Promotion {
  PromotionKind kind;
  uint64_t mask = 0;              // the arguments that promotion looks at and casts: tensors and Python numbers
  bool Takes(size_t arg) const { return arg < 64 && (mask >> arg & 1); }
};

// None: the op takes its arguments as they are.
std::optional<Promotion> PromotionOf(const OpSchema& op, std::span<const Arg> args);

// torch.result_type over tensors and Scalars: dimensions beat rank 0, which beats Python numbers, within a category.
DType ResultType(std::span<const Arg> args);

struct Promoted {
  DType compute;  // operands are cast to it
  DType result;
};
// Of an op with promotion.
Promoted Promote(const Promotion& promotion, std::span<const Arg> args);

}  // namespace pt2onnx
