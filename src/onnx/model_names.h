// Names of a model: every value, and every node, has one of its own across all graphs. Names that the user sees win; inner ones get a suffix.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/context.h"
#include "support/check.h"

namespace pt2onnx {

class ModelNames {
 public:
  ModelNames(const Context& context, const Graph& graph);

  std::string_view Of(const Value* value) const {
    PT2ONNX_CHECK(!values_[value->id].empty());  // a value that no node of the graph makes
    return values_[value->id];
  }
  void Alias(const Value* value, const Value* same) { values_[value->id] = values_[same->id]; }
  bool IsRead(const Value* value) const { return read_[value->id]; }
  std::string NodeName(const Context& context, const Node& node);

 private:
  void MarkReads(const Graph& graph);
  void NameVisible(const Graph& graph);
  void NameInner(const Graph& graph);
  std::string Unique(std::string base, std::unordered_set<std::string>& taken);

  std::vector<std::string> values_;  // by value id
  std::vector<bool> read_;
  std::unordered_set<std::string> taken_values_, taken_nodes_;
  std::unordered_map<std::string, int64_t> next_;  // base -> suffix to try
};

}  // namespace pt2onnx
