#include "rewrite/sink.h"

#include "ir/op_table.h"
#include "support/check.h"

namespace pt2onnx {
namespace {

// Source value -> value downstream.
class ValueMap {
 public:
  void Set(const Value* from, Value* to) {
    if (from->id >= to_.size()) to_.resize(from->id + from->id / 2 + 16, nullptr);
    to_[from->id] = to;
  }
  Value* operator()(const Value* from) const {
    if (!from) return nullptr;
    PT2ONNX_CHECK(from->id < to_.size() && to_[from->id]);  // used before it is defined
    return to_[from->id];
  }
  Arg operator()(const Arg& arg, Arena& arena) const {
    if (Value* const* value = std::get_if<Value*>(&arg)) return (*this)(*value);
    if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      std::vector<Value*> mapped;
      mapped.reserve(list->size());
      for (Value* value : *list) mapped.push_back((*this)(value));
      return ValueList(arena.Copy(mapped));
    }
    return arg;
  }

 private:
  std::vector<Value*> to_;
};

void ReplayNodes(const Graph& from, ValueMap& map, Sink& into) {
  Arena& arena = into.context().arena;
  std::vector<Arg> args;
  std::vector<Type> types;
  std::vector<std::string_view> names;
  for (const Node* node : from.nodes) {
    args.clear(), types.clear(), names.clear();
    for (const Arg& arg : node->args) args.push_back(map(arg, arena));
    for (const Value* result : node->results) {
      types.push_back(result ? result->type : Type{});
      names.push_back(result ? result->name : std::string_view());
    }
    const Results results = into.Emit({node->op, args, types, node->loc, names});
    PT2ONNX_CHECK(results.size() == node->results.size());
    for (size_t i = 0; i < results.size(); ++i)
      if (node->results[i]) map.Set(node->results[i], results[i]);
  }
}

}  // namespace

void Replay(const Graph& from, Sink& into) {
  ValueMap map;
  for (const GraphInput& input : from.inputs) {
    Value* value = into.Input(input);
    if (input.value) map.Set(input.value, value);
  }
  ReplayNodes(from, map, into);
  for (const GraphOutput& output : from.outputs) {
    GraphOutput mapped = output;
    mapped.value = map(output.value, into.context().arena);
    into.Output(mapped);
  }
  into.Finish();
}

std::vector<Arg> Inline(const Graph& from, std::span<Value* const> operands, Sink& into) {
  ValueMap map;
  PT2ONNX_CHECK(operands.size() == from.inputs.size());
  for (size_t i = 0; i < operands.size(); ++i)
    if (from.inputs[i].value) map.Set(from.inputs[i].value, operands[i]);
  ReplayNodes(from, map, into);
  std::vector<Arg> results;
  for (const GraphOutput& output : from.outputs) results.push_back(map(output.value, into.context().arena));
  return results;
}

Value* GraphSink::Input(const GraphInput& input) {
  GraphInput& own = graph_.inputs.emplace_back(input);
  if (input.value) own.value = context_.NewValue(input.value->type, input.value->name);
  return own.value;
}

Results GraphSink::Emit(const Call& call) {
  Node* node = context_.arena.New<Node>();
  node->op = call.op;
  node->args = context_.arena.Copy(call.args);
  node->loc = call.loc;
  const uint32_t problem = PoisonOf(context_, call.args);
  std::vector<Value*> results;
  for (size_t i = 0; i < call.types.size(); ++i) {
    Value* value = nullptr;
    if (call.types[i].kind != Kind::None) {
      value = context_.NewValue(call.types[i], i < call.names.size() ? call.names[i] : std::string_view());
      value->problem = problem;
      value->def = node;
      value->result = static_cast<uint32_t>(i);
    }
    results.push_back(value);
  }
  node->results = context_.arena.Copy(results);
  graph_.nodes.push_back(node);
  return node->results;
}

void GraphSink::Output(const GraphOutput& output) { graph_.outputs.push_back(output); }

uint32_t PoisonOf(Context& context, std::span<const Arg> args) {
  uint32_t problem = 0;
  for (const Arg& arg : args) {
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      problem = context.diagnostics.Both(problem, (*value)->problem);
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      for (const Value* value : *list)
        if (value) problem = context.diagnostics.Both(problem, value->problem);
    }
  }
  return problem;
}

Results EmitPoison(Sink& down, uint32_t problem, std::span<const Type> types, LocId loc) {
  const Arg number = static_cast<int64_t>(problem);
  const Results results = down.Emit({FindOpInTable("pt2onnx::poison"), {&number, 1}, types, loc});
  for (Value* value : results)
    if (value) value->problem = problem;
  return results;
}

Results Refuse(Sink& down, const Call& call, std::string_view code, std::string message, std::string help) {
  Problem problem;
  problem.code = code;
  problem.message = std::move(message);
  problem.help = std::move(help);
  problem.loc = call.loc;
  problem.op = call.op->name;
  return EmitPoison(down, down.context().diagnostics.Add(std::move(problem)), call.types, call.loc);
}

}  // namespace pt2onnx
