// Symbolic expressions from text: sympy's srepr (torch 2.6 and later), infix (torch 2.5, the keys of range_constraints, ToString).
// One grammar reads both: srepr is nothing but calls, names and quoted words. An integer beyond 64 bits and int_oo are Unknown.
//
//   "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))"   "2*s0 + 1"   "(s0//2)"   "Max(1, s0)"
#pragma once

#include <string_view>

#include "ir/symexpr.h"
#include "support/result.h"

namespace pt2onnx {

Result<SymExpr> ParseSrepr(SymPool& pool, std::string_view text);
// A bare name is the pool's symbol of that name, else a new one: Float if it is called zf<n> or zuf<n> as torch's are, else Int.
Result<SymExpr> ParseInfix(SymPool& pool, std::string_view text);
// Whether ParseInfix reads this name as a symbol of this kind; ToString writes Symbol('...') for others.
bool IsBareSymbol(std::string_view name, SymKind kind);
// SetRange with the text key of range_constraints.
Status SetRange(SymPool& pool, std::string_view key, std::optional<int64_t> lo, std::optional<int64_t> hi);

}  // namespace pt2onnx
