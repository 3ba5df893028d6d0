// What a rule is written with: Val, a value that knows its type and its builder, and the arguments of generated op structs.
//
// A rule is a function (Builder, op struct) -> Val. Aten (aten -> aten) and Onnx (aten -> onnx) are the two builders; `+ - * /` work on both.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ir/context.h"
#include "rewrite/sink.h"

namespace pt2onnx {

class Builder;

// A tensor value in a rule. Cheap to copy. There is no empty Val: an optional argument is an OptVal. So an op struct whose Val is
// forgotten does not compile.
struct Val {
  Value* value;
  Builder* builder;

  Val(Value* v, Builder* b) : value(v), builder(b) {}

  DType dtype() const { return value->type.dtype; }
  int64_t rank() const { return static_cast<int64_t>(value->type.shape.size()); }
  Dims shape() const { return value->type.shape; }
  SymExpr dim(int64_t i) const { return value->type.shape[static_cast<size_t>(i < 0 ? i + rank() : i)]; }
  SymExpr numel() const;
  bool IsScalar() const { return rank() == 0; }
};
using OptVal = std::optional<Val>;
using Vals = std::vector<Val>;
using OptVals = std::vector<OptVal>;
struct Scalar;
using Scalars = std::vector<Scalar>;

// A number of the program: a Python scalar, or a symbolic one.
struct Scalar {
  std::variant<bool, int64_t, double, std::complex<double>, SymExpr> value;
  Scalar(bool x) : value(x) {}
  Scalar(int x) : value(int64_t{x}) {}
  Scalar(int64_t x) : value(x) {}
  Scalar(double x) : value(x) {}
  Scalar(std::complex<double> x) : value(x) {}
  Scalar(SymExpr x);                       // constants become int64

  bool IsBool() const;                     // also a symbolic one
  bool IsInt() const;
  bool IsFloat() const;
  bool IsComplex() const { return value.index() == 3; }
  bool IsSymbolic() const { return value.index() == 4; }
  double AsDouble() const;                 // not symbolic, not complex
  int64_t AsInt() const;                   // not symbolic, not complex; truncates
  std::complex<double> AsComplex() const;  // not symbolic
  bool Is(double x) const { return !IsSymbolic() && !IsComplex() && AsDouble() == x; }
  DType DefaultDType() const;              // Bool, I64, F32 (torch's default dtype), C64
  Arg ToArg() const;
  static Scalar FromArg(const Arg& arg);   // a number
};
using OptScalar = std::optional<Scalar>;

// The answer of a rule: a value, several, or for an undefined tensor none.
struct Answer {
  OptVals values;
  Answer(Val v) : values{v} {}
  Answer(const Vals& v) : values(v.begin(), v.end()) {}
  Answer(OptVals v) : values(std::move(v)) {}
  template <size_t N>
  Answer(const std::array<Val, N>& v) : values(v.begin(), v.end()) {}
};

class Builder {
 public:
  explicit Builder(Context& context) : context_(context) {}
  virtual ~Builder() = default;
  Builder(const Builder&) = delete;

  Context& context() const { return context_; }
  virtual Val Binary(char op, Val a, Val b) = 0;   // '+', '-', '*', '/'
  virtual Val Constant(Scalar value, DType dtype) = 0;  // rank 0
  Val Wrap(Value* value) { return {value, this}; }
  OptVal Wrap(Value* value, bool) { return value ? OptVal(Val{value, this}) : std::nullopt; }

  // A rule that can't go on: the problem is noted and its poison returned; what only depends on it stays silent.
  // message: why, in one sentence without full stop; help: what the user can do.
  Val Unsupported(std::string message, std::string help = "");
  // The first problem noted in this rule, 0 if none.
  uint32_t problem() const { return problem_; }

  // Set by the driver before each rule.
  void Begin(const Call& call) {
    call_ = &call;
    problem_ = 0;
  }
  const Call& call() const { return *call_; }

 protected:
  Context& context_;
  const Call* call_ = nullptr;
  uint32_t problem_ = 0;
};

inline Val operator+(Val a, Val b) { return a.builder->Binary('+', a, b); }
inline Val operator-(Val a, Val b) { return a.builder->Binary('-', a, b); }
inline Val operator*(Val a, Val b) { return a.builder->Binary('*', a, b); }
inline Val operator/(Val a, Val b) { return a.builder->Binary('/', a, b); }
inline Val operator+(Val a, Scalar b) { return a + a.builder->Constant(b, a.dtype()); }
inline Val operator-(Val a, Scalar b) { return a - a.builder->Constant(b, a.dtype()); }
inline Val operator*(Val a, Scalar b) { return a * a.builder->Constant(b, a.dtype()); }
inline Val operator/(Val a, Scalar b) { return a / a.builder->Constant(b, a.dtype()); }
inline Val operator+(Scalar a, Val b) { return b.builder->Constant(a, b.dtype()) + b; }
inline Val operator-(Scalar a, Val b) { return b.builder->Constant(a, b.dtype()) - b; }
inline Val operator*(Scalar a, Val b) { return b.builder->Constant(a, b.dtype()) * b; }
inline Val operator/(Scalar a, Val b) { return b.builder->Constant(a, b.dtype()) / b; }

// Reads the arguments of a call into the fields of an op struct; rewrite/op_fields.h says which types a field may have.
// What a field can't hold (a symbolic number where the rule needs a constant) becomes a problem of the builder, and the field gets some
// harmless value: the driver ignores the rule's answer then.
class FieldReader {
 public:
  FieldReader(Builder& builder, std::span<const Arg> args) : builder_(builder), args_(args) {}
  template <class T>
  T Read(size_t index) const;

 private:
  const Arg& At(size_t index) const;
  // Notes that argument `index` is no `wanted`.
  Val Refuse(size_t index, std::string_view wanted) const;
  int ListSize(size_t index) const;                // 2 of int[2]
  template <class T, class Convert>
  std::span<const T> ReadList(size_t index, Convert convert, std::string_view wanted) const;

  Builder& builder_;
  std::span<const Arg> args_;
};

}  // namespace pt2onnx
