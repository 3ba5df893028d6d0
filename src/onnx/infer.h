// Types of ONNX results. The dtype is always found; of a shape what follows from the operands: an unknown dim is SymExpr::Unknown(), an unknown
// rank makes the type unranked. Nothing is assumed: two dims that are not known to be equal broadcast to an unknown one.
//
//   Add(f32[s0, 1], f32[4]) -> f32[s0, 4]      NonZero(bool[s0, s1]) -> i64[2, ?]      Conv(f32[s0, 3, s1], f32[8, 3, 5]) -> f32[s0, 8, s1 - 4]
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "onnx/table.h"

namespace pt2onnx {

using KnownIntsFn = std::function<const DimVec*(Value*)>;  // the numbers in an int64 operand, where the builder knows them

std::vector<Type> InferOnnx(Context& context, OnnxOp op, std::span<const Arg> args, size_t results, const KnownIntsFn& known);

// The shape two operands broadcast to, as far as it is known.
DimVec BroadcastDims(Dims a, Dims b);
std::optional<DimVec> BroadcastTypes(std::span<const Type* const> types);

// What the rules of inference see of a call, by names of the schema.
class InferCall {
 public:
  InferCall(Context& context, OnnxOp op, std::span<const Arg> args, size_t results, const KnownIntsFn& known);

  const Type* In(int i) const;                       // null: absent; of a list its first
  std::vector<const Type*> List(int i) const;
  bool Ranked(int i) const { return In(i) && In(i)->ranked; }
  Dims Shape(int i) const { return In(i)->shape; }
  int64_t Rank(int i) const { return static_cast<int64_t>(In(i)->shape.size()); }
  const DimVec* Known(int i) const;                  // the numbers in operand i
  std::optional<IntVec> KnownConst(int i) const;     // the same if all are constants

  const Arg& Attr(std::string_view name) const;
  int64_t Int(std::string_view name, int64_t none) const;
  Ints IntList(std::string_view name) const;         // empty if absent
  std::string_view Text(std::string_view name, std::string_view none) const;
  std::optional<int64_t> Axis(int64_t axis, int64_t rank) const;  // counted from the front; none if out of range

  void Set(size_t result, const DimVec& shape);
  void SetRank(size_t result, int64_t rank);         // all dims unknown

  Context& context;
  OnnxOp op;
  std::span<const Arg> args;
  std::vector<Type> types;

 private:
  const KnownIntsFn& known_;
};

// By family; false: not one of these.
bool InferStructure(InferCall& call);  // reshape, slice, gather, reduce, ...
bool InferNetwork(InferCall& call);    // convolution, pooling, normalization, recurrent, ...

}  // namespace pt2onnx
