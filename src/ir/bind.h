// Arguments as their schema wants them: the one place that knows which Arg stands for which ArgType. The reader and the parser of the text
// form coerce what they read; the verifier asks whether an argument fits.
//
//   Tensor        Value*, or the number it was given (x + 2)       Int, Layout   int64_t; SymExpr when symbolic
//   Tensor[]      ValueList, Tensor?[] with nulls                   SymInt        SymExpr, also when constant
//   int[]         Ints; Dims when symbolic                          SymInt[]      Dims, also when constant
//   float, bool   double, bool; SymExpr when symbolic               Scalar        bool, int64_t, double, complex, or SymExpr when symbolic
#pragma once

#include <span>

#include "ir/context.h"
#include "ir/graph.h"

namespace pt2onnx {

// Makes `arg` what the schema says the argument holds: 2 becomes 2.0 for a float, [2, 2] for an int[2]. False if it cannot be that.
bool Coerce(Context& context, const ArgSchema& schema, Arg& arg);
// Whether `arg` is as Coerce leaves it.
bool Fits(const ArgSchema& schema, const Arg& arg);

// A list of what the elements are; Dims where numbers are mixed with expressions. None where they do not go together.
Arg MakeList(Context& context, std::span<const Arg> elements);

// A constant expression is the number it is.
Arg Collapse(SymExpr expr);
// A number as an expression; Unknown if it is none.
SymExpr ToSymExpr(const Arg& arg);

// The same argument, as far as a reader can tell: values by identity, numbers by bits, lists by element. Sub-graphs never are.
bool SameArg(const Arg& a, const Arg& b);

}  // namespace pt2onnx
