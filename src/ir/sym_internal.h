// Shared by the sym_*.cc files only: polynomials, the order of expressions, intervals.
#pragma once

#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "ir/symexpr.h"

namespace pt2onnx::sym {

// The order of the normal form: by structure and name, the same in every run. 0 only for identical expressions.
int Compare(const SymExpr& a, const SymExpr& b);
inline bool Less(const SymExpr& a, const SymExpr& b) { return Compare(a, b) < 0; }

// The node, in the pool of its arguments. Constants that no rule could fold have no pool: Unknown.
SymExpr MakeNode(SymOp op, SymKind kind, std::span<const SymExpr> args);
inline SymExpr MakeNode(SymOp op, SymKind kind, std::initializer_list<SymExpr> args) {
  return MakeNode(op, kind, std::span(args.begin(), args.size()));
}

bool AnyUnknown(std::initializer_list<SymExpr> args);
// A Bool as the Int that Python takes it for.
SymExpr AsNumber(SymExpr e);

// Add, Mul, TrueDiv or FloatPow of two Floats.
SymExpr FloatBinary(SymOp op, SymExpr a, SymExpr b);

// coefficient * monomial; the monomial is 1, an atom, Pow(atom, n) or a Mul of such.
struct Term {
  int64_t coefficient;
  SymExpr monomial;
};
// Terms in the order of the normal form (degree, then factors; the constant last), no coefficient is 0.
using Poly = std::vector<Term>;

Poly ToPoly(SymExpr e);
SymExpr FromPoly(const Poly& poly);
std::optional<Poly> AddPoly(const Poly& a, const Poly& b, int64_t times_b = 1);  // none: overflow
int64_t ConstantOf(const Poly& poly);
int64_t ContentOf(const Poly& poly);  // gcd of the coefficients but the constant's; 0 if there are none

struct Factor {
  SymExpr base;
  int64_t exponent;
};
std::vector<Factor> FactorsOf(SymExpr monomial);

inline bool IsPositiveConst(const SymExpr& e) { return e.IsConst() && e.Const() > 0; }
int64_t FloorDivInt(int64_t a, int64_t b);  // b > 0
int64_t FloorModInt(int64_t a, int64_t b);

// A closed interval; kInfinity and beyond is unbounded.
using Wide = __int128;
constexpr Wide kInfinity = Wide(1) << 100;
struct Interval {
  Wide lo = -kInfinity, hi = kInfinity;
};
// What holds for all values (believe = false; the normal form may use it) or within the believed ranges.
Interval IntervalOf(SymExpr e, bool believe);
std::pair<double, double> FloatIntervalOf(SymExpr e, bool believe);

}  // namespace pt2onnx::sym
