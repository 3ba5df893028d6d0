#include "rewrite/inline_call.h"

namespace pt2onnx {

Results InlineCall(const Call& call, Sink& into) {
  const Graph* body = nullptr;
  std::vector<Value*> operands;
  for (const Arg& arg : call.args) {
    if (Graph* const* graph = std::get_if<Graph*>(&arg)) body = *graph;
    if (const ValueList* list = std::get_if<ValueList>(&arg)) operands.assign(list->begin(), list->end());
  }
  std::vector<Value*> results;
  for (const Arg& output : Inline(*body, operands, into)) {
    Value* const* value = std::get_if<Value*>(&output);
    results.push_back(value ? *value : nullptr);
  }
  results.resize(call.types.size(), nullptr);
  return into.context().arena.Copy(results);
}

}  // namespace pt2onnx
