// Functionalize, call by call: what each kind of op does to tensors. The algorithm behind Read and Write is in functionalize.cc.
#include <algorithm>

#include "ir/infer.h"
#include "ir/op_table.h"
#include "ir/schema_parse.h"
#include "passes/autocast.h"
#include "passes/functionalize.h"
#include "passes/geometry.h"
#include "passes/views.h"
#include "rewrite/inline_call.h"

namespace pt2onnx {
namespace {

const Arg* Find(const Call& call, std::string_view name) {
  const int i = call.op->ArgIndex(name);
  return i < 0 ? nullptr : &call.args[static_cast<size_t>(i)];
}
bool Flag(const Call& call, std::string_view name) {
  const Arg* arg = Find(call, name);
  const bool* flag = arg ? std::get_if<bool>(arg) : nullptr;
  return flag && *flag;
}
Value* TensorArg(const Call& call, std::string_view name) {
  const Arg* arg = Find(call, name);
  Value* const* value = arg ? std::get_if<Value*>(arg) : nullptr;
  return value ? *value : nullptr;
}
std::string_view BaseName(const OpSchema& op) { return op.name.substr(0, op.name.find('.')); }

template <size_t N>
bool In(std::string_view name, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Regions that only set a mode, or mark a piece of the program: their body is part of the caller.
constexpr std::string_view kInlined[] = {"hop::wrap_with_set_grad_enabled", "hop::tag_activation_checkpoint", "hop::wrap", "hop::invoke_subgraph",
                                         "hop::strict_mode", "hop::hints_wrapper"};
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

bool IsInlined(const OpSchema& op) { return In(op.name, kInlined); }
constexpr std::string_view kDropouts[] = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout"};

}  // namespace

// ---- Small parts --------------------------------------------------------------------------------------------------------------------

Value* Functionalize::ReadHandle(Value* handle) {
  TensorObject* tensor = Tensor(handle);
  return tensor ? Read(tensor->alias) : handle;
}

std::vector<Arg> Functionalize::ReadArgs(std::span<const Arg> args) {
  std::vector<Arg> out;
  out.reserve(args.size());
  for (const Arg& arg : args) {
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      out.push_back(ReadHandle(*value));
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      std::vector<Value*> values;
      for (Value* value : *list) values.push_back(value ? ReadHandle(value) : nullptr);
      out.push_back(ValueList(context_.arena.Copy(values)));
    } else {
      out.push_back(arg);
    }
  }
  return out;
}

// Handles for results that are tensors of their own.
Results Functionalize::Answer(const Call& call, Results results) {
  std::vector<Value*> handles;
  for (size_t i = 0; i < results.size(); ++i) {
    const Type& type = call.types[i];
    const std::string_view name = i < call.names.size() ? call.names[i] : std::string_view();
    handles.push_back(results[i] && type.kind == Kind::Tensor ? Handle(Fresh(results[i], type, name), type, name) : results[i]);
  }
  return context_.arena.Copy(handles);
}

Results Functionalize::SameTensor(const Call& call, TensorObject* tensor) {
  std::vector<Value*> handles;
  for (size_t i = 0; i < call.types.size(); ++i)
    handles.push_back(Handle(tensor, call.types[i], i < call.names.size() ? call.names[i] : std::string_view()));
  return context_.arena.Copy(handles);
}

// Another tensor with the same geometry (detach).
Results Functionalize::AliasOf(const Call& call, Alias* alias) {
  TensorObject* tensor = context_.arena.New<TensorObject>();
  tensor->alias = alias;
  return SameTensor(call, tensor);
}

Results Functionalize::RefuseCall(const Call& call, std::string_view code, std::string message, std::string help) {
  return Answer(call, Refuse(down_, call, code, std::move(message), std::move(help)));
}

// A write that can't be followed: whoever sees the memory sees the problem.
Results Functionalize::RefuseWrite(const Call& call, std::span<TensorObject* const> targets, std::string_view code, std::string message, std::string help) {
  const uint32_t number = context_.diagnostics.Add({std::string(code), std::move(message), std::move(help), call.loc, std::string(call.op->name), {}});
  for (TensorObject* target : targets) Write(target->alias, EmitPoison(down_, number, {&target->alias->type, 1}, call.loc)[0], false);
  return Answer(call, EmitPoison(down_, number, call.types, call.loc));
}

// ---- Calls --------------------------------------------------------------------------------------------------------------------------

Results Functionalize::Emit(const Call& call) {
  JoinShared();
  const OpSchema& op = *call.op;
  aten_.Begin(call);
  if (op.Namespace() == "hop") return EmitSubgraphs(call);
  if (op.Has(kInplaceView)) return EmitGeometryChange(call);
  if (op.Writes()) return EmitWrite(call);
  if (op.Has(kHiddenAlias)) return EmitHiddenAlias(call);
  if (op.Has(kMaybeAlias)) return EmitMaybeView(call);
  if (op.view != ViewClass::None) return EmitView(call);
  const std::vector<Arg> args = ReadArgs(call.args);
  return Answer(call, down_.Emit({call.op, args, call.types, call.loc, call.names}));
}

Results Functionalize::EmitView(const Call& call) {
  Value* self = std::get<Value*>(call.args[0]);
  TensorObject* tensor = Tensor(self);
  const std::vector<ViewStep> steps = tensor ? StepsOf(context_, call, tensor->alias->type) : std::vector<ViewStep>{};
  if (steps.empty()) {
    const std::vector<Arg> args = ReadArgs(call.args);
    return Answer(call, down_.Emit({call.op, args, call.types, call.loc, call.names}));
  }
  if (call.op->view == ViewClass::Identity) return AliasOf(call, tensor->alias);
  if (call.op->view == ViewClass::AsStrided) {
    const Dims size = std::get<Dims>(call.args[1]), stride = std::get<Dims>(call.args[2]);
    const Arg* at = Find(call, "storage_offset");
    const SymExpr offset = at && !IsNone(*at) ? std::get<SymExpr>(*at) : tensor->alias->type.offset;
    Alias* alias = AsStrided(tensor->alias, size, stride, offset, call.types[0], call.loc);
    return alias ? AliasOf(call, alias) : RefuseCall(call, "E0203", "as_strided of a tensor whose memory is not packed", "clone the tensor first");
  }
  return ViewResults(call, tensor->alias, steps);
}

Results Functionalize::ViewResults(const Call& call, Alias* parent, std::span<const ViewStep> steps) {
  std::vector<Value*> handles;
  std::vector<Alias*> members;
  for (size_t i = 0; i < call.types.size(); ++i) {
    const std::string_view name = i < call.names.size() ? call.names[i] : std::string_view();
    TensorObject* tensor = context_.arena.New<TensorObject>();
    tensor->alias = View(parent, steps[i], call.types[i], name, call.loc);
    members.push_back(tensor->alias);
    handles.push_back(Handle(tensor, call.types[i], name));
  }
  if (members.size() > 1) {
    ViewGroup* group = context_.arena.New<ViewGroup>();
    std::vector<Arg> args(call.args.begin(), call.args.end());
    args[0] = Arg{};  // the parent's value, whenever they are regenerated; other tensors are read now
    *group = {call.op, context_.arena.Copy(ReadArgs(args)), context_.arena.Copy(members), context_.arena.Copy(call.types)};
    for (Alias* member : members) member->group = group;
  }
  return context_.arena.Copy(handles);
}

// reshape, flatten, contiguous, to: a view (or the tensor itself) where strides allow it, else a copy.
Results Functionalize::EmitMaybeView(const Call& call) {
  TensorObject* tensor = Tensor(std::get<Value*>(call.args[0]));
  const auto copy = [&] {
    const std::vector<Arg> args = ReadArgs(call.args);
    return Answer(call, down_.Emit({call.op, args, call.types, call.loc, call.names}));
  };
  if (!tensor || call.types.size() != 1) return copy();
  const Type& type = tensor->alias->type;
  Tri alias = Tri::No;
  if (call.op->view == ViewClass::Reshape) {
    alias = StridesAsView(type, call.types[0].shape).possible;
  } else {
    const Arg* format = Find(call, "memory_format");
    const MemoryFormat* memory_format = format ? std::get_if<MemoryFormat>(format) : nullptr;
    const int64_t code = memory_format ? memory_format->code : BaseName(*call.op) == "aten::contiguous" ? 1 : 4;
    const bool same = type.dtype == call.types[0].dtype && !Flag(call, "copy");
    alias = !same ? Tri::No : code == 4 ? Tri::Yes : IsContiguous(type, code);
    if (BaseName(*call.op) == "aten::resolve_conj" || BaseName(*call.op) == "aten::resolve_neg") alias = Tri::Yes;
  }
  if (alias == Tri::No) return copy();
  if (alias == Tri::Open) {
    const Results results = copy();
    tensor->alias->storage()->maybe_shared = true;
    if (TensorObject* result = Tensor(results[0])) result->alias->storage()->maybe_shared = true;
    return results;
  }
  return call.op->view == ViewClass::Reshape ? ViewResults(call, tensor->alias, StepsOf(context_, call, type)) : SameTensor(call, tensor);
}

// Ops that alias without saying so in their schema.
Results Functionalize::EmitHiddenAlias(const Call& call) {
  const std::string_view base = BaseName(*call.op);
  const auto step = [&](std::string_view op, Dims size, ViewClass view) {
    std::vector<Arg> args = {static_cast<Value*>(nullptr), Dims(context_.arena.Copy(size))};
    if (view == ViewClass::Expand) args.push_back(false);
    return ViewStep{FindOpInTable(op), context_.arena.Copy(args), view};
  };
  Value* const* first = std::get_if<Value*>(&call.args[0]);
  TensorObject* tensor = first ? Tensor(*first) : nullptr;
  if (In(base, kDropouts) && tensor) {
    const double* p = std::get_if<double>(Find(call, "p"));
    if (!Flag(call, "train") || (p && *p == 0)) return SameTensor(call, tensor);
  }
  if (base == "aten::conj_physical" && tensor && !IsComplex(tensor->alias->type.dtype)) return SameTensor(call, tensor);
  if (base == "aten::_unsafe_view" && tensor) return ViewResults(call, tensor->alias, std::vector{step("aten::view", call.types[0].shape, ViewClass::Reshape)});
  if (base.starts_with("aten::unsafe_split") || base == "aten::unsafe_chunk") {
    std::vector<ViewStep> steps;
    const Arg* at = Find(call, "dim");
    const int64_t dim = Normalize(std::get<int64_t>(*at), static_cast<int64_t>(tensor->alias->type.shape.size()));
    SymExpr start = 0;
    for (const Type& type : call.types) {
      const SymExpr end = start + type.shape[static_cast<size_t>(dim)];
      const std::vector<Arg> args = {static_cast<Value*>(nullptr), dim, start, end, SymExpr(1)};
      steps.push_back({FindOpInTable("aten::slice.Tensor"), context_.arena.Copy(args), ViewClass::Slice});
      start = end;
    }
    return ViewResults(call, tensor->alias, steps);
  }
  const bool reshapes = base.starts_with("aten::atleast_"), expands = base == "aten::broadcast_tensors" || base == "aten::meshgrid";
  if (reshapes || expands) {
    const ValueList* list = std::get_if<ValueList>(&call.args[0]);
    const std::vector<Value*> sources = list ? std::vector<Value*>(list->begin(), list->end()) : std::vector<Value*>{*first};
    std::vector<Value*> handles;
    for (size_t i = 0; i < sources.size(); ++i) {
      TensorObject* source = Tensor(sources[i]);
      const std::string_view name = i < call.names.size() ? call.names[i] : std::string_view();
      const Type& type = call.types[i];
      Alias* alias = source->alias;
      if (!SameShape(alias->type.shape, type.shape)) {
        if (base == "aten::meshgrid") {  // each vector along its own dim, then expanded
          std::vector<SymExpr> own(type.shape.size(), 1);
          const Arg* indexing = Find(call, "indexing");
          const std::string_view* text = indexing ? std::get_if<std::string_view>(indexing) : nullptr;
          size_t dim = i;
          if (text && *text == "xy" && i < 2 && type.shape.size() > 1) dim = 1 - i;
          own[dim] = type.shape[dim];
          Type narrow = type;
          narrow.shape = context_.arena.Copy(own);
          narrow.strides = {};
          alias = View(alias, step("aten::reshape", narrow.shape, ViewClass::Reshape), narrow, {}, call.loc);
        }
        alias = View(alias, expands ? step("aten::expand", type.shape, ViewClass::Expand) : step("aten::reshape", type.shape, ViewClass::Reshape), type, name, call.loc);
      }
      TensorObject* result = context_.arena.New<TensorObject>();
      result->alias = alias;
      handles.push_back(Handle(result, type, name));
    }
    return context_.arena.Copy(handles);
  }
  const std::vector<Arg> args = ReadArgs(call.args);
  return Answer(call, down_.Emit({call.op, args, call.types, call.loc, call.names}));
}

// ---- Writes -------------------------------------------------------------------------------------------------------------------------

// Gives a tensor a new value: cast to its dtype, expanded to its shape. False if sizes leave open what else would change.
bool Functionalize::Store(TensorObject* tensor, Value* value, const Call& call, bool fill) {
  const Alias* alias = tensor->alias;
  const Type& type = alias->type;
  if (alias->storage()->maybe_shared) {
    Problem problem{"E0201", "a write to a tensor that may or may not share memory with another: its sizes leave open whether a reshape made a view or a copy",
                    "use clone() or contiguous() before the write, or fix the sizes", call.loc, std::string(call.op->name), {}};
    const uint32_t number = context_.diagnostics.Add(std::move(problem));
    value = EmitPoison(down_, number, {&type, 1}, call.loc)[0];
  } else {
    value = aten_.Expand(aten_.Cast(aten_.Wrap(value), type.dtype), type.shape).value;
  }
  Write(tensor->alias, value, fill);
  return true;
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
      return RefuseWrite(call, targets, "E0202", "there is no out-of-place form of this op: what it writes can't become a value",
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
      return RefuseWrite(call, targets, "E0203", "a change of size of a tensor whose memory is not packed", "clone the tensor first");
    Store(targets[i], value, call, fill);
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
      .running_var = *optional("running_var"), .training = true, .momentum = std::get<double>(*Find(call, "momentum")), .eps = std::get<double>(*Find(call, "eps"))});
  Store(mean, out[3].value, call, false);
  Store(var, out[4].value, call, false);
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
      .running_var = *repeated("running_var"), .training = true, .momentum = std::get<double>(*Find(call, "momentum")), .eps = std::get<double>(*Find(call, "eps"))});
  const auto average = [&](Val v) {
    return aten_(aten::mean_dim{.self = aten_.Reshape(v, {n, c}), .dim = aten_.Copy(std::vector<int64_t>{0})}).value;
  };
  Store(mean, average(out[3]), call, false);
  Store(var, average(out[4]), call, false);
  Value* y = aten_.Reshape(out[0], x.shape()).value;
  return Answer(call, {&y, 1});
}

// ---- Geometry -----------------------------------------------------------------------------------------------------------------------

// as_strided is of the storage: a view of the root, whose value is first brought into memory order. What shows all of it once is a reshape
// and a permutation.
Alias* Functionalize::AsStrided(Alias* alias, Dims size, Dims stride, SymExpr offset, const Type& type, LocId loc) {
  Alias* root = alias->storage()->root;
  const std::optional<std::vector<int64_t>> order = MemoryOrder(root->type);
  if (!order) return nullptr;
  const auto packed = [](Type t, Dims shape) {
    t.shape = shape;
    t.strides = {};
    return t;
  };
  const auto inorder = [&](const std::vector<int64_t>& dims, Dims shape) {
    std::vector<SymExpr> sizes;
    for (int64_t d : dims) sizes.push_back(shape[static_cast<size_t>(d)]);
    return Dims(context_.arena.Copy(sizes));
  };
  const auto permuted = [&](Alias* parent, const std::vector<int64_t>& dims, const Type& result) {
    if (std::is_sorted(dims.begin(), dims.end())) return parent;
    const std::vector<Arg> args = {static_cast<Value*>(nullptr), Ints(context_.arena.Copy(dims))};
    return View(parent, {FindOpInTable("aten::permute"), context_.arena.Copy(args), ViewClass::Permute}, result, {}, loc);
  };
  Alias* parent = permuted(root, *order, packed(root->type, inorder(*order, root->type.shape)));
  Type wanted = type;
  wanted.shape = Dims(context_.arena.Copy(size));
  wanted.strides = Dims(context_.arena.Copy(stride));
  wanted.offset = offset;
  const std::optional<std::vector<int64_t>> own = MemoryOrder(wanted);
  if (own && offset == root->type.offset && Product(size) == Product(root->type.shape)) {
    const Dims shape = inorder(*own, wanted.shape);
    if (!SameShape(shape, parent->type.shape)) {
      const std::vector<Arg> args = {static_cast<Value*>(nullptr), shape};
      parent = View(parent, {FindOpInTable("aten::reshape"), context_.arena.Copy(args), ViewClass::Reshape}, packed(wanted, shape), {}, loc);
    }
    std::vector<int64_t> back(own->size());
    for (size_t i = 0; i < own->size(); ++i) back[static_cast<size_t>((*own)[i])] = static_cast<int64_t>(i);
    return permuted(parent, back, wanted);
  }
  const std::vector<Arg> args = {static_cast<Value*>(nullptr), wanted.shape, wanted.strides, offset - root->type.offset};
  return View(parent, {FindOpInTable("aten::as_strided"), context_.arena.Copy(args), ViewClass::AsStrided}, wanted, {}, loc);
}

// resize_: a prefix of the memory, or new memory with the old elements first and zeros after them (PyTorch leaves them undefined).
bool Functionalize::Resize(TensorObject* tensor, Dims size, LocId loc) {
  Alias* alias = tensor->alias;
  Type type = alias->type;
  type.shape = Dims(context_.arena.Copy(size));
  type.strides = {};
  const SymExpr room = Product(alias->storage()->root->type.shape) - (alias->type.offset - alias->storage()->root->type.offset);
  const SymExpr wanted = Product(size);
  if (wanted.IsConst() && room.IsConst() && wanted.Const() <= room.Const()) {
    Alias* view = AsStrided(alias, size, context_.arena.Copy(RowMajorStrides(size)), alias->type.offset, type, loc);
    if (view) tensor->alias = view;
    return view;
  }
  const Val old = aten_.Wrap(Read(alias));
  const SymExpr n = old.numel();
  Val flat = aten_.Reshape(old, {n});
  const Val zeros = aten_(aten::full{.size = aten_.Copy(std::vector<SymExpr>{Max(0, wanted - n)}), .fill_value = Scalar(0), .dtype = type.dtype});
  flat = aten_(aten::cat{.tensors = {flat, zeros}, .dim = 0});
  type.offset = 0;
  tensor->alias = Fresh(aten_.Reshape(flat, type.shape).value, type, {})->alias;
  return true;
}

// t_, squeeze_, set_, resize_: the tensor gets another geometry; earlier views of it keep theirs.
Results Functionalize::EmitGeometryChange(const Call& call) {
  const std::string_view base = BaseName(*call.op);
  TensorObject* tensor = Tensor(std::get<Value*>(call.args[0]));
  if (base == "aten::detach_") return SameTensor(call, tensor);
  if (base == "aten::set_") {
    TensorObject* source = Tensor(TensorArg(call, "source"));
    if (!source) return RefuseCall(call, "E0202", "set_ to a storage that is not a tensor of the program", "assign the tensor instead");
    tensor->alias = source->alias;
    if (const Arg* size = Find(call, "size")) {
      const Type& type = call.types[0];
      const Arg* stride = Find(call, "stride");
      Alias* alias = AsStrided(source->alias, std::get<Dims>(*size), stride ? std::get<Dims>(*stride) : context_.arena.Copy(RowMajorStrides(type.shape)),
                               std::get<SymExpr>(*Find(call, "storage_offset")), type, call.loc);
      if (!alias) return RefuseCall(call, "E0203", "set_ of a tensor whose memory is not packed", "clone the tensor first");
      tensor->alias = alias;
    }
    return SameTensor(call, tensor);
  }
  if (base == "aten::resize_" || base == "aten::resize_as_") {
    if (Resize(tensor, call.types[0].shape, call.loc)) return SameTensor(call, tensor);
    return RefuseWrite(call, {&tensor, 1}, "E0203", "a change of size of a tensor whose memory is not packed", "clone the tensor first");
  }
  if (call.op->functional < 0) return RefuseCall(call, "E0202", "there is no view form of this op", "write it out of place in the model");
  const OpSchema& view = OpTable()[static_cast<size_t>(call.op->functional)];
  const Call forward{&view, call.args, call.types, call.loc, call.names};
  if (view.view == ViewClass::AsStrided) {
    const Arg* at = Find(call, "storage_offset");
    Alias* alias = AsStrided(tensor->alias, std::get<Dims>(call.args[1]), std::get<Dims>(call.args[2]),
                             at && !IsNone(*at) ? std::get<SymExpr>(*at) : tensor->alias->type.offset, call.types[0], call.loc);
    if (alias) tensor->alias = alias;
    else return RefuseCall(call, "E0203", "as_strided_ of a tensor whose memory is not packed", "clone the tensor first");
    return SameTensor(call, tensor);
  }
  const std::vector<ViewStep> steps = StepsOf(context_, forward, tensor->alias->type);
  if (steps.empty()) return RefuseCall(call, "E0202", "this change of a tensor's geometry has no view form", "write it out of place in the model");
  tensor->alias = View(tensor->alias, steps[0], call.types[0], call.names.empty() ? std::string_view() : call.names[0], call.loc);
  return SameTensor(call, tensor);
}

// ---- Sub-graphs ---------------------------------------------------------------------------------------------------------------------

Results Functionalize::EmitSubgraphs(const Call& call) {
  if (IsInlined(*call.op)) return InlineCall(call, *this);
  if (call.op->name == "hop::wrap_with_autocast") {
    const DType* dtype = std::get_if<DType>(Find(call, "dtype"));
    const std::string_view device = std::get<std::string_view>(*Find(call, "device"));
    if (!Flag(call, "enabled")) return InlineCall(call, *this);
    Autocast autocast(*this, dtype ? *dtype : device == "cpu" ? DType::BF16 : DType::F16, &IsInlined);
    return InlineCall(call, autocast);
  }
  std::vector<Arg> args = ReadArgs(call.args);
  for (Arg& arg : args) {
    Graph* const* body = std::get_if<Graph*>(&arg);
    if (!body) continue;
    Graph* functional = context_.NewGraph();
    functional->name = (*body)->name;
    GraphSink sink(context_, *functional);
    Functionalize inner(sink);
    pt2onnx::Replay(**body, inner);
    arg = functional;
  }
  return Answer(call, down_.Emit({call.op, args, call.types, call.loc, call.names}));
}

// ---- Ends ---------------------------------------------------------------------------------------------------------------------------

void Functionalize::Output(const GraphOutput& output) {
  JoinShared();
  aten_.Begin(idle_);
  GraphOutput read = output;
  if (Value* const* value = std::get_if<Value*>(&output.value)) read.value = ReadHandle(*value);
  down_.Output(read);
}

// Changed inputs in input order, then changed parameters and buffers in the signature's order: each name whose storage was written. Whether the
// value is another one is not asked: what lies below may give equal values where a graph of its own has two.
void Functionalize::Finish() {
  aten_.Begin(idle_);
  const auto changed = [&](bool user) {
    for (const State& state : state_) {
      if ((state.input.kind == InputKind::User) != user) continue;
      Alias* alias = state.tensor->alias;
      Storage* storage = alias->storage();
      if (storage->version == 0 && alias == state.before) continue;
      const OutputKind kind = user ? OutputKind::InputMutation
                                   : state.input.kind == InputKind::Parameter ? OutputKind::ParameterMutation : OutputKind::BufferMutation;
      down_.Output({.value = Read(alias), .kind = kind, .target = state.input.target, .storage = storage->name});
    }
  };
  changed(true);
  changed(false);
  down_.Finish();
}

}  // namespace pt2onnx
