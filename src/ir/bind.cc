#include "ir/bind.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace pt2onnx {
namespace {

template <class T>
bool Holds(const Arg& arg) {
  return std::holds_alternative<T>(arg);
}

bool IsEmptyList(const Arg& arg) {
  const ValueList* list = std::get_if<ValueList>(&arg);
  return list && list->empty();
}

template <class T, class List>
std::span<const T> Convert(Arena& arena, const List& from) {
  T* out = static_cast<T*>(arena.Allocate(sizeof(T) * std::max<size_t>(from.size(), 1), alignof(T)));
  for (size_t i = 0; i < from.size(); ++i) new (out + i) T(static_cast<T>(from[i]));
  return {out, from.size()};
}

std::optional<double> AsDouble(const Arg& arg) {
  if (const double* x = std::get_if<double>(&arg)) return *x;
  if (const int64_t* x = std::get_if<int64_t>(&arg)) return static_cast<double>(*x);
  if (const bool* x = std::get_if<bool>(&arg)) return *x ? 1. : 0.;
  return std::nullopt;
}

bool IsIntExpr(const Arg& arg) {
  const SymExpr* expr = std::get_if<SymExpr>(&arg);
  return expr && expr->kind() == SymKind::Int;
}

// One number that stands for a whole int[n]: the stride of a pooling.
bool RepeatNumber(Context& context, const ArgSchema& schema, Arg& arg) {
  const size_t n = static_cast<size_t>(std::max(schema.list_size, 1));
  if (const int64_t* x = std::get_if<int64_t>(&arg)) {
    arg = Ints(context.arena.Copy(std::vector<int64_t>(n, *x)));
  } else if (IsIntExpr(arg)) {
    arg = Dims(context.arena.Copy(std::vector<SymExpr>(n, std::get<SymExpr>(arg))));
  }
  return Holds<Ints>(arg) || Holds<Dims>(arg);
}

// Ints or Doubles as Doubles; Dims stay, they are symbolic.
bool ToDoubles(Context& context, Arg& arg) {
  if (IsEmptyList(arg)) arg = Doubles();
  if (const Ints* ints = std::get_if<Ints>(&arg)) arg = Convert<double>(context.arena, *ints);
  if (const std::optional<double> x = AsDouble(arg)) arg = Doubles(context.arena.Copy(std::vector<double>{*x}));
  return Holds<Doubles>(arg) || Holds<Dims>(arg);
}

bool ToDims(Context& context, const ArgSchema& schema, Arg& arg) {
  if (IsEmptyList(arg)) arg = Dims();
  if (!RepeatNumber(context, schema, arg)) return false;
  if (const Ints* ints = std::get_if<Ints>(&arg)) arg = Convert<SymExpr>(context.arena, *ints);
  return true;
}

bool ToValueList(Context& context, Arg& arg) {
  if (Value* const* value = std::get_if<Value*>(&arg)) arg = ValueList(context.arena.Copy(std::vector<Value*>{*value}));
  const bool empty = (Holds<Ints>(arg) && std::get<Ints>(arg).empty()) || (Holds<Dims>(arg) && std::get<Dims>(arg).empty());
  if (empty) arg = ValueList();
  return Holds<ValueList>(arg);
}

// Typed empty list out of one that nobody could type.
template <class List>
bool ToList(Arg& arg) {
  if (IsEmptyList(arg)) arg = List();
  return Holds<List>(arg);
}

}  // namespace

Arg Collapse(SymExpr expr) {
  if (expr.IsConst()) return expr.Const();
  if (const auto x = expr.TryFloat()) return *x;
  if (const auto x = expr.TryBool()) return *x;
  return expr;
}

SymExpr ToSymExpr(const Arg& arg) {
  if (const SymExpr* expr = std::get_if<SymExpr>(&arg)) return *expr;
  if (const int64_t* x = std::get_if<int64_t>(&arg)) return *x;
  if (const double* x = std::get_if<double>(&arg)) return SymExpr::Float(*x);
  if (const bool* x = std::get_if<bool>(&arg)) return SymExpr::Bool(*x);
  return SymExpr::Unknown();
}

bool Coerce(Context& context, const ArgSchema& schema, Arg& arg) {
  if (IsNone(arg)) return schema.optional || schema.type == ArgType::Any || schema.type == ArgType::Generator;
  if (schema.type != ArgType::SymInt && schema.type != ArgType::Any && Holds<SymExpr>(arg)) arg = Collapse(std::get<SymExpr>(arg));
  switch (schema.type) {
    case ArgType::TensorList:
    case ArgType::OptTensorList:
      ToValueList(context, arg);
      break;
    case ArgType::Int:
    case ArgType::Layout:
      if (const bool* x = std::get_if<bool>(&arg)) arg = int64_t{*x};
      break;
    case ArgType::SymInt:
      if (const bool* x = std::get_if<bool>(&arg)) arg = int64_t{*x};
      if (const int64_t* x = std::get_if<int64_t>(&arg)) arg = SymExpr(*x);
      break;
    case ArgType::IntList:
      if (IsEmptyList(arg)) arg = Ints();
      if (!RepeatNumber(context, schema, arg)) return false;
      if (const Dims* dims = std::get_if<Dims>(&arg); dims && std::all_of(dims->begin(), dims->end(), [](SymExpr e) { return e.IsConst(); })) {
        std::vector<int64_t> ints;
        for (const SymExpr e : *dims) ints.push_back(e.Const());
        arg = Ints(context.arena.Copy(ints));
      }
      break;
    case ArgType::SymIntList:
      return ToDims(context, schema, arg);
    case ArgType::Float:
      if (const std::optional<double> x = AsDouble(arg)) arg = *x;
      break;
    case ArgType::FloatList:
      return ToDoubles(context, arg);
    case ArgType::Bool:
      if (const int64_t* x = std::get_if<int64_t>(&arg); x && (*x == 0 || *x == 1)) arg = *x == 1;  // torch 2.5 wrote them so
      break;
    case ArgType::BoolList:
      return ToList<Bools>(arg);
    case ArgType::StrList:
      return ToList<Texts>(arg);
    case ArgType::ScalarList:
      if (IsEmptyList(arg)) arg = Ints();
      break;
    default:
      break;
  }
  return Fits(schema, arg);
}

bool Fits(const ArgSchema& schema, const Arg& arg) {
  if (IsNone(arg)) return schema.optional || schema.type == ArgType::Any || schema.type == ArgType::Generator;
  const SymExpr* expr = std::get_if<SymExpr>(&arg);
  const bool number = expr || Holds<bool>(arg) || Holds<int64_t>(arg) || Holds<double>(arg) || Holds<std::complex<double>>(arg);
  const auto is = [&](SymKind kind) { return expr && expr->kind() == kind; };
  switch (schema.type) {
    case ArgType::Tensor:
      return Holds<Value*>(arg) || number || Holds<const TensorData*>(arg);
    case ArgType::TensorList:
      return Holds<ValueList>(arg) && std::all_of(std::get<ValueList>(arg).begin(), std::get<ValueList>(arg).end(), [](Value* v) { return v; });
    case ArgType::OptTensorList:
      return Holds<ValueList>(arg);
    case ArgType::Int:
      return Holds<int64_t>(arg) || is(SymKind::Int);
    case ArgType::SymInt:
      return is(SymKind::Int);
    case ArgType::IntList:
      return Holds<Ints>(arg) || Holds<Dims>(arg);
    case ArgType::SymIntList:
      return Holds<Dims>(arg);
    case ArgType::Float:
      return Holds<double>(arg) || is(SymKind::Float) || is(SymKind::Int);
    case ArgType::FloatList:
      return Holds<Doubles>(arg) || Holds<Dims>(arg);
    case ArgType::Bool:
      return Holds<bool>(arg) || is(SymKind::Bool);
    case ArgType::BoolList:
      return Holds<Bools>(arg);
    case ArgType::Str:
      return Holds<std::string_view>(arg);
    case ArgType::StrList:
      return Holds<Texts>(arg);
    case ArgType::Scalar:
      return number;
    case ArgType::ScalarList:
      return Holds<Ints>(arg) || Holds<Doubles>(arg) || Holds<Bools>(arg) || Holds<Dims>(arg);
    case ArgType::DType:
      return Holds<DType>(arg);
    case ArgType::Layout:
      return Holds<int64_t>(arg);
    case ArgType::Device:
      return Holds<Device>(arg);
    case ArgType::MemoryFormat:
      return Holds<MemoryFormat>(arg);
    case ArgType::Graph:
      return Holds<Graph*>(arg);
    case ArgType::Generator:
    case ArgType::Any:
      return true;
  }
  return false;
}

Arg MakeList(Context& context, std::span<const Arg> elements) {
  const auto all = [&](auto test) { return std::all_of(elements.begin(), elements.end(), test); };
  const auto list = [&]<class T>(T) -> std::span<const T> {
    T* out = static_cast<T*>(context.arena.Allocate(sizeof(T) * elements.size(), alignof(T)));
    for (size_t i = 0; i < elements.size(); ++i) new (out + i) T(std::get<T>(elements[i]));
    return {out, elements.size()};
  };
  if (all([](const Arg& a) { return Holds<Value*>(a) || IsNone(a); })) {
    std::vector<Value*> values;
    for (const Arg& element : elements) values.push_back(IsNone(element) ? nullptr : std::get<Value*>(element));
    return ValueList(context.arena.Copy(values));
  }
  if (all(Holds<int64_t>)) return list(int64_t{});
  if (all(Holds<bool>)) return list(bool{});
  if (all(Holds<std::string_view>)) return list(std::string_view{});
  if (all([](const Arg& a) { return AsDouble(a) && !Holds<bool>(a); })) {
    std::vector<double> numbers;
    for (const Arg& element : elements) numbers.push_back(*AsDouble(element));
    return Doubles(context.arena.Copy(numbers));
  }
  std::vector<SymExpr> exprs;
  for (const Arg& element : elements) {
    if (!Holds<SymExpr>(element) && ToSymExpr(element).IsUnknown()) return std::monostate();
    exprs.push_back(ToSymExpr(element));
  }
  return Dims(context.arena.Copy(exprs));
}

bool SameArg(const Arg& a, const Arg& b) {
  if (a.index() != b.index()) return false;
  const auto bits = [](double x) { return std::bit_cast<uint64_t>(x); };
  return std::visit(
      [&]<class T>(const T& x) -> bool {
        const T& y = std::get<T>(b);
        if constexpr (std::is_same_v<T, double>) {
          return bits(x) == bits(y);
        } else if constexpr (std::is_same_v<T, std::complex<double>>) {
          return bits(x.real()) == bits(y.real()) && bits(x.imag()) == bits(y.imag());
        } else if constexpr (std::is_same_v<T, SymExpr>) {
          return x.IsSame(y);
        } else if constexpr (std::is_same_v<T, Dims>) {
          return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](SymExpr p, SymExpr q) { return p.IsSame(q); });
        } else if constexpr (std::is_same_v<T, Doubles>) {
          return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](double p, double q) { return bits(p) == bits(q); });
        } else if constexpr (requires {
                               x.begin();
                               x.subspan(0);
                             }) {
          return std::equal(x.begin(), x.end(), y.begin(), y.end());
        } else {
          return x == y;
        }
      },
      a);
}

}  // namespace pt2onnx
