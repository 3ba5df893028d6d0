// What the generated attribute structs and the builder's helpers take lists as: from braces, vectors and spans alike.
//
//   b.Transpose(x, {1, 0});   b.Conv(x, w, bias, {.pads = op.padding});   b.Reshape(x, {n, 4});
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace pt2onnx {

struct IntVec : std::vector<int64_t> {
  IntVec() = default;
  IntVec(std::initializer_list<int64_t> x) : vector(x) {}
  IntVec(std::vector<int64_t> x) : vector(std::move(x)) {}
  IntVec(Ints x) : vector(x.begin(), x.end()) {}
};

struct DimVec : std::vector<SymExpr> {
  DimVec() = default;
  DimVec(std::initializer_list<SymExpr> x) : vector(x) {}
  DimVec(std::vector<SymExpr> x) : vector(std::move(x)) {}
  DimVec(Dims x) : vector(x.begin(), x.end()) {}
  DimVec(Ints x) : vector(x.begin(), x.end()) {}
};

// An attribute that must be given: leaving it out does not compile.
template <class T>
struct Required {
  T value;
  Required(T v) : value(std::move(v)) {}
};
template <>
struct Required<std::string_view> {
  std::string_view value;
  Required(std::string_view v) : value(v) {}
  Required(const std::string& v) : value(v) {}
  Required(const char* v) : value(v) {}
};
template <>
struct Required<IntVec> {
  IntVec value;
  Required(IntVec v) : value(std::move(v)) {}
  Required(std::vector<int64_t> v) : value(std::move(v)) {}
  Required(Ints v) : value(v) {}
  Required(std::initializer_list<int64_t> v) : value(v) {}
};

}  // namespace pt2onnx
