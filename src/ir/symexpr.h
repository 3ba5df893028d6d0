// Symbolic expressions: the sizes, numbers and conditions of a program with dynamic shapes.
//
// An expression is hash-consed and kept in a normal form, so that equal (as far as the normal form can tell) means identical:
// 2*(s0 + 1) - s0 and s0 + 2 are one node. Integers are sums of products with integer coefficients, multiplied out; floor division
// and modulo are Python's; floats are IEEE doubles that nothing reorders. Every rewriting is exact for all values, whatever the
// ranges of the symbols; what only follows from ranges is in sym_facts.h.
//
//   SymPool pool;
//   SymExpr n = pool.Symbol("s0");
//   FloorDiv(2 * n + 3, 2) == n + 1            // true
//   ToString(FloorDiv(n - 3, 2) + 1)           // "(s0 + 1)//2 - 1"
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/check.h"

namespace pt2onnx {

class SymPool;
struct SymNode;

enum class SymKind : uint8_t { Int, Float, Bool };

// What the parser knows under other names is normalised away: PythonMod is Mod, CleanDiv is FloorDiv, ModularIndexing(x, d, m) is
// (x//d) % m, shifts are products and floor divisions by powers of two, Gt and Ge are turned around, PowByNatural is Pow,
// Piecewise is nested Where, Identity(x) is x.
enum class SymOp : uint8_t {
  Unknown,                // a value nobody knows; absorbs everything
  Int, Float, Bool,       // constants: always inside a SymExpr, never a node
  Symbol,
  Add, Mul,               // Int: n-ary, flat, sorted, at most one constant (the last of Add, the first of Mul). Float: binary
  Pow,                    // Int ** Int, exponent >= 0
  FloorDiv, Mod,          // Int, Python's: the quotient rounds down, the remainder has the sign of the divisor
  TrueDiv,                // Float; arguments both Int (IntTrueDiv, correctly rounded) or both Float (FloatTrueDiv)
  FloatPow,               // Float ** Float
  Max, Min,               // n-ary, all Int or all Float
  Abs,                    // Int or Float, as its argument
  Floor, Ceil, Trunc, Round,  // Float -> Int; Round: half to even
  RoundDecimal,           // (Float, Int) -> Float: round(x, n)
  TruncToFloat,           // Float -> Float
  ToFloat,                // Int -> Float
  Where,                  // (Bool, a, b)
  Eq, Ne, Le, Lt,         // numbers -> Bool; of Ints only Eq, Ne and Le are left (a < b is a + 1 <= b)
  And, Or, Not,           // And, Or: n-ary, flat, sorted
  BitAnd, BitOr, BitXor,  // Int
  IsNonOverlappingAndDense,  // (sizes..., strides...) -> Int 0 or 1
  Sqrt, Cos, Cosh, Sin, Sinh, Tan, Tanh, Asin, Acos, Atan, Exp, Log, Asinh, Log2,  // Float -> Float
};

// A constant, or a node of a pool. A constant needs no pool: kind and value are in the object itself.
class SymExpr {
 public:
  constexpr SymExpr() = default;  // 0
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  constexpr SymExpr(T value) : value_(static_cast<int64_t>(value)) {}
  static SymExpr Float(double value);
  static SymExpr Bool(bool value);
  static SymExpr Unknown();

  SymOp op() const;
  SymKind kind() const;  // of Unknown: Int
  bool IsUnknown() const { return op() == SymOp::Unknown; }

  // An integer constant.
  bool IsConst() const { return node_ == nullptr; }
  int64_t Const() const {
    PT2ONNX_CHECK(IsConst());
    return value_;
  }
  std::optional<int64_t> TryConst() const { return IsConst() ? std::optional(value_) : std::nullopt; }
  std::optional<double> TryFloat() const;  // a float constant
  std::optional<bool> TryBool() const;     // a condition that is constant
  bool IsAnyConst() const;                 // a constant of any kind

  bool IsSymbol() const { return op() == SymOp::Symbol; }
  std::string_view SymbolName() const;     // of a symbol
  std::span<const SymExpr> args() const;   // empty for constants and symbols
  const SymNode* node() const { return node_; }  // null for an integer constant

  bool IsSame(const SymExpr& other) const { return node_ == other.node_ && value_ == other.value_; }
  // Known to be equal for all values. Unknown equals nothing, not even itself.
  friend bool operator==(const SymExpr& a, const SymExpr& b) { return a.IsSame(b) && !a.IsUnknown(); }

  friend SymExpr operator+(SymExpr a, SymExpr b);
  friend SymExpr operator-(SymExpr a, SymExpr b);
  friend SymExpr operator*(SymExpr a, SymExpr b);
  friend SymExpr operator-(SymExpr a);
  SymExpr& operator+=(SymExpr b) { return *this = *this + b; }
  SymExpr& operator-=(SymExpr b) { return *this = *this - b; }
  SymExpr& operator*=(SymExpr b) { return *this = *this * b; }

 private:
  friend class SymPool;
  friend struct SymExprHash;
  SymExpr(const SymNode* node, int64_t value) : node_(node), value_(value) {}

  const SymNode* node_ = nullptr;  // null: an Int constant. A fixed node stands for Float, Bool and Unknown
  int64_t value_ = 0;              // the constant (of Float: its bits); 0 for nodes
};
static_assert(sizeof(SymExpr) == 16);

struct SymExprHash {
  size_t operator()(const SymExpr& e) const {
    return std::hash<const void*>()(e.node_) * 31 + std::hash<int64_t>()(e.value_);
  }
};

struct SymNode {
  SymOp op = SymOp::Unknown;
  SymKind kind = SymKind::Int;
  mutable bool positive = false;  // of a symbol: recorded as positive, a size. Believed as >= 0 only (design: 0/1 specialization)
  uint32_t id = 0;                // dense in its pool, arguments before users
  uint64_t hash = 0;              // of the structure, the same in every run
  std::span<const SymExpr> args;
  std::string_view name;          // of a symbol
  SymPool* pool = nullptr;
};

using SymMap = std::map<std::string_view, SymExpr>;  // symbol name -> value

// Integer operators; a Float operand makes the result Float as in Python. Integer results beyond 64 bits and divisions by a constant
// zero are Unknown.
SymExpr FloorDiv(SymExpr a, SymExpr b);  // Int only
SymExpr CeilDiv(SymExpr a, SymExpr b);   // Int only: -(-a // b)
SymExpr Mod(SymExpr a, SymExpr b);       // Int only
SymExpr Pow(SymExpr a, SymExpr b);       // Int: a constant negative exponent is Unknown
SymExpr TrueDiv(SymExpr a, SymExpr b);
SymExpr Abs(SymExpr a);
SymExpr Max(SymExpr a, SymExpr b);
SymExpr Min(SymExpr a, SymExpr b);
SymExpr ToFloat(SymExpr a);
SymExpr Floor(SymExpr a);  // these four give Int
SymExpr Ceil(SymExpr a);
SymExpr Trunc(SymExpr a);
SymExpr Round(SymExpr a);
SymExpr TruncToFloat(SymExpr a);
SymExpr RoundDecimal(SymExpr a, SymExpr digits);
SymExpr UnaryFunction(SymOp op, SymExpr a);  // Sqrt ... Log2
SymExpr BitAnd(SymExpr a, SymExpr b);
SymExpr BitOr(SymExpr a, SymExpr b);
SymExpr BitXor(SymExpr a, SymExpr b);
SymExpr IsNonOverlappingAndDense(std::span<const SymExpr> sizes_then_strides);

SymExpr Where(SymExpr condition, SymExpr a, SymExpr b);
SymExpr Eq(SymExpr a, SymExpr b);
SymExpr Ne(SymExpr a, SymExpr b);
SymExpr Lt(SymExpr a, SymExpr b);
SymExpr Le(SymExpr a, SymExpr b);
SymExpr Gt(SymExpr a, SymExpr b);
SymExpr Ge(SymExpr a, SymExpr b);
SymExpr And(SymExpr a, SymExpr b);
SymExpr Or(SymExpr a, SymExpr b);
SymExpr Not(SymExpr a);

// The operator with these arguments, normalised. How generic code (substitution, parsers) rebuilds an expression.
SymExpr MakeSym(SymOp op, std::span<const SymExpr> args);

// q with a == q * b wherever b != 0, if one is found: 4*s0 by 2, s0*s1 + 2*s0 by s1 + 2.
std::optional<SymExpr> TryDivideExactly(SymExpr a, SymExpr b);

SymExpr Product(std::span<const SymExpr> factors);  // 1 if empty
SymExpr Substitute(SymExpr e, const SymMap& values);
// The symbols in e, each once, in order of name.
std::vector<SymExpr> Symbols(SymExpr e);
// The constant that e is under these values, by Python's rules; none if a symbol is missing or the operation is undefined.
std::optional<SymExpr> Evaluate(SymExpr e, const SymMap& values);
std::optional<int64_t> EvaluateInt(SymExpr e, const std::map<std::string_view, int64_t>& values);

// Readable, the same in every run, and read back by ParseInfix: "2*s0 + 1", "s0//2", "max(1, s0)", "trunc(1.7*float(s0))".
std::string ToString(SymExpr e);
// sympy's srepr as torch.export.load reads it: "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))".
std::string ToSrepr(SymExpr e);

// Integer bounds, both inclusive; none is unbounded.
struct Range {
  std::optional<int64_t> lo, hi;
  friend bool operator==(const Range&, const Range&) = default;
};

// Owns nodes and what is known about symbols; one for each conversion. Expressions of different pools must not meet.
class SymPool {
 public:
  SymPool();
  ~SymPool();
  SymPool(const SymPool&) = delete;
  SymPool& operator=(const SymPool&) = delete;

  // The symbol of that name. A name has one kind: asking again with another is a bug (see FindSymbol); positive is remembered once said.
  SymExpr Symbol(std::string_view name, SymKind kind = SymKind::Int, bool positive = false);
  std::optional<SymExpr> FindSymbol(std::string_view name) const;
  SymExpr Float(double value) { return SymExpr::Float(value); }
  SymExpr Bool(bool value) { return SymExpr::Bool(value); }

  // A range as recorded in the file, of a symbol or of an expression. Of an expression a*s + b the bounds of s follow.
  // Several for one expression hold together.
  void SetRange(SymExpr e, std::optional<int64_t> lo, std::optional<int64_t> hi);
  Range RecordedRange(SymExpr e) const;  // for printing
  Range BelievedRange(SymExpr e) const;  // a recorded lower bound of 2 counts as 0, a positive symbol is >= 0
  const std::map<std::string, std::pair<SymExpr, Range>>& recorded_ranges() const { return recorded_; }  // by ToString

  // For the functions of this header only.
  SymExpr Intern(SymOp op, SymKind kind, std::span<const SymExpr> args);

 private:
  struct Memory;
  SymExpr Insert(const SymNode& key);
  void Grow();

  std::unique_ptr<Memory> memory_;
  std::vector<const SymNode*> table_;  // open addressing
  uint32_t size_ = 0;
  std::map<std::string_view, SymExpr> symbols_;
  std::map<std::string, std::pair<SymExpr, Range>> recorded_;
  std::map<const SymNode*, Range> believed_;
};

}  // namespace pt2onnx
