// The one place that turns symbolic expressions into operators. Sizes are int64, floats double, conditions bool, all of rank 0; equal
// expressions of a graph are one value. Floor division and modulo are Python's.
//
//   s0 // 2 + 1   ->   Squeeze(Shape(x, 0, 1)), Mod, Sub, Div, Add          a symbol that is known to be a size needs no Mod
#pragma once

#include "onnx/builder.h"

namespace pt2onnx {

class SymEmitter {
 public:
  explicit SymEmitter(Onnx& b) : b_(b) {}
  Val Emit(SymExpr e);                       // of its kind's dtype
  static DType DTypeOf(SymExpr e);

 private:
  Val Compute(SymExpr e);
  Val Symbol(SymExpr e);
  Val Sum(std::span<const SymExpr> terms);
  Val Power(SymExpr base, SymExpr exponent);
  Val Divisor(SymExpr e);                    // never 0: a division in a branch that is not taken must not trap
  Val Quotient(SymExpr a, SymExpr b);
  Val Round(SymExpr x, SymExpr digits);
  Val AsDouble(SymExpr e);
  Val Double(double x) { return b_.Constant(x, DType::F64); }
  Val Function(SymOp op, Val x);

  Onnx& b_;
};

}  // namespace pt2onnx
