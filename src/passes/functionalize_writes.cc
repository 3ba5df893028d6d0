// Functionalize, call by call: ops that write. Each is its out-of-place form on values that are read first; then the results are stored.
#include <algorithm>

#include "passes/functionalize.h"
#include "passes/out_of_place.h"
#include "rewrite/call_args.h"

namespace pt2onnx {
// Gives a tensor a new value: cast to its dtype, expanded to its shape.
void Functionalize::Store(Alias* alias, Value* value, const Call& call, bool fill) {
  Write(alias, aten_.Expand(aten_.Cast(aten_.Wrap(value), alias->type.dtype), alias->type.shape).value, fill);
  if (log_) log_->Wrote(*call.op, call.loc, alias, false);
  if (alias->storage()->doubted) PoisonDoubted(alias->storage(), call);
}

// It is not known whether two memories are one. A write to one is right for who reads that one; whoever reads the other meets the problem.
void Functionalize::MayShare(Alias* a, Alias* b, std::string_view why) {
  if (a->storage() == b->storage()) return;
  doubts_.push_back({a, b, why});
  a->storage()->doubted = b->storage()->doubted = true;
}

void Functionalize::WritePoison(Alias* alias, uint32_t problem, LocId loc) {
  Type type = alias->type;
  type.strides = {};
  type.offset = 0;
  Write(alias, EmitPoison(down_, problem, {&type, 1}, loc)[0], false);
}

void Functionalize::PoisonDoubted(Storage* written, const Call& call) {
  std::vector<Storage*> reached = {written};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const Doubt& doubt : doubts_) {
      Storage *a = doubt.a->storage(), *b = doubt.b->storage();
      Storage* other = a == reached[i] ? b : b == reached[i] ? a : nullptr;
      if (!other || std::find(reached.begin(), reached.end(), other) != reached.end()) continue;
      reached.push_back(other);
      const uint32_t number = context_.diagnostics.Add({"E0201", "it is not known whether a write reaches this tensor: " + std::string(doubt.why),
                                                        "clone() one of the two before the write", call.loc, std::string(call.op->name)});
      WritePoison(other->root, number, call.loc);
    }
  }
}

Results Functionalize::EmitWrite(const Call& call) {
  const OpSchema& op = *call.op;
  if (!Writes(call)) return PassOn(call);
  if (op.name.starts_with("aten::_foreach_") && std::get<ValueList>(call.args[0]).size() > 1) return EmitForeach(call);
  if (op.name == "aten::record_stream" || op.name == "aten::retain_grad") return {};  // of devices and gradients
  const std::vector<Target> targets = TargetsOf(call);
  std::vector<TensorObject*> tensors;
  std::vector<Type> types;
  std::vector<Alias*> aliases;
  for (const Target& target : targets) {
    tensors.push_back(Tensor(target.value));
    aliases.push_back(tensors.back()->alias);
    types.push_back(aliases.back()->type);
  }
  if (BaseName(op) == "aten::copy_")  // onto itself
    if (const TensorObject* source = Tensor(TensorArg(call, "src")); source && source->alias == aliases[0]) return SameTensor(call, tensors[0]);
  const std::vector<Arg> args = ReadArgs(call.args);  // all reads come before all writes
  const std::optional<OutOfPlace> values = ComputeOutOfPlace(aten_, down_, call, args, types);
  if (!values)
    return RefuseWrite(call, aliases, "E0202", "there is no out-of-place form of this op: what it writes can't become a value", "write it out of place in the model");
  for (size_t i = 0; i < targets.size(); ++i) {
    Value* value = values->written[i];
    if (op.kind == OpKind::Out && !SameShape(value->type.shape, types[i].shape) && !Resize(tensors[i], value->type.shape, call.loc))
      return RefuseWrite(call, aliases, "E0203", "a change of size of a tensor whose memory is not packed", "clone the tensor first");
    Store(tensors[i]->alias, value, call, values->fill);
  }
  // What is returned: the written tensors themselves, and results of their own.
  std::vector<Value*> handles;
  size_t own = 0;
  for (size_t i = 0; i < call.types.size(); ++i) {
    const std::string_view name = i < call.names.size() ? call.names[i] : std::string_view();
    const int target = WrittenResult(call, targets, i);
    if (target >= 0) {
      handles.push_back(Handle(tensors[static_cast<size_t>(target)], call.types[i], name));
    } else {
      Value* value = own < values->returned.size() ? values->returned[own] : nullptr;
      ++own;
      handles.push_back(value ? Handle(Fresh(value, call.types[i], name), call.types[i], name) : nullptr);
    }
  }
  return context_.arena.Copy(handles);
}

// A list op works through its lists in order: each element sees the writes to those before it.
Results Functionalize::EmitForeach(const Call& call) {
  const size_t n = std::get<ValueList>(call.args[0]).size();
  for (size_t i = 0; i < n; ++i) {
    std::vector<Arg> args(call.args.begin(), call.args.end());
    for (Arg& arg : args) {
      std::visit(
          [&](auto& list) {
            if constexpr (requires { list.subspan(i, 1); })
              if (list.size() == n) list = list.subspan(i, 1);
          },
          arg);
    }
    Emit({call.op, args, {}, call.loc});
  }
  return context_.arena.Copy(std::vector<Value*>(call.types.size(), nullptr));
}

}  // namespace pt2onnx
