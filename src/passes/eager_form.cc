#include "passes/eager_form.h"

#include <algorithm>
#include <unordered_set>

#include "ir/op_table.h"
#include "passes/geometry.h"
#include "rewrite/bodies.h"

namespace pt2onnx {
namespace {

// Row-major and of their own whatever comes in. Sorted.
constexpr std::string_view kMakers[] = {"aten::addmm", "aten::arange", "aten::bmm",           "aten::embedding", "aten::empty",
                                        "aten::eye",   "aten::full",   "aten::linspace",      "aten::mm",        "aten::ones",
                                        "aten::rand",  "aten::randn",  "aten::scalar_tensor", "aten::zeros"};
// Row-major and of their own if all tensors that come in are row-major; so are pointwise ops. Sorted.
constexpr std::string_view kKeepers[] = {"aten::_softmax",
                                         "aten::_to_copy",
                                         "aten::amax",
                                         "aten::amin",
                                         "aten::cat",
                                         "aten::clone",
                                         "aten::constant_pad_nd",
                                         "aten::convolution",
                                         "aten::cumsum",
                                         "aten::diagonal_scatter",
                                         "aten::flip",
                                         "aten::full_like",
                                         "aten::gather",
                                         "aten::index_copy",
                                         "aten::index_fill",
                                         "aten::index_put",
                                         "aten::index_select",
                                         "aten::linear",
                                         "aten::masked_fill",
                                         "aten::masked_scatter",
                                         "aten::matmul",
                                         "aten::mean",
                                         "aten::native_layer_norm",
                                         "aten::ones_like",
                                         "aten::prod",
                                         "aten::repeat",
                                         "aten::scatter",
                                         "aten::scatter_add",
                                         "aten::scatter_reduce",
                                         "aten::select_scatter",
                                         "aten::slice_scatter",
                                         "aten::softmax",
                                         "aten::sum",
                                         "aten::tril",
                                         "aten::triu",
                                         "aten::zeros_like"};

template <size_t N>
bool In(std::string_view name, const std::string_view (&names)[N]) {
  return std::binary_search(std::begin(names), std::end(names), name);
}
std::string_view BaseName(const OpSchema& op) { return op.name.substr(0, op.name.find('.')); }

Value* FirstTensor(std::span<const Arg> args) {
  Value* const* value = args.empty() ? nullptr : std::get_if<Value*>(&args[0]);
  return value ? *value : nullptr;
}

template <class F>
void ForEachTensor(std::span<const Arg> args, F f) {
  for (const Arg& arg : args) {
    if (Value* const* value = std::get_if<Value*>(&arg); value && *value) f(*value);
    if (const ValueList* list = std::get_if<ValueList>(&arg))
      for (const Value* value : *list)
        if (value) f(value);
  }
}

int64_t IntArg(const Call& call, std::string_view name) {
  const int i = call.op->ArgIndex(name);
  const int64_t* x = i < 0 ? nullptr : std::get_if<int64_t>(&call.args[static_cast<size_t>(i)]);
  return x ? *x : 0;
}

bool IsMutation(const GraphOutput& output) {
  return output.kind == OutputKind::BufferMutation || output.kind == OutputKind::ParameterMutation || output.kind == OutputKind::InputMutation;
}

}  // namespace

EagerForm::Memory EagerForm::MemoryOf(const Value* value) const {
  const auto found = memory_.find(value->id);
  return found == memory_.end() ? Memory{} : found->second;
}

Value* EagerForm::Input(const GraphInput& input) {
  Value* value = down_.Input(input);
  if (!value) return value;
  GraphInput& own = inputs_.emplace_back(input);
  own.value = value;
  const bool packed = input.kind != InputKind::Plain && value->type.kind == Kind::Tensor && IsContiguous(value->type) == Tri::Yes;
  memory_[value->id] = {packed, false, value};
  return value;
}

EagerForm::Memory EagerForm::ResultMemory(const Call& call, std::span<const Arg> args) const {
  const OpSchema& op = *call.op;
  const std::string_view base = BaseName(op);
  const int format = op.ArgIndex("memory_format");
  const MemoryFormat* wanted = format < 0 ? nullptr : std::get_if<MemoryFormat>(&args[static_cast<size_t>(format)]);
  if (wanted && wanted->code == 1 && !op.Has(kMaybeAlias)) return {true, true, nullptr};
  if (wanted && wanted->code != 4) return {};
  if (In(base, kMakers)) return {true, true, nullptr};
  bool all = true;
  ForEachTensor(args, [&](const Value* value) { all &= MemoryOf(value).packed; });
  if (op.Has(kPointwise) || In(base, kKeepers)) return {all, all, nullptr};
  const Value* self = FirstTensor(args);
  if (!self || (op.view == ViewClass::None && !op.Has(kMaybeAlias) && !op.Has(kHiddenAlias))) return {};
  Memory memory = MemoryOf(self);
  const bool first = op.view == ViewClass::Select || op.view == ViewClass::Slice ? IntArg(call, "dim") == 0 : false;
  const int step = op.ArgIndex("step");
  const bool every =
      step < 0 || (std::holds_alternative<SymExpr>(args[static_cast<size_t>(step)]) && std::get<SymExpr>(args[static_cast<size_t>(step)]) == 1);
  const bool stays = op.view == ViewClass::Reshape || op.view == ViewClass::Identity;
  memory.own &= stays;
  memory.packed &= stays || (first && every);
  return memory;
}

// A value that is row-major in memory; own: from the start of a storage.
Val EagerForm::Packed(Value* value, bool own) {
  const Memory memory = MemoryOf(value);
  if (memory.packed && (memory.own || !own)) return aten_.Wrap(value);
  const Val copy = aten_(aten::clone{.self = aten_.Wrap(value), .memory_format = MemoryFormat{1}});
  memory_[copy.value->id] = {true, true, nullptr};
  return copy;
}

Results EagerForm::Named(const Call& call, Value* value) {
  if (value->name.empty() && !call.names.empty()) value->name = call.names[0];
  return context_.arena.Copy(std::span<Value* const>(&value, 1));
}

// As reshape: a view where strides allow it, else a copy.
Value* EagerForm::Reshaped(const Call& call, Value* self, Dims shape) {
  const bool packed = MemoryOf(self).packed;
  Value* from = core_ && !packed ? Packed(self, false).value : self;
  const Memory memory = MemoryOf(from);
  const OpSchema& op = *FindOpInTable(core_ || packed ? "aten::view" : "aten::reshape");
  const Arg args[] = {from, shape};
  Type type = call.types[0];
  type.strides = {};
  type.offset = 0;
  Value* result = down_.Emit({&op, args, {&type, 1}, call.loc, call.names})[0];
  memory_[result->id] = memory;  // of what is not packed reshape may make a view
  return result;
}

Results EagerForm::Emit(const Call& call) {
  aten_.Begin(call);
  const std::string_view base = BaseName(*call.op);
  Value* self = FirstTensor(call.args);
  if (call.op->name == "prims::convert_element_type") {
    const OpSchema& op = *FindOpInTable("aten::_to_copy");
    std::vector<Arg> args(op.args.size());
    args[0] = self;
    args[static_cast<size_t>(op.ArgIndex("dtype"))] = call.args[1];
    args[static_cast<size_t>(op.ArgIndex("non_blocking"))] = false;
    return Emit({&op, args, call.types, call.loc, call.names});
  }
  if (call.op->Namespace() == "functorch")
    return Refuse(down_, call, "E0212", "levels of torch.vmap in the program: views may not move across them",
                  "write the loop without vmap or associative_scan");
  std::vector<Arg> args(call.args.begin(), call.args.end());
  if (self && call.op->name != "aten::view.dtype") {
    if (base == "aten::view" || base == "aten::_unsafe_view" || base == "aten::reshape")
      return Named(call, Reshaped(call, self, std::get<Dims>(call.args[1])));
    if (base == "aten::unflatten" && !MemoryOf(self).packed) return Named(call, Reshaped(call, self, call.types[0].shape));
  }
  if (base == "aten::as_strided" || base == "aten::as_strided_scatter") args[0] = Packed(self, true).value;
  if (call.op->name == "aten::view.dtype" || base == "aten::view_as_complex") args[0] = Packed(self, false).value;
  if (HasBody(call)) args = ReplayBodies(context_, args, [&](Sink& down) { return EagerForm(down, core_); });
  const Results results = down_.Emit({call.op, args, call.types, call.loc, call.names});
  const Memory memory = ResultMemory(call, args);
  for (const Value* result : results)
    if (result) memory_[result->id] = memory;
  return results;
}

// Writing back copies values: the input keeps its shape.
void EagerForm::RefuseShape(const GraphInput& input, GraphOutput& output) {
  Value* value = std::get<Value*>(output.value);
  Problem problem{"E0211",
                  "the program changes the shape of '" + std::string(input.target) + "': a written program can only give it other values",
                  "return the tensor instead of changing the argument's shape",
                  value->def ? value->def->loc : 0,
                  {}};
  output.value = EmitPoison(down_, context_.diagnostics.Add(std::move(problem)), {&input.value->type, 1}, 0)[0];
}

void EagerForm::Finish() {
  const Call nowhere{FindOpInTable("pt2onnx::poison"), {}, {}};
  aten_.Begin(nowhere);
  // Whose memory is written when state is copied back: inputs, and those that share memory with them.
  std::unordered_set<const Value*> written;
  for (GraphOutput& output : outputs_) {
    if (!IsMutation(output)) continue;
    for (const GraphInput& input : inputs_) {
      if (input.target != output.target && !(input.kind == InputKind::User && input.value->name == output.target)) continue;
      if (!SameShape(input.value->type.shape, std::get<Value*>(output.value)->type.shape)) RefuseShape(input, output);
      for (const GraphInput& other : inputs_)
        if (other.value == input.value || (other.storage >= 0 && other.storage == input.storage)) written.insert(other.value);
    }
  }
  std::unordered_set<const Value*> taken;
  for (GraphOutput& output : outputs_) {
    Value* const* value = std::get_if<Value*>(&output.value);
    if (value && (*value)->type.kind == Kind::Tensor) {
      const Value* input = MemoryOf(*value).input;
      bool copy = input && written.contains(input);
      if (IsMutation(output)) copy = copy || (input && input == *value) || !taken.insert(*value).second;
      if (copy) output.value = aten_(aten::clone{.self = aten_.Wrap(*value)}).value;
    }
    down_.Output(output);
  }
  down_.Finish();
}

}  // namespace pt2onnx
