// What an op does, given by the user as an exported program (--decompose my::op=impl.pt2): each call is replaced by the program's nodes, before
// anything else, so that its views and writes are handled like the caller's own.
//
//   %y = my::twice(%x)          impl.pt2: graph(%a) { %b = aten::add.Tensor(%a, %a)  return %b }
//     -> %y = aten::add.Tensor(%x, %x)
//
// The implementation lives in a context of its own. Sizes of its inputs are those of the call; its weights become inputs named "my::op.<name>".
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "rewrite/sink.h"

namespace pt2onnx {

struct Implementation {
  std::string op;
  Context context;
  std::optional<Program> program;
};
using Implementations = std::span<const std::unique_ptr<Implementation>>;

class InlineImplementations : public PassSink {
 public:
  InlineImplementations(Sink& down, Implementations implementations, int depth = 0, bool nested = false)
      : PassSink(down), implementations_(implementations), depth_(depth), nested_(nested), state_(implementations.size()), used_(implementations.size()) {}
  Results Emit(const Call& call) override;
  void Output(const GraphOutput& output) override;
  void Finish() override;

 private:
  void AddState();
  Results Expand(const Call& call, size_t at);

  Implementations implementations_;
  int depth_;                               // of implementations in each other
  bool nested_;                             // in a sub-graph
  bool started_ = false;
  std::vector<std::vector<Value*>> state_;  // by implementation and position among its inputs; null: no state
  std::vector<bool> used_;
};

}  // namespace pt2onnx
