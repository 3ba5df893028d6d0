// Mode: whether the program trains or infers, decided before anything else, because it decides what aliases and what is written.
//
//   eval:  %y = aten::batch_norm(%x, ..., training=true)    ->    training=false: no statistics are written
//          %y = aten::dropout(%x, 0.5, true)                ->    aten::dropout(%x, 0.5, false): %x itself
//
// preserve keeps what was captured, and says once which modules train. eval and train turn the flags of ops that stand in a module with such a
// flag (BatchNorm, Dropout, ...), not of calls written by hand (F.batch_norm(training=True)). Batch norm without running statistics has no
// other mode. What the capture decided in Python (if self.training) can't be turned; see docs/functionalize.md.
#pragma once

#include <set>
#include <string>
#include <unordered_set>

#include "pt2onnx/options.h"
#include "rewrite/sink.h"

namespace pt2onnx {

class Mode : public PassSink {
 public:
  Mode(Sink& down, Options::Mode mode) : PassSink(down), mode_(mode) {}
  Value* Input(const GraphInput& input) override;
  Results Emit(const Call& call) override;
  void Finish() override;

 private:
  Results EmitBodies(const Call& call);

  Options::Mode mode_;
  Mode* outer_ = nullptr;                      // of a sub-graph: the pass of the program, which warns
  std::vector<bool> counts_;                   // of a sub-graph: which inputs are num_batches_tracked
  size_t inputs_ = 0;
  std::unordered_set<const Value*> counters_;  // num_batches_tracked
  std::set<std::string> training_, fixed_;     // module paths: that train; whose mode could not be turned
};

}  // namespace pt2onnx
