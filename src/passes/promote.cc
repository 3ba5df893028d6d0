#include "passes/promote.h"

#include "ir/promotion.h"
#include "rewrite/bodies.h"

namespace pt2onnx {

Results PromoteTypes::Emit(const Call& call) {
  std::vector<Arg> args = ReplayBodies(context_, call.args, [](Sink& down) { return PromoteTypes(down); });
  const auto promotion = PoisonOf(context_, args) ? std::nullopt : PromotionOf(*call.op, args);
  if (!promotion) return down_.Emit({call.op, args, call.types, call.loc, call.names});
  const Promoted types = Promote(*promotion, args);
  Aten b(down_);
  b.Begin(call);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!promotion->Takes(i)) continue;
    if (Value* const* value = std::get_if<Value*>(&args[i])) {
      if ((*value)->type.kind == Kind::Tensor) args[i] = b.Cast(b.Wrap(*value), types.compute).value;
    } else if (call.op->args[i].type == ArgType::Tensor && !IsNone(args[i])) {
      args[i] = b.Constant(Scalar::FromArg(args[i]), types.compute).value;  // x + 2 recorded as add.Tensor(x, 2)
    }
  }
  // An op whose result the program recorded in another dtype than it computes in: compute, then cast.
  if (call.types.size() == 1 && call.types[0].dtype != types.result) {
    Type type = call.types[0];
    type.dtype = types.result;
    Value* value = down_.Emit({call.op, args, {&type, 1}, call.loc, {}})[0];
    Value* cast = b.Cast(b.Wrap(value), call.types[0].dtype).value;
    if (!call.names.empty() && cast->name.empty()) cast->name = call.names[0];
    return context_.arena.Copy(std::span<Value*>(&cast, 1));
  }
  return down_.Emit({call.op, args, call.types, call.loc, call.names});
}

}  // namespace pt2onnx
