// What the parser computes with, and the functions it knows by name; for sym_parse.cc only.
#pragma once

#include <string_view>
#include <vector>

#include "ir/symexpr.h"

namespace pt2onnx::sym {

// sympy has exact fractions (Rational(1, 2), Pow(x, -1), s0/2): while parsing, a value is a quotient of two Ints. What is left of a
// denominator at the end is an exact division, which floor division is.
struct Value {
  SymExpr num;
  SymExpr den = 1;  // not 1 only where num is Int
  bool IsFraction() const { return !den.IsSame(1); }
  bool IsFloat() const { return num.kind() == SymKind::Float; }
};
using Values = std::vector<Value>;

SymExpr Whole(const Value& v);
Value Add(const Value& a, const Value& b);
Value Multiply(const Value& a, const Value& b);
Value Divide(const Value& a, const Value& b);
Value Power(const Value& base, const Value& exponent);
Value Compare(SymExpr (*relation)(SymExpr, SymExpr), const Value& a, const Value& b);
Value ShiftLeft(const Value& a, const Value& b);
Value ShiftRight(const Value& a, const Value& b);

struct Function {
  std::string_view name;
  int min_args, max_args;  // -1: any number
  Value (*apply)(const Values& args);
};
// sympy's, torch's and ToString's functions; null if there is none of that name.
const Function* FindFunction(std::string_view name);

}  // namespace pt2onnx::sym
