// Sizes in a written program: an expression becomes nodes, as PyTorch has them.
//
//   2*s0 + 1    ->    %size = aten.sym_size.int(%x, 0)   %mul = _operator.mul(2, %size)   %add = _operator.add(%mul, 1)
//
// Where a size comes from is told by Define: the dims of tensors, and values that are numbers themselves. What is asked for before it is
// defined has no name yet.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ir/context.h"

namespace pt2onnx {

// Names of one graph: each once.
class Names {
 public:
  // `wanted`, or wanted_1, wanted_2, ... if it is taken or means something to Python.
  std::string_view Take(Context& context, std::string_view wanted);
  void Reserve(std::string_view name) { taken_.insert(name); }

 private:
  std::unordered_set<std::string_view> taken_;
  std::unordered_map<std::string_view, int> next_;
};

using Hints = std::unordered_map<SymExpr, SymExpr, SymExprHash>;  // example values, of symbols and of what else the file has them for

class SizeNodes {
 public:
  // Nodes are appended to `nodes`, a JSON list without its brackets; their values to `values`, by kind.
  SizeNodes(Context& context, const Hints& hints, Names& names, std::string& nodes)
      : context_(context), hints_(hints), names_(names), nodes_(nodes) {}

  void Define(const Value* value, std::string_view name);
  // The name of a value that is `e`; none if something in it is not defined (yet), or has no form.
  std::optional<std::string_view> NameOf(SymExpr e);
  // {"as_int": 3}, or {"as_name": "add"}: an element of a list of sizes, or the value of as_sym_int.
  std::optional<std::string> Number(SymExpr e);
  // The same as an argument: {"as_int": 3}, {"as_sym_int": {"as_name": "add"}}.
  std::optional<std::string> Argument(SymExpr e);
  // An expression as a size or stride: {"as_expr": {"expr_str": ..., "hint": ...}}.
  std::string Recorded(SymExpr e) const;

  std::string values(SymKind kind) const { return values_[static_cast<size_t>(kind)]; }

 private:
  struct Source {
    std::string_view tensor;
    size_t dim;
  };
  struct Solution {  // symbol == (expr - shift) // scale
    SymExpr expr;
    int64_t scale, shift;
  };
  std::string_view Known(SymExpr e, std::string_view name);
  std::optional<std::string_view> Emit(SymExpr result, std::string_view target, std::initializer_list<SymExpr> args);
  std::optional<std::string_view> Fold(SymExpr e, std::string_view target);
  std::optional<std::string_view> Rounded(SymExpr e, SymExpr x, bool down);
  std::string_view Node(SymExpr result, std::string_view target, std::string_view inputs);

  Context& context_;
  const Hints& hints_;
  Names& names_;
  std::string& nodes_;
  std::unordered_map<SymExpr, std::string_view, SymExprHash> known_;
  std::unordered_map<SymExpr, Source, SymExprHash> sources_;
  std::unordered_map<SymExpr, Solution, SymExprHash> solutions_;
  std::string values_[3];
};

// What a number of this kind is called in tags: as_sym_int.
std::string_view SymTag(SymKind kind);

}  // namespace pt2onnx
