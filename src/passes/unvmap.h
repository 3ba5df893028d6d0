// vmap as it is captured: between two marks stand ops on one sample, and what enters and leaves says along which dim the samples lie.
//
//   _vmap_increment_nesting(n)
//   %a = _add_batch_dim(%x, 1, 1)            ->    %xs = movedim(%x, 1, 0)
//   %b = mm(%a, %w)                                %ys = hop::map_impl(graph(%a, %w) { return mm(%a, %w) }, [%xs], [%w])
//   %y = _remove_batch_dim(%b, 1, n, 0)            %y = movedim(%ys, 0, 0)
//   _vmap_decrement_nesting()
//
// Where a region only computes elementwise, its ops are emitted over the whole batch instead. What does not depend on a sample stands outside.
// First among the passes that change ops, since all others take ops at their word.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rewrite/sink.h"

namespace pt2onnx {

class Unvmap : public PassSink {
 public:
  using PassSink::PassSink;
  Results Emit(const Call& call) override;
  void Output(const GraphOutput& output) override;

 private:
  struct Result {
    Value* inner;     // of one sample
    Value* promised;  // what was answered before the region had an end
    int64_t dim;
    Call call;  // its types and place
  };
  struct Region {
    SymExpr size;
    Graph* body = nullptr;
    std::unique_ptr<GraphSink> sink;
    std::vector<Value*> samples, inputs;              // batch first, outside; of one sample, inside
    std::vector<Value*> captured;                     // outside
    std::unordered_map<const Value*, Value*> inside;  // captured -> the body's input
    std::unordered_set<const Value*> batched;         // values of the body that depend on a sample
    std::vector<Result> results;
  };

  Results Mark(const Call& call);
  Results EmitAt(size_t depth, const Call& call);
  void Close();
  bool CloseElementwise(const Region& region, size_t depth);
  void CloseMapped(const Region& region, size_t depth);
  void Keep(size_t depth, const Result& result, Value* value);
  Value* MoveDim(size_t depth, Value* x, int64_t from, int64_t to, const Type& type, LocId loc);
  Value* Inside(Region& region, Value* value);
  std::vector<Arg> Resolved(std::span<const Arg> args);
  Results Refuse(const Call& call, std::string message);

  std::vector<Region> regions_;                        // innermost last
  std::unordered_map<const Value*, Value*> resolved_;  // promised -> what it is
};

}  // namespace pt2onnx
