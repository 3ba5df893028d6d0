// Functionalize, call by call: what each kind of op does to tensors. The algorithm behind Read and Write is in functionalize.cc.
#include <algorithm>
#include <utility>

#include "ir/op_table.h"
#include "passes/autocast.h"
#include "passes/functionalize.h"
#include "passes/geometry.h"
#include "passes/views.h"
#include "rewrite/call_args.h"
#include "rewrite/inline_call.h"

namespace pt2onnx {
namespace {

// Regions that only set a mode, or mark a piece of the program: their body is part of the caller.
constexpr std::string_view kInlined[] = {"hop::wrap_with_set_grad_enabled", "hop::tag_activation_checkpoint", "hop::wrap", "hop::invoke_subgraph",
                                         "hop::strict_mode", "hop::hints_wrapper"};
bool IsInlined(const OpSchema& op) { return In(op.name, kInlined); }
constexpr std::string_view kDropouts[] = {"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout"};

}  // namespace
// ---- Small parts --------------------------------------------------------------------------------------------------------------------

Value* Functionalize::ReadHandle(Value* handle) {
  TensorObject* tensor = Tensor(handle);
  if (!tensor) return handle;
  if (log_) log_->Seen(tensor->alias->storage());
  return Read(tensor->alias);
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

// The same op on values; its results are tensors of their own.
Results Functionalize::PassOn(const Call& call) {
  const std::vector<Arg> args = ReadArgs(call.args);
  return Answer(call, down_.Emit({call.op, args, call.types, call.loc, call.names}));
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
Results Functionalize::RefuseWrite(const Call& call, std::span<Alias* const> targets, std::string_view code, std::string message, std::string help) {
  const uint32_t number = context_.diagnostics.Add({std::string(code), std::move(message), std::move(help), call.loc, std::string(call.op->name)});
  for (Alias* target : targets) {
    WritePoison(target, number, call.loc);
    if (log_) log_->Wrote(*call.op, call.loc, target, true);
  }
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
  return PassOn(call);
}

Results Functionalize::EmitView(const Call& call) {
  Value* self = std::get<Value*>(call.args[0]);
  TensorObject* tensor = Tensor(self);
  Call view = call;
  std::vector<Arg> view_args;
  if (tensor && call.op->name == "aten::narrow.Tensor") {  // where it starts is read now
    view_args.assign(call.args.begin(), call.args.end());
    view_args[0] = Arg{};
    view_args = ReadArgs(view_args);
    view.args = view_args;
  }
  const std::vector<ViewStep> steps = tensor ? StepsOf(context_, view, tensor->alias->type) : std::vector<ViewStep>{};
  if (steps.empty()) {
    return PassOn(call);
  }
  if (call.op->view == ViewClass::Identity) return AliasOf(call, tensor->alias);
  if (call.op->view == ViewClass::AsStrided) {
    const Dims size = std::get<Dims>(call.args[1]), stride = std::get<Dims>(call.args[2]);
    const Arg* at = FindArg(call, "storage_offset");
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
    // Where another tensor says how to cut (tensor_split), the op defines sizes: what asks about them must come after it.
    if (std::any_of(group->args.begin() + 1, group->args.end(), [](const Arg& arg) { return std::holds_alternative<Value*>(arg); })) Read(members[0]);
  }
  return context_.arena.Copy(handles);
}

namespace {

// What PyTorch has not computed yet of a view: conj() and the imaginary part of it only set a mark.
struct Marks {
  bool conj = false, neg = false;
};
Marks MarksOf(const Alias* alias) {
  if (!alias->parent) return {};
  Marks marks = MarksOf(alias->parent);
  switch (alias->step.view) {
    case ViewClass::Conj: case ViewClass::PermuteConj: marks.conj ^= IsComplex(alias->type.dtype); break;
    case ViewClass::Neg: marks.neg = !marks.neg; break;
    case ViewClass::Imag: marks.neg ^= std::exchange(marks.conj, false); break;
    case ViewClass::Real: marks.conj = false; break;
    default: break;
  }
  return marks;
}

}  // namespace

// reshape, flatten, contiguous, to: a view (or the tensor itself) where strides allow it, else a copy.
Results Functionalize::EmitMaybeView(const Call& call) {
  TensorObject* tensor = Tensor(std::get<Value*>(call.args[0]));
  if (!tensor || call.types.size() != 1) return PassOn(call);
  const Type& type = tensor->alias->type;
  Tri alias = Tri::No;
  if (call.op->view == ViewClass::Reshape) {
    alias = StridesAsView(type, call.types[0].shape).possible;
  } else {
    const Arg* format = FindArg(call, "memory_format");
    const MemoryFormat* memory_format = format ? std::get_if<MemoryFormat>(format) : nullptr;
    const int64_t code = memory_format ? memory_format->code : BaseName(*call.op) == "aten::contiguous" ? 1 : 4;
    const bool same = type.dtype == call.types[0].dtype && !Flag(call, "copy");
    alias = !same ? Tri::No : code == 4 ? Tri::Yes : IsContiguous(type, code);
    // They copy what PyTorch only marks as conjugated or negative.
    if (BaseName(*call.op) == "aten::resolve_conj") alias = MarksOf(tensor->alias).conj ? Tri::No : Tri::Yes;
    if (BaseName(*call.op) == "aten::resolve_neg") alias = MarksOf(tensor->alias).neg ? Tri::No : Tri::Yes;
  }
  if (alias == Tri::No) return PassOn(call);
  if (alias == Tri::Open) {
    const Results results = PassOn(call);
    if (TensorObject* result = Tensor(results[0]))
      MayShare(tensor->alias, result->alias, "sizes leave open whether a reshape made a view or a copy; fix them, or use contiguous() or clone()");
    return results;
  }
  return call.op->view == ViewClass::Reshape ? ViewResults(call, tensor->alias, StepsOf(context_, call, type)) : SameTensor(call, tensor);
}

// Ops that alias without saying so in their schema.
Results Functionalize::EmitHiddenAlias(const Call& call) {
  const std::string_view base = BaseName(*call.op);
  Value* const* first = std::get_if<Value*>(&call.args[0]);
  TensorObject* tensor = first ? Tensor(*first) : nullptr;
  if (In(base, kDropouts) && tensor) {
    const double* p = std::get_if<double>(FindArg(call, "p"));
    if (!Flag(call, "train") || (p && *p == 0)) return SameTensor(call, tensor);
  }
  if (base == "aten::conj_physical" && tensor && !IsComplex(tensor->alias->type.dtype)) return SameTensor(call, tensor);
  if (base == "aten::cartesian_prod" && std::get<ValueList>(call.args[0]).size() == 1) return SameTensor(call, Tensor(std::get<ValueList>(call.args[0])[0]));
  if (base == "aten::_unsafe_view" && tensor) {
    const std::vector<Arg> args = {static_cast<Value*>(nullptr), Dims(context_.arena.Copy(call.types[0].shape))};
    return ViewResults(call, tensor->alias, std::vector{ViewStep{FindOpInTable("aten::view"), context_.arena.Copy(args), ViewClass::Reshape}});
  }
  if ((base.starts_with("aten::unsafe_split") || base == "aten::unsafe_chunk") && tensor) return ViewResults(call, tensor->alias, SplitSteps(context_, call, tensor->alias->type));
  if (base.starts_with("aten::atleast_") || base == "aten::broadcast_tensors" || base == "aten::meshgrid") return BroadcastAliases(call);
  if (base == "aten::einsum" && std::get<ValueList>(*FindArg(call, "tensors")).size() == 1) return EmitEinsum(call, Tensor(std::get<ValueList>(*FindArg(call, "tensors"))[0]));
  const Results results = PassOn(call);
  if (base == "aten::histogramdd") {
    const ValueList bins = std::get<ValueList>(*FindArg(call, "bins"));
    for (size_t i = 0; i < bins.size() && i + 1 < results.size(); ++i)
      if (TensorObject *given = Tensor(bins[i]), *answered = Tensor(results[i + 1]); given && answered)
        MayShare(given->alias, answered->alias, "histogramdd may answer the bins that it is given");
  }
  return results;
}

// einsum of one operand: with distinct indices that all stay, a permutation; with a sum, a copy. Else (a diagonal, an ellipsis) it may be either.
Results Functionalize::EmitEinsum(const Call& call, TensorObject* operand) {
  std::string in(std::get<std::string_view>(*FindArg(call, "equation")));
  std::erase(in, ' ');
  const size_t arrow = in.find("->");
  std::string out = arrow == in.npos ? "" : in.substr(arrow + 2);
  in.resize(std::min(arrow, in.size()));
  const auto count = [&](char c) { return std::count(in.begin(), in.end(), c); };
  if (arrow == in.npos) {
    for (char c : in)
      if (count(c) == 1) out += c;
    std::sort(out.begin(), out.end());
  }
  const bool plain = in.find('.') == in.npos, distinct = std::all_of(in.begin(), in.end(), [&](char c) { return count(c) == 1; });
  const bool sums = std::any_of(in.begin(), in.end(), [&](char c) { return out.find(c) == out.npos; });
  if (!operand || (plain && sums)) return PassOn(call);
  if (plain && distinct && in.size() == operand->alias->type.shape.size()) {
    std::vector<int64_t> dims;
    for (char c : out) dims.push_back(static_cast<int64_t>(in.find(c)));
    const std::vector<Arg> args = {static_cast<Value*>(nullptr), Ints(context_.arena.Copy(dims))};
    return ViewResults(call, operand->alias, std::vector{ViewStep{FindOpInTable("aten::permute"), context_.arena.Copy(args), ViewClass::Permute}});
  }
  const Results results = PassOn(call);
  if (TensorObject* result = Tensor(results[0])) MayShare(operand->alias, result->alias, "an einsum of one operand may be a view of it");
  return results;
}

// atleast_nd, broadcast_tensors, meshgrid: a view of each operand.
Results Functionalize::BroadcastAliases(const Call& call) {
  const std::string_view base = BaseName(*call.op);
  const auto step = [&](std::string_view op, Dims size, ViewClass view) {
    std::vector<Arg> args = {static_cast<Value*>(nullptr), Dims(context_.arena.Copy(size))};
    if (view == ViewClass::Expand) args.push_back(false);
    return ViewStep{FindOpInTable(op), context_.arena.Copy(args), view};
  };
  const bool expands = base == "aten::broadcast_tensors" || base == "aten::meshgrid";
  const ValueList* list = std::get_if<ValueList>(&call.args[0]);
  const std::vector<Value*> sources = list ? std::vector<Value*>(list->begin(), list->end()) : std::vector<Value*>{std::get<Value*>(call.args[0])};
  std::vector<Value*> handles;
  for (size_t i = 0; i < sources.size(); ++i) {
    TensorObject* source = Tensor(sources[i]);
    const std::string_view name = i < call.names.size() ? call.names[i] : std::string_view();
    const Type& type = call.types[i];
    Alias* alias = source->alias;
    if (!SameShape(alias->type.shape, type.shape)) {
      if (base == "aten::meshgrid") {  // each vector along its own dim, then expanded
        std::vector<SymExpr> own(type.shape.size(), 1);
        const Arg* indexing = FindArg(call, "indexing");
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
// ---- Sub-graphs ---------------------------------------------------------------------------------------------------------------------

Results Functionalize::EmitSubgraphs(const Call& call) {
  if (IsInlined(*call.op)) return InlineCall(call, *this);
  if (call.op->name == "hop::wrap_with_autocast") {
    const DType* dtype = std::get_if<DType>(FindArg(call, "dtype"));
    const std::string_view device = std::get<std::string_view>(*FindArg(call, "device"));
    if (!Flag(call, "enabled")) return InlineCall(call, *this);
    Autocast autocast(*this, dtype ? *dtype : device == "cpu" ? DType::BF16 : DType::F16, &IsInlined);
    return InlineCall(call, autocast);
  }
  return EmitControlFlow(call);
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
      if (log_) log_->Seen(storage), log_->Changed(storage, state.input.target);
      down_.Output({.value = Read(alias), .kind = kind, .target = state.input.target, .storage = storage->name});
    }
  };
  changed(true);
  changed(false);
  down_.Finish();
}

}  // namespace pt2onnx
