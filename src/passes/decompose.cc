#include "passes/decompose.h"

#include "ir/sym_facts.h"
#include "rewrite/bodies.h"

namespace pt2onnx {
namespace {

bool ShapesMeet(Dims a, Dims b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!a[i].IsUnknown() && !b[i].IsUnknown() && ProvablyNotEqual(a[i], b[i])) return false;
  return true;
}

}  // namespace

Results Settle(Sink& down, Builder& builder, const Call& call, const Answer& answer, uint32_t fresh) {
  Context& context = down.context();
  if (builder.problem()) return EmitPoison(down, builder.problem(), call.types, call.loc);
  const auto fault = [&](std::string what) {
    return Refuse(down, call, "E0901", "a rule of pt2onnx gave a result of the wrong kind: " + what, "this is a bug in pt2onnx; please report it with the program");
  };
  if (answer.values.size() != call.types.size())
    return fault(std::to_string(answer.values.size()) + " results for " + std::to_string(call.types.size()));
  std::vector<Value*> results;
  for (size_t i = 0; i < call.types.size(); ++i) {
    const Type& wanted = call.types[i];
    if (wanted.kind == Kind::None || !answer.values[i]) {
      if (wanted.kind != Kind::None) return fault("result " + std::to_string(i) + " is missing");
      results.push_back(nullptr);
      continue;
    }
    Value* value = answer.values[i]->value;
    if (wanted.kind == Kind::Tensor && !value->problem) {
      Type& type = value->type;
      if (type.dtype != wanted.dtype) return fault("dtype " + std::string(Name(type.dtype)) + " where the program has " + std::string(Name(wanted.dtype)));
      if (type.ranked && !ShapesMeet(type.shape, wanted.shape)) return fault("a shape that differs from the recorded one");
      if (value->id >= fresh) {
        type = wanted;
        type.strides = {};
        type.offset = 0;
        if (value->name.empty() && i < call.names.size()) value->name = call.names[i];
      }
    }
    results.push_back(value);
  }
  return context.arena.Copy(results);
}

Results Decompose::Emit(const Call& call) {
  const auto rule = rules_.Find(*call.op);
  if (!rule || (call.op->id < keep_.size() && keep_[call.op->id])) {
    if (!HasBody(call)) return down_.Emit(call);
    const std::vector<Arg> args = ReplayBodies(context_, call.args, [&](Sink& down) { return Decompose(down, rules_, keep_); });
    return down_.Emit({call.op, args, call.types, call.loc, call.names});
  }
  if (const uint32_t problem = PoisonOf(context_, call.args)) return EmitPoison(down_, problem, call.types, call.loc);
  Aten b(*this);
  b.Begin(call);
  const uint32_t fresh = context_.value_count();
  const Answer answer = rule(b, call.args);
  return Settle(down_, b, call, answer, fresh);
}

}  // namespace pt2onnx
