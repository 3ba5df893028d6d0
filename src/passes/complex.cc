#include "passes/complex.h"

#include "passes/decompose.h"
#include "rewrite/bodies.h"

namespace pt2onnx {
namespace {

bool IsComplexTensor(const Value* value) { return value && value->type.kind == Kind::Tensor && IsComplex(value->type.dtype); }

// Whether a complex number goes in or comes out.
bool Concerns(const Call& call) {
  for (const Type& type : call.types)
    if (type.kind == Kind::Tensor && IsComplex(type.dtype)) return true;
  for (const Arg& arg : call.args) {
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      if (IsComplexTensor(*value)) return true;
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      for (const Value* value : *list)
        if (IsComplexTensor(value)) return true;
    } else if (std::holds_alternative<std::complex<double>>(arg)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Value* ComplexToReal::Handle(const Type& type, const ComplexForm& form, std::string_view name) {
  Value* handle = context_.NewValue(type, name);
  for (const Value* part : {form.pair, form.re, form.im})
    if (part && part->problem) handle->problem = part->problem;
  forms_[handle] = form;
  return handle;
}

ComplexForm& ComplexToReal::Form(const Value* handle) {
  const auto found = forms_.find(handle);
  PT2ONNX_CHECK(found != forms_.end());
  return found->second;
}

Value* ComplexToReal::Input(const GraphInput& input) {
  if (!IsComplexTensor(input.value)) return down_.Input(input);
  Value pair = *input.value;
  pair.type = PairType(context_, input.value->type);
  GraphInput own = input;
  own.value = &pair;
  if (input.data) {  // the same bytes
    TensorData* data = context_.arena.New<TensorData>();
    *data = *input.data;
    data->dtype = RealOf(data->dtype);
    std::vector<int64_t> shape(data->shape.begin(), data->shape.end());
    shape.push_back(2);
    data->shape = context_.arena.Copy(shape);
    own.data = data;
  }
  return Handle(input.value->type, {.pair = down_.Input(own)}, input.value->name);
}

Results ComplexToReal::EmitOnPairs(const Call& call, std::span<const Arg> args) {
  std::vector<Arg> real(args.begin(), args.end());
  Pairs b(*this, call);
  for (Arg& arg : real) {
    if (Value* const* value = std::get_if<Value*>(&arg)) {
      if (IsComplexTensor(*value)) arg = b.Pair(b.Wrap(*value)).value;
    } else if (const ValueList* list = std::get_if<ValueList>(&arg)) {
      std::vector<Value*> values(list->begin(), list->end());
      for (Value*& value : values)
        if (IsComplexTensor(value)) value = b.Pair(b.Wrap(value)).value;
      arg = ValueList(context_.arena.Copy(values));
    } else if (const DType* dtype = std::get_if<DType>(&arg)) {
      arg = RealOf(*dtype);
    }
  }
  std::vector<Type> types;
  for (const Type& type : call.types) types.push_back(PairType(context_, type));
  const Results below = down_.Emit({call.op, real, types, call.loc, call.names});
  std::vector<Value*> results(below.begin(), below.end());
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] && call.types[i].kind == Kind::Tensor && IsComplex(call.types[i].dtype))
      results[i] = Handle(call.types[i], {.pair = results[i]}, i < call.names.size() ? call.names[i] : std::string_view());
  return context_.arena.Copy(results);
}

Results ComplexToReal::Emit(const Call& call) {
  if (HasBody(call)) return EmitOnPairs(call, ReplayBodies(context_, call.args, [&](Sink& down) { return ComplexToReal(down, rules_); }));
  if (!Concerns(call)) return down_.Emit(call);
  if (call.op->name == "pt2onnx::poison" || call.op->id >= kFirstCustomId) return EmitOnPairs(call, call.args);
  if (const uint32_t problem = PoisonOf(context_, call.args)) return EmitPoison(*this, problem, call.types, call.loc);

  Pairs b(*this, call);
  const uint32_t fresh = context_.value_count();
  std::optional<Answer> answer;
  if (const auto rule = rules_.Find(*call.op)) answer = rule(b, call.args);
  else answer = b.View();
  if (!answer)
    return Refuse(*this, call, "E0301", "no form for complex numbers", "compute with the real and the imaginary part: torch.view_as_real gives both");
  if (!b.problem())
    for (size_t i = 0; i < answer->values.size() && i < call.types.size(); ++i)
      if (OptVal& value = answer->values[i]; value && call.types[i].kind == Kind::Tensor) value = b.Cast(*value, call.types[i].dtype);
  return Settle(*this, b, call, *answer, fresh);
}

void ComplexToReal::Output(const GraphOutput& output) {
  Value* const* value = std::get_if<Value*>(&output.value);
  if (!value || !IsComplexTensor(*value)) return down_.Output(output);
  GraphOutput own = output;
  Pairs b(*this, idle_);
  own.value = b.Pair(b.Wrap(*value)).value;
  down_.Output(own);
}

}  // namespace pt2onnx
