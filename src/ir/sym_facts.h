// What follows from the ranges of symbols: bounds by interval arithmetic and simple proofs. "Provably" is one-sided: false means
// that nothing is known. Only believed ranges count (a recorded lower bound of 2 is PyTorch's 0/1 specialization and counts as 0).
//
//   ProvablyLessEqual(FloorDiv(s0, 2), s0)     // true when 0 <= s0
#pragma once

#include "ir/symexpr.h"

namespace pt2onnx {

// The integers an Int expression lies between. Of Unknown and of Floats: unbounded.
Range BoundsOf(SymExpr e);

bool ProvablyEqual(SymExpr a, SymExpr b);
bool ProvablyNotEqual(SymExpr a, SymExpr b);
bool ProvablyLess(SymExpr a, SymExpr b);
bool ProvablyLessEqual(SymExpr a, SymExpr b);
bool ProvablyNonNegative(SymExpr a);
bool ProvablyPositive(SymExpr a);
bool ProvablyDivisible(SymExpr a, int64_t by);
// A condition that is decided by the ranges.
std::optional<bool> Decide(SymExpr condition);

}  // namespace pt2onnx
