// What one conversion shares: memory, names, symbols, locations, problems. Passed around; there are no globals.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "ir/symexpr.h"
#include "support/arena.h"
#include "support/diagnostics.h"

namespace pt2onnx {

class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;

  Arena arena;
  SymPool syms;
  Diagnostics diagnostics;
  std::vector<Loc> locs = {Loc{}};                     // [0] is nowhere
  int opset = 20;                                      // of the model to write

  std::string_view Intern(std::string_view text);      // lives as long as the context
  template <class... Parts>
  std::string_view Join(const Parts&... parts) {
    std::string text;
    (text.append(parts), ...);
    return Intern(text);
  }
  Value* NewValue(const Type& type, std::string_view name = {});
  Graph* NewGraph() { return &graphs_.emplace_back(); }
  uint32_t value_count() const { return next_value_; }  // ids are below it: side tables are vectors of this size

  // The schema of an op: from the tables, or of a custom op that was registered. Null if unknown.
  const OpSchema* FindOp(std::string_view name) const;
  const OpSchema* RegisterOp(OpSchema schema);         // gives it an id; its strings must live as long as the context

 private:
  std::deque<Graph> graphs_;
  std::unordered_set<std::string> strings_;
  std::unordered_map<std::string_view, const OpSchema*> custom_;
  uint32_t next_value_ = 1;
};

}  // namespace pt2onnx
