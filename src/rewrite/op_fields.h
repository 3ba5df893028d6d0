// The fields of op structs (gen/aten.h and its like), read from a call's arguments and written back.
//
//   Tensor Val   Tensor[] Vals   Tensor?[] OptVals   int int64_t   SymInt SymExpr   int[] Ints   SymInt[] Dims   float double   float[] Doubles
//   bool bool   bool[] Bools   str std::string_view   str[] Texts   Scalar Scalar   Scalar[] Scalars   ScalarType DType
//   MemoryFormat MemoryFormat   Graph Graph*   Any Arg   T? std::optional<T>
//
// Device, Layout, Generator and pin_memory arguments have no field: in ONNX nothing depends on them. They are written back as None.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "rewrite/builder.h"

namespace pt2onnx {

// T?: what is not listed below is an optional.
template <class T>
T FieldReader::Read(size_t index) const {
  return IsNone(At(index)) ? T() : T(Read<typename T::value_type>(index));
}
template <>
Val FieldReader::Read<Val>(size_t index) const;
template <>
Vals FieldReader::Read<Vals>(size_t index) const;
template <>
OptVals FieldReader::Read<OptVals>(size_t index) const;
template <>
int64_t FieldReader::Read<int64_t>(size_t index) const;
template <>
SymExpr FieldReader::Read<SymExpr>(size_t index) const;
template <>
double FieldReader::Read<double>(size_t index) const;
template <>
bool FieldReader::Read<bool>(size_t index) const;
template <>
Scalar FieldReader::Read<Scalar>(size_t index) const;
template <>
Scalars FieldReader::Read<Scalars>(size_t index) const;
template <>
std::string_view FieldReader::Read<std::string_view>(size_t index) const;
template <>
Texts FieldReader::Read<Texts>(size_t index) const;
template <>
DType FieldReader::Read<DType>(size_t index) const;
template <>
MemoryFormat FieldReader::Read<MemoryFormat>(size_t index) const;
template <>
Ints FieldReader::Read<Ints>(size_t index) const;
template <>
Dims FieldReader::Read<Dims>(size_t index) const;
template <>
Doubles FieldReader::Read<Doubles>(size_t index) const;
template <>
Bools FieldReader::Read<Bools>(size_t index) const;
template <>
Graph* FieldReader::Read<Graph*>(size_t index) const;
template <>
Arg FieldReader::Read<Arg>(size_t index) const;

Arg ToArg(const Val& x, Context& context);
Arg ToArg(const Vals& x, Context& context);
Arg ToArg(const OptVals& x, Context& context);
Arg ToArg(int64_t x, Context& context);
Arg ToArg(SymExpr x, Context& context);
Arg ToArg(double x, Context& context);
Arg ToArg(bool x, Context& context);
Arg ToArg(const Scalar& x, Context& context);
Arg ToArg(const Scalars& x, Context& context);
Arg ToArg(std::string_view x, Context& context);
Arg ToArg(const Texts& x, Context& context);
Arg ToArg(DType x, Context& context);
Arg ToArg(MemoryFormat x, Context& context);
Arg ToArg(const Ints& x, Context& context);
Arg ToArg(const Dims& x, Context& context);
Arg ToArg(const Doubles& x, Context& context);
Arg ToArg(const Bools& x, Context& context);
Arg ToArg(Graph* x, Context& context);
Arg ToArg(const Arg& x, Context& context);
template <class T>
Arg ToArg(const std::optional<T>& x, Context& context) {
  return x ? ToArg(*x, context) : Arg();
}

using None = std::monostate;
inline Arg ToArg(None, Context&) { return {}; }

// The arguments of an op struct, in schema order; lists and texts are copied into the context.
template <class Op>
std::vector<Arg> ToArgs(const Op& op, Context& context) {
  std::vector<Arg> args;
  op.Args([&](const auto&... fields) {
    args.reserve(sizeof...(fields));
    (args.push_back(ToArg(fields, context)), ...);
  });
  return args;
}

}  // namespace pt2onnx
