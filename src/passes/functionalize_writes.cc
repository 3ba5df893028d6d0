// Functionalize, call by call: ops that write. Each is its out-of-place form on values that are read first; then the results are stored.
#include <algorithm>

#include "ir/infer.h"
#include "ir/op_table.h"
#include "ir/schema_parse.h"
#include "passes/functionalize.h"
#include "passes/geometry.h"
#include "rewrite/call_args.h"

namespace pt2onnx {
namespace {

// x with its main diagonal filled: every (sum of strides)-th element of the row-major order. Of a tall matrix the diagonal ends after a square,
// or with wrap goes on below a blank row.
Val FilledDiagonal(Aten& b, Val x, Scalar value, bool wrap) {
  SymExpr step = 0;
  for (const SymExpr& stride : RowMajorStrides(x.shape())) step = step + stride;
  const Val at = b.Reshape(b(aten::arange{.end = Scalar(x.numel()), .dtype = DType::I64}), x.shape());
  Val hit = b(aten::eq_Scalar{.self = b(aten::remainder_Scalar{.self = at, .other = Scalar(step)}), .other = 0});
  if (x.rank() == 2 && !wrap) hit = b(aten::logical_and{.self = hit, .other = b(aten::lt_Scalar{.self = at, .other = Scalar(x.dim(1) * x.dim(1))})});
  return b(aten::where_self{.condition = hit, .self = b.Constant(value, x.dtype()), .other = x});
}


}  // namespace

// Gives a tensor a new value: cast to its dtype, expanded to its shape.
void Functionalize::Store(Alias* alias, Value* value, const Call& call, bool fill) {
  Write(alias, aten_.Expand(aten_.Cast(aten_.Wrap(value), alias->type.dtype), alias->type.shape).value, fill);
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
                                                        "clone() one of the two before the write", call.loc, std::string(call.op->name), {}});
      WritePoison(other->root, number, call.loc);
    }
  }
}

Results Functionalize::EmitWrite(const Call& call) {
  const OpSchema& op = *call.op;
  const std::string_view base = BaseName(op);
  if (base == "aten::batch_norm" || base == "aten::_batch_norm_impl_index" || base == "aten::native_batch_norm") return EmitBatchNorm(call);
  if (base == "aten::instance_norm") return EmitInstanceNorm(call);
  if (base.starts_with("aten::_foreach_") && std::get<ValueList>(call.args[0]).size() > 1) return EmitForeach(call);

  std::vector<TensorObject*> targets;   // in schema order, lists flattened
  std::vector<std::string_view> names;  // of the argument of each
  for (size_t i = 0; i < op.args.size(); ++i) {
    if (!op.args[i].writes) continue;
    if (Value* const* value = std::get_if<Value*>(&call.args[i])) {
      targets.push_back(Tensor(*value));
      names.push_back(op.args[i].name);
    } else if (const ValueList* list = std::get_if<ValueList>(&call.args[i])) {
      for (Value* value : *list)
        if (value) targets.push_back(Tensor(value)), names.push_back(op.args[i].name);
    }
  }
  if (base == "aten::copy_")  // onto itself
    if (const TensorObject* source = Tensor(TensorArg(call, "src")); source && source->alias == targets[0]->alias) return SameTensor(call, targets[0]);
  const auto refuse = [&](std::string_view code, std::string message, std::string help) {
    std::vector<Alias*> written;
    for (const TensorObject* target : targets) written.push_back(target->alias);
    return RefuseWrite(call, written, code, std::move(message), std::move(help));
  };
  // All reads come before all writes.
  const std::vector<Arg> args = ReadArgs(call.args);
  std::vector<Value*> values;           // of the functional form
  const bool fill = base == "aten::fill_" || base == "aten::zero_";
  if (base == "aten::copy_") {
    values = {std::get<Value*>(args[1])};
  } else if (fill) {
    const Type& type = targets[0]->alias->type;
    Value* const* tensor = base == "aten::zero_" ? nullptr : std::get_if<Value*>(&args[1]);
    if (tensor) values = {*tensor};
    else {
      const Scalar number = base == "aten::zero_" ? Scalar(0) : Scalar::FromArg(args[1]);
      values = {aten_(aten::full{.size = type.shape, .fill_value = number, .dtype = type.dtype}).value};
    }
  } else if (base == "aten::fill_diagonal_") {
    values = {FilledDiagonal(aten_, aten_.Wrap(std::get<Value*>(args[0])), Scalar::FromArg(args[1]), std::get<bool>(args[2])).value};
  } else {
    if (op.functional < 0)
      return refuse("E0202", "there is no out-of-place form of this op: what it writes can't become a value",
                         "write it out of place in the model");
    const OpSchema& form = OpTable()[static_cast<size_t>(op.functional)];
    std::vector<Arg> form_args;
    const std::vector<int> from = ArgsOfFunctional(op);
    for (size_t i = 0; i < form.args.size(); ++i) form_args.push_back(from[i] >= 0 ? args[static_cast<size_t>(from[i])] : FillDefault(context_, form.args[i]));
    std::vector<Type> types = InferTypes(context_, form, form_args);
    if (types.empty()) {  // its results are the returned ones without alias, then the written ones
      for (size_t i = 0, n = 0; i < op.results.size() && n < call.types.size(); ++i, ++n)
        if (!op.results[i].alias) types.push_back(call.types[n]);
      for (TensorObject* target : targets) {
        Type type = target->alias->type;
        type.strides = {};
        types.push_back(type);
      }
      if (op.kind == OpKind::Out) {  // returned and written are the same; the recorded types are those of the results
        types.clear();
        for (size_t i = 0; i < targets.size(); ++i) {
          Type type = i < call.types.size() ? call.types[i] : targets[i]->alias->type;
          type.strides = {};
          types.push_back(type);
        }
      }
    }
    const Results results = down_.Emit({&form, form_args, types, call.loc, call.names});
    values.assign(results.begin(), results.end());
  }
  PT2ONNX_CHECK(values.size() >= targets.size());
  const size_t extra = values.size() - targets.size();
  for (size_t i = 0; i < targets.size(); ++i) {
    Value* value = values[extra + i];
    if (op.kind == OpKind::Out && !SameShape(value->type.shape, targets[i]->alias->type.shape) && !Resize(targets[i], value->type.shape, call.loc))
      return refuse("E0203", "a change of size of a tensor whose memory is not packed", "clone the tensor first");
    Store(targets[i]->alias, value, call, fill);
  }
  // What is returned: the written tensors themselves, and results of their own.
  std::vector<Value*> handles;
  size_t own = 0;
  for (size_t i = 0; i < call.types.size(); ++i) {
    const std::string_view name = i < call.names.size() ? call.names[i] : std::string_view();
    const char alias = i < op.results.size() ? op.results[i].alias : op.results.empty() ? 0 : op.results[0].alias;
    if (!alias) {
      handles.push_back(Handle(Fresh(values[own], call.types[i], name), call.types[i], name));
      ++own;
      continue;
    }
    std::string_view wanted;
    for (const ArgSchema& arg : op.args)
      if (arg.alias == alias && arg.writes) wanted = arg.name;
    size_t seen = 0;  // a list's i-th element is its i-th result
    for (size_t t = 0; t < targets.size(); ++t)
      if (names[t] == wanted && (!op.results[std::min(i, op.results.size() - 1)].list || seen++ == i)) {
        handles.push_back(Handle(targets[t], call.types[i], name));
        break;
      }
  }
  PT2ONNX_CHECK(handles.size() == call.types.size());
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

// Training batch norm: y by the batch's statistics, and running statistics that take them in.
Results Functionalize::EmitBatchNorm(const Call& call) {
  TensorObject* mean = Tensor(TensorArg(call, "running_mean"));
  TensorObject* var = Tensor(TensorArg(call, "running_var"));
  const std::vector<Arg> args = ReadArgs(call.args);
  const Call read{call.op, args, call.types, call.loc, call.names};
  if (!Flag(call, "training") || !mean || !var) return Answer(call, down_.Emit(read));
  const auto optional = [&](std::string_view name) { return aten_.Wrap(TensorArg(read, name), true); };
  const Vals out = aten_.All(aten::_native_batch_norm_legit_functional{
      .input = aten_.Wrap(TensorArg(read, "input")), .weight = optional("weight"), .bias = optional("bias"), .running_mean = *optional("running_mean"),
      .running_var = *optional("running_var"), .training = true, .momentum = std::get<double>(*FindArg(call, "momentum")), .eps = std::get<double>(*FindArg(call, "eps"))});
  Store(mean->alias, out[3].value, call, false);
  Store(var->alias, out[4].value, call, false);
  std::vector<Value*> results;
  for (size_t i = 0; i < call.types.size(); ++i) results.push_back(i < 3 ? out[i].value : nullptr);
  return Answer(call, results);
}

// Instance norm with running statistics: batch norm over (1, N*C), statistics repeated N times and averaged over the batch afterwards.
Results Functionalize::EmitInstanceNorm(const Call& call) {
  TensorObject* mean = Tensor(TensorArg(call, "running_mean"));
  TensorObject* var = Tensor(TensorArg(call, "running_var"));
  const std::vector<Arg> args = ReadArgs(call.args);
  const Call read{call.op, args, call.types, call.loc, call.names};
  if (!Flag(call, "use_input_stats") || !mean || !var) return Answer(call, down_.Emit(read));
  const Val x = aten_.Wrap(TensorArg(read, "input"));
  const SymExpr n = x.dim(0), c = x.dim(1);
  std::vector<SymExpr> folded(x.shape().begin() + 1, x.shape().end());
  folded[0] = n * c;
  folded.insert(folded.begin(), 1);
  const auto repeated = [&](std::string_view name) -> OptVal {
    Value* value = TensorArg(read, name);
    if (!value) return std::nullopt;
    return aten_(aten::repeat{.self = aten_.Wrap(value), .repeats = aten_.Copy(std::vector<SymExpr>{n})});
  };
  const Vals out = aten_.All(aten::_native_batch_norm_legit_functional{
      .input = aten_.Reshape(x, aten_.Copy(folded)), .weight = repeated("weight"), .bias = repeated("bias"), .running_mean = *repeated("running_mean"),
      .running_var = *repeated("running_var"), .training = true, .momentum = std::get<double>(*FindArg(call, "momentum")), .eps = std::get<double>(*FindArg(call, "eps"))});
  const auto average = [&](Val v) {
    return aten_(aten::mean_dim{.self = aten_.Reshape(v, {n, c}), .dim = aten_.Copy(std::vector<int64_t>{0})}).value;
  };
  Store(mean->alias, average(out[3]), call, false);
  Store(var->alias, average(out[4]), call, false);
  Value* y = aten_.Reshape(out[0], x.shape()).value;
  return Answer(call, {&y, 1});
}

}  // namespace pt2onnx
