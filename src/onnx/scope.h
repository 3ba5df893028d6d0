// What a builder remembers about the graph it writes, and about those around it: sub-graphs see what their parents know, and forget their own.
#pragma once

#include <string>
#include <unordered_map>

#include "onnx/builder.h"

namespace pt2onnx {

// Unlike ==, Unknown is one key.
struct SymIsSame {
  bool operator()(const SymExpr& a, const SymExpr& b) const { return a.IsSame(b); }
};
template <class T>
using SymTable = std::unordered_map<SymExpr, T, SymExprHash, SymIsSame>;

// Where a symbol is read: dim `dim` of `value` is scale * symbol + shift; dim -1: the scalar itself.
struct SymOrigin {
  Value* value;
  int64_t dim;
  int64_t scale = 1, shift = 0;
};

struct Onnx::Scope {
  Sink* sink = nullptr;
  Graph* graph = nullptr;                            // of a sub-graph
  std::unique_ptr<GraphSink> own_sink;
  uint32_t first_value = 0;                          // values of the sub-graph have ids from here on

  SymTable<SymOrigin> symbols;
  SymTable<Value*> numbers;                          // expression -> its value, rank 0: int64, double or bool as its kind
  SymTable<Value*> numbers1;                         // the same as shape [1]
  std::unordered_map<std::string, Value*> tensors;   // constants and shapes by content
  std::unordered_map<uint32_t, Value*> shapes;       // value id -> its Shape
  std::unordered_map<uint32_t, DimVec> known;        // value id -> its numbers
  std::unordered_map<uint32_t, double> scalars;      // value id -> the number of a rank-0 constant
};

// In the innermost scope that knows the key; null if none does.
template <class Scopes, class Table, class Key>
auto* FindInScopes(const Scopes& scopes, Table table, const Key& key) {
  using Mapped = std::remove_reference_t<decltype(((*scopes.back()).*table).at(key))>;
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    auto& entries = (**scope).*table;
    if (const auto found = entries.find(key); found != entries.end()) return &found->second;
  }
  return static_cast<Mapped*>(nullptr);
}

}  // namespace pt2onnx
