// Arguments of a call -> fields of an op struct, and back. Argument kinds are what the file said: a list of sizes that are all constant may
// come as Ints where Dims are asked for, a whole number as an integer where a float is; each is taken if nothing is lost.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "ir/op.h"
#include "rewrite/op_fields.h"

namespace pt2onnx {
namespace {

// The number in an argument; none if it is no number.
std::optional<Scalar> NumberOf(const Arg& arg) {
  if (const bool* x = std::get_if<bool>(&arg)) return Scalar(*x);
  if (const int64_t* x = std::get_if<int64_t>(&arg)) return Scalar(*x);
  if (const double* x = std::get_if<double>(&arg)) return Scalar(*x);
  if (const auto* x = std::get_if<std::complex<double>>(&arg)) return Scalar(*x);
  if (const SymExpr* x = std::get_if<SymExpr>(&arg)) return Scalar(*x);
  if (Value* const* x = std::get_if<Value*>(&arg); x && *x && (*x)->type.kind == Kind::Sym) return Scalar((*x)->type.value);
  return std::nullopt;
}

std::optional<SymExpr> SymOf(const Scalar& number) {
  if (const SymExpr* x = std::get_if<SymExpr>(&number.value)) return *x;
  if (const int64_t* x = std::get_if<int64_t>(&number.value)) return SymExpr(*x);
  if (const bool* x = std::get_if<bool>(&number.value)) return SymExpr(int64_t{*x});
  if (const double* x = std::get_if<double>(&number.value)) return SymExpr::Float(*x);
  return std::nullopt;
}

std::optional<double> FloatOf(const Scalar& number) {
  if (const SymExpr* x = std::get_if<SymExpr>(&number.value)) {
    if (x->TryConst()) return static_cast<double>(*x->TryConst());
    return x->TryFloat();
  }
  if (number.IsComplex()) return std::nullopt;
  return number.AsDouble();
}

std::optional<int64_t> IntOf(const Scalar& number) {
  if (const int64_t* x = std::get_if<int64_t>(&number.value)) return *x;
  if (const bool* x = std::get_if<bool>(&number.value)) return int64_t{*x};
  const std::optional<double> x = FloatOf(number);
  if (const SymExpr* sym = std::get_if<SymExpr>(&number.value); sym && sym->IsConst()) return sym->Const();
  if (x && *x == std::trunc(*x) && std::abs(*x) < 0x1p62) return static_cast<int64_t>(*x);
  return std::nullopt;
}

std::optional<bool> BoolOf(const Scalar& number) {
  if (const SymExpr* x = std::get_if<SymExpr>(&number.value); x && x->TryBool()) return x->TryBool();
  const std::optional<double> x = FloatOf(number);
  return x ? std::optional(*x != 0) : std::nullopt;
}

// The numbers in a list argument of any kind; one number counts as a list of one.
std::optional<Scalars> NumbersOf(const Arg& arg) {
  Scalars numbers;
  if (const Ints* list = std::get_if<Ints>(&arg)) {
    numbers.assign(list->begin(), list->end());
  } else if (const Dims* dims = std::get_if<Dims>(&arg)) {
    numbers.assign(dims->begin(), dims->end());
  } else if (const Doubles* doubles = std::get_if<Doubles>(&arg)) {
    numbers.assign(doubles->begin(), doubles->end());
  } else if (const Bools* bools = std::get_if<Bools>(&arg)) {
    numbers.assign(bools->begin(), bools->end());
  } else if (const ValueList* values = std::get_if<ValueList>(&arg)) {
    for (Value* value : *values) {
      if (!value || value->type.kind != Kind::Sym) return std::nullopt;
      numbers.emplace_back(value->type.value);
    }
  } else if (const std::optional<Scalar> number = NumberOf(arg)) {
    numbers.push_back(*number);
  } else {
    return std::nullopt;
  }
  return numbers;
}

template <class T>
std::span<const T> Repeat(const T& x, size_t count, Context& context) {
  T* out = static_cast<T*>(context.arena.Allocate(sizeof(T) * (count + 1), alignof(T)));
  std::uninitialized_fill_n(out, count, x);
  return {out, count};
}

// The list with each element converted, in memory of the context; none if an element can't be. One element for int[2] stands for two.
template <class T>
std::optional<std::span<const T>> ConvertList(const Arg& arg, int list_size, Context& context, std::optional<T> (*convert)(const Scalar&)) {
  const size_t wanted = static_cast<size_t>(list_size);
  if (const auto* same = std::get_if<std::span<const T>>(&arg)) return same->size() == 1 && wanted > 1 ? Repeat((*same)[0], wanted, context) : *same;
  const std::optional<Scalars> numbers = NumbersOf(arg);
  if (!numbers) return std::nullopt;
  T* out = static_cast<T*>(context.arena.Allocate(sizeof(T) * (numbers->size() + 1), alignof(T)));
  for (size_t i = 0; i < numbers->size(); ++i) {
    const std::optional<T> x = convert((*numbers)[i]);
    if (!x) return std::nullopt;
    new (out + i) T(*x);
  }
  if (numbers->size() == 1 && wanted > 1) return Repeat(out[0], wanted, context);
  return std::span<const T>(out, numbers->size());
}

constexpr Arg kNone;

bool HasSymbol(const Arg& arg) {
  const std::optional<Scalars> numbers = NumbersOf(arg);
  if (!numbers) return false;
  for (const Scalar& x : *numbers)
    if (const SymExpr* sym = std::get_if<SymExpr>(&x.value); sym && !sym->IsAnyConst()) return true;
  return false;
}

std::string_view WhatIs(const Arg& arg) {
  if (IsNone(arg)) return "missing";
  if (HasSymbol(arg)) return "symbolic";
  if (std::holds_alternative<Value*>(arg)) return "computed by the model";
  return "of another type";
}

}  // namespace

const Arg& FieldReader::At(size_t index) const { return index < args_.size() ? args_[index] : kNone; }

Val FieldReader::Refuse(size_t index, std::string_view wanted) const {
  const std::span<const ArgSchema> args = builder_.call().op->args;
  const std::string_view name = index < args.size() ? args[index].name : "?";
  return builder_.Unsupported(fmt::format("argument '{}' is {}, but only {} is supported there", name, WhatIs(At(index)), wanted));
}

int FieldReader::ListSize(size_t index) const {
  const std::span<const ArgSchema> args = builder_.call().op->args;
  return index < args.size() ? args[index].list_size : 0;
}

// A list that is refused keeps its length, so that a rule can go on with it.
template <class T, class Convert>
std::span<const T> FieldReader::ReadList(size_t index, Convert convert, std::string_view wanted) const {
  const Arg& arg = At(index);
  if (const auto list = ConvertList<T>(arg, ListSize(index), builder_.context(), convert)) return *list;
  Refuse(index, wanted);
  const std::optional<Scalars> numbers = NumbersOf(arg);
  return Repeat(T(1), std::max(numbers ? numbers->size() : 1, static_cast<size_t>(ListSize(index))), builder_.context());
}

template <>
Val FieldReader::Read<Val>(size_t index) const {
  const Arg& arg = At(index);
  if (Value* const* x = std::get_if<Value*>(&arg); x && *x) return builder_.Wrap(*x);
  // A number where the schema says Tensor: torch wraps it as a tensor of rank 0.
  if (const std::optional<Scalar> number = NumberOf(arg)) return builder_.Constant(*number, number->DefaultDType());
  return Refuse(index, "a tensor");
}

template <>
Vals FieldReader::Read<Vals>(size_t index) const {
  const Arg& arg = At(index);
  Vals values;
  if (const ValueList* list = std::get_if<ValueList>(&arg)) {
    for (Value* value : *list) values.push_back(value ? builder_.Wrap(value) : Refuse(index, "a list of tensors without None"));
    return values;
  }
  const std::optional<Scalars> numbers = NumbersOf(arg);  // also a list without elements, of any type
  if (!numbers) return {Refuse(index, "a list of tensors")};
  for (const Scalar& number : *numbers) values.push_back(builder_.Constant(number, number.DefaultDType()));
  return values;
}

template <>
OptVals FieldReader::Read<OptVals>(size_t index) const {
  OptVals values;
  if (const ValueList* list = std::get_if<ValueList>(&At(index))) {
    for (Value* value : *list) values.push_back(builder_.Wrap(value, true));
    return values;
  }
  const Vals all = Read<Vals>(index);
  return OptVals(all.begin(), all.end());
}

template <>
int64_t FieldReader::Read<int64_t>(size_t index) const {
  const std::optional<Scalar> number = NumberOf(At(index));
  if (const std::optional<int64_t> x = number ? IntOf(*number) : std::nullopt) return *x;
  Refuse(index, "a constant integer");
  return 1;
}

template <>
SymExpr FieldReader::Read<SymExpr>(size_t index) const {
  const std::optional<Scalar> number = NumberOf(At(index));
  if (const std::optional<SymExpr> x = number ? SymOf(*number) : std::nullopt) return *x;
  Refuse(index, "a number");
  return 1;
}

template <>
double FieldReader::Read<double>(size_t index) const {
  const std::optional<Scalar> number = NumberOf(At(index));
  if (const std::optional<double> x = number ? FloatOf(*number) : std::nullopt) return *x;
  Refuse(index, "a constant number");
  return 1;
}

template <>
bool FieldReader::Read<bool>(size_t index) const {
  const std::optional<Scalar> number = NumberOf(At(index));
  if (const std::optional<bool> x = number ? BoolOf(*number) : std::nullopt) return *x;
  Refuse(index, "a constant");
  return false;
}

template <>
Scalar FieldReader::Read<Scalar>(size_t index) const {
  if (const std::optional<Scalar> number = NumberOf(At(index))) return *number;
  Refuse(index, "a number");
  return 1;
}

template <>
Scalars FieldReader::Read<Scalars>(size_t index) const {
  if (std::optional<Scalars> numbers = NumbersOf(At(index))) return *std::move(numbers);
  Refuse(index, "a list of numbers");
  return {};
}

template <>
std::string_view FieldReader::Read<std::string_view>(size_t index) const {
  if (const std::string_view* x = std::get_if<std::string_view>(&At(index))) return *x;
  Refuse(index, "a text");
  return {};
}

template <>
Texts FieldReader::Read<Texts>(size_t index) const {
  const Arg& arg = At(index);
  if (const Texts* x = std::get_if<Texts>(&arg)) return *x;
  if (const std::optional<Scalars> numbers = NumbersOf(arg); !numbers || !numbers->empty()) Refuse(index, "a list of texts");
  return {};
}

template <>
DType FieldReader::Read<DType>(size_t index) const {
  if (const DType* x = std::get_if<DType>(&At(index))) return *x;
  Refuse(index, "a dtype");
  return DType::F32;
}

template <>
MemoryFormat FieldReader::Read<MemoryFormat>(size_t index) const {
  if (const MemoryFormat* x = std::get_if<MemoryFormat>(&At(index))) return *x;
  Refuse(index, "a memory format");
  return {1};
}

template <>
Ints FieldReader::Read<Ints>(size_t index) const {
  return ReadList<int64_t>(index, IntOf, "a list of constant integers");
}

template <>
Dims FieldReader::Read<Dims>(size_t index) const {
  return ReadList<SymExpr>(index, SymOf, "a list of integers");
}

template <>
Doubles FieldReader::Read<Doubles>(size_t index) const {
  return ReadList<double>(index, FloatOf, "a list of constant numbers");
}

template <>
Bools FieldReader::Read<Bools>(size_t index) const {
  return ReadList<bool>(index, BoolOf, "a list of constants");
}

template <>
Graph* FieldReader::Read<Graph*>(size_t index) const {
  if (Graph* const* x = std::get_if<Graph*>(&At(index))) return *x;
  Refuse(index, "a sub-graph");
  return builder_.context().NewGraph();
}

template <>
Arg FieldReader::Read<Arg>(size_t index) const {
  return At(index);
}

Arg ToArg(const Val& x, Context&) { return x.value; }
Arg ToArg(const Vals& x, Context& context) {
  std::vector<Value*> values;
  for (const Val& v : x) values.push_back(v.value);
  return ValueList(context.arena.Copy(values));
}
Arg ToArg(const OptVals& x, Context& context) {
  std::vector<Value*> values;
  for (const OptVal& v : x) values.push_back(v ? v->value : nullptr);
  return ValueList(context.arena.Copy(values));
}
Arg ToArg(int64_t x, Context&) { return x; }
Arg ToArg(SymExpr x, Context&) { return x; }
Arg ToArg(double x, Context&) { return x; }
Arg ToArg(bool x, Context&) { return x; }
Arg ToArg(const Scalar& x, Context&) { return x.ToArg(); }
Arg ToArg(const Scalars& x, Context& context) {
  bool whole = true, real = true;
  std::vector<SymExpr> symbolic;
  std::vector<int64_t> ints;
  std::vector<double> doubles;
  for (const Scalar& number : x) {
    symbolic.push_back(SymOf(number).value_or(SymExpr::Unknown()));
    ints.push_back(number.IsInt() || number.IsBool() ? IntOf(number).value_or(0) : 0);
    doubles.push_back(FloatOf(number).value_or(0));
    whole = whole && (number.IsInt() || number.IsBool()) && IntOf(number);
    real = real && FloatOf(number);
  }
  if (whole) return Ints(context.arena.Copy(ints));
  if (real) return Doubles(context.arena.Copy(doubles));
  return Dims(context.arena.Copy(symbolic));
}
Arg ToArg(std::string_view x, Context& context) { return context.Intern(x); }
Arg ToArg(const Texts& x, Context& context) {
  std::vector<std::string_view> texts;
  for (std::string_view text : x) texts.push_back(context.Intern(text));
  return Texts(context.arena.Copy(texts));
}
Arg ToArg(DType x, Context&) { return x; }
Arg ToArg(MemoryFormat x, Context&) { return x; }
Arg ToArg(const Ints& x, Context& context) { return Ints(context.arena.Copy(x)); }
Arg ToArg(const Dims& x, Context& context) { return Dims(context.arena.Copy(x)); }
Arg ToArg(const Doubles& x, Context& context) { return Doubles(context.arena.Copy(x)); }
Arg ToArg(const Bools& x, Context& context) { return Bools(context.arena.Copy(x)); }
Arg ToArg(Graph* x, Context&) { return x; }
Arg ToArg(const Arg& x, Context&) { return x; }

}  // namespace pt2onnx
