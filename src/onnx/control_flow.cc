// If, Loop and Scan: bodies are graphs of their own, written while a function of the rule's runs. They use outer values by name.
#include <algorithm>

#include "onnx/args.h"
#include "onnx/infer.h"
#include "onnx/scope.h"
#include "onnx/table.h"

namespace pt2onnx {
namespace {

// What both types are.
Type Merge(Context& context, const Type& a, const Type& b) {
  Type out = {.kind = Kind::Tensor, .dtype = a.dtype};
  out.ranked = a.ranked && b.ranked && a.shape.size() == b.shape.size();
  if (!out.ranked) return out;
  DimVec dims(a.shape);
  for (size_t i = 0; i < dims.size(); ++i)
    if (!(dims[i] == b.shape[i])) dims[i] = SymExpr::Unknown();
  out.shape = context.arena.Copy(dims);
  return out;
}

bool SameType(const Type& a, const Type& b) {
  return a.ranked == b.ranked && std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(),
                                            [](const SymExpr& x, const SymExpr& y) { return x.IsSame(y); });
}

Type Plain(const Type& type) { return {.kind = Kind::Tensor, .dtype = type.dtype, .ranked = type.ranked, .shape = type.shape}; }

Type WithoutFront(const Type& type) {
  Type out = Plain(type);
  if (!out.shape.empty()) out.shape = out.shape.subspan(1);
  return out;
}

Type Stacked(Context& context, const Type& slice, size_t axis, SymExpr count) {
  Type out = Plain(slice);
  DimVec dims(slice.shape);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(std::min(axis, dims.size())), count);
  out.shape = context.arena.Copy(dims);
  return out;
}

}  // namespace

// The body's graph. What a sub-graph gives back must be a value of its own that nothing else stands for.
Onnx::Body Onnx::Build(const std::vector<Type>& inputs, const std::function<Vals(const Vals&)>& body) {
  const Call* call = call_;
  scopes_.push_back(std::make_unique<Scope>());
  Scope& inner = scope();
  inner.graph = context_.NewGraph();
  inner.own_sink = std::make_unique<GraphSink>(context_, *inner.graph);
  inner.sink = inner.own_sink.get();
  inner.first_value = context_.value_count();

  Vals operands;
  for (const Type& type : inputs) {
    GraphInput input;
    input.value = context_.NewValue(type);
    operands.push_back(Wrap(inner.sink->Input(input)));
  }
  Body out = {inner.graph, {}, 0};
  std::vector<Value*> given;
  for (Val value : body(operands)) {
    if (value.value->problem && !out.problem) out.problem = value.value->problem;
    const Node* def = value.value->def;
    const bool own = value.value->id >= inner.first_value && def && !Is(*def->op, OnnxOp::Constant);
    if (!own || std::find(given.begin(), given.end(), value.value) != given.end()) value = Identity(value);
    given.push_back(value.value);
    out.outputs.push_back(value);
    inner.sink->Output({.value = value.value});
  }
  inner.sink->Finish();
  scopes_.pop_back();
  call_ = call;
  return out;
}

Results Onnx::RunControl(OnnxOp op, std::vector<Arg> args, const std::vector<Type>& types, uint32_t problem) {
  if (problem) return Poisoned(problem, types);
  if (const uint32_t form = CheckForm(op, args, types)) return Poisoned(form, types);
  return Emit(SchemaOf(op), args, types);
}

Vals Onnx::If(Val cond, const std::function<Vals(Onnx&)>& then_body, const std::function<Vals(Onnx&)>& else_body) {
  Body yes = Build({}, [&](const Vals&) { return then_body(*this); });
  Body no = Build({}, [&](const Vals&) { return else_body(*this); });
  PT2ONNX_CHECK(yes.outputs.size() == no.outputs.size());
  std::vector<Type> types;
  for (size_t i = 0; i < yes.outputs.size(); ++i) types.push_back(Merge(context_, yes.outputs[i].value->type, no.outputs[i].value->type));
  return WrapAll(*this, RunControl(OnnxOp::If, OnnxArgs(context_).In(cond).Graph(no.graph).Graph(yes.graph).Take(), types,
                                   yes.problem ? yes.problem : no.problem));
}

Vals Onnx::Loop(OptVal trip, OptVal cond, const Vals& carried, const std::function<LoopStep(Onnx&, Val, const Vals&)>& body) {
  const Type index = {.kind = Kind::Tensor, .dtype = DType::I64}, truth = {.kind = Kind::Tensor, .dtype = DType::Bool};
  std::vector<Type> inputs = {index, truth};
  for (const Val& value : carried) inputs.push_back(Plain(value.value->type));
  // A carried value keeps what is the same after a step. Each round only forgets, and there are few dims to forget.
  for (;;) {
    const Body step = Build(inputs, [&](const Vals& operands) {
      const LoopStep out = body(*this, operands[0], Vals(operands.begin() + 2, operands.end()));
      PT2ONNX_CHECK(out.carried.size() == carried.size());
      Vals all = {out.cond};
      all.insert(all.end(), out.carried.begin(), out.carried.end());
      all.insert(all.end(), out.scanned.begin(), out.scanned.end());
      return all;
    });
    bool stable = true;
    for (size_t i = 0; i < carried.size(); ++i) {
      const Type merged = Merge(context_, inputs[2 + i], step.outputs[1 + i].value->type);
      stable = stable && SameType(merged, inputs[2 + i]);
      inputs[2 + i] = merged;
    }
    if (!stable && !step.problem) continue;
    std::vector<Type> types(inputs.begin() + 2, inputs.end());
    for (size_t i = 1 + carried.size(); i < step.outputs.size(); ++i)
      types.push_back(Stacked(context_, step.outputs[i].value->type, 0, SymExpr::Unknown()));
    return WrapAll(*this, RunControl(OnnxOp::Loop, OnnxArgs(context_).In(trip).In(cond).In(carried).Graph(step.graph).Take(), types, step.problem));
  }
}

Vals Onnx::Scan(const Vals& states, const Vals& inputs, const std::function<ScanStep(Onnx&, const Vals&, const Vals&)>& body,
                const ScanOptions& options) {
  std::vector<Type> types;
  for (const Val& state : states) types.push_back(Plain(state.value->type));
  SymExpr count = SymExpr::Unknown();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type& type = inputs[i].value->type;
    const size_t axis = i < options.input_axes.size() ? static_cast<size_t>(options.input_axes[i]) : 0;
    if (axis >= type.shape.size()) {
      types.push_back(WithoutFront(type));
      continue;
    }
    if (count.IsUnknown()) count = type.shape[axis];
    DimVec dims(type.shape);
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
    Type slice = Plain(type);
    slice.shape = context_.arena.Copy(dims);
    types.push_back(slice);
  }
  const auto n = static_cast<std::ptrdiff_t>(states.size());
  for (;;) {
    const Body step = Build(types, [&](const Vals& operands) {
      const ScanStep out = body(*this, Vals(operands.begin(), operands.begin() + n), Vals(operands.begin() + n, operands.end()));
      PT2ONNX_CHECK(out.states.size() == states.size());
      Vals all = out.states;
      all.insert(all.end(), out.outputs.begin(), out.outputs.end());
      return all;
    });
    bool stable = true;
    for (size_t i = 0; i < states.size(); ++i) {
      const Type merged = Merge(context_, types[i], step.outputs[i].value->type);
      stable = stable && SameType(merged, types[i]);
      types[i] = merged;
    }
    if (!stable && !step.problem) continue;
    std::vector<Type> results(types.begin(), types.begin() + n);
    for (size_t i = states.size(); i < step.outputs.size(); ++i) {
      const size_t k = i - states.size();
      const size_t axis = k < options.output_axes.size() ? static_cast<size_t>(options.output_axes[k]) : 0;
      results.push_back(Stacked(context_, step.outputs[i].value->type, axis, count));
    }
    Vals all = states;
    all.insert(all.end(), inputs.begin(), inputs.end());
    return WrapAll(*this, RunControl(OnnxOp::Scan,
                                     OnnxArgs(context_)
                                         .In(all)
                                         .Graph(step.graph)
                                         .Attr(static_cast<int64_t>(inputs.size()))
                                         .Optional(options.input_axes)
                                         .Optional(options.input_directions)
                                         .Optional(options.output_axes)
                                         .Optional(options.output_directions)
                                         .Take(),
                                     results, step.problem));
  }
}

Vals Onnx::Inline(const Graph& graph, std::span<const Arg> operands) {
  PT2ONNX_CHECK(inliner_);
  const Call* call = call_;
  const std::vector<Arg> results = inliner_(graph, operands);
  call_ = call;
  Vals out;
  for (const Arg& result : results) {
    if (Value* const* value = std::get_if<Value*>(&result)) {
      out.push_back(Wrap(*value));
      continue;
    }
    const Scalar number = std::visit(
        [](const auto& x) -> Scalar {
          if constexpr (std::is_constructible_v<Scalar, decltype(x)> && !std::is_pointer_v<std::remove_cvref_t<decltype(x)>>) return x;
          else PT2ONNX_UNREACHABLE();
        },
        result);
    out.push_back(Constant(number, number.IsFloat() ? DType::F64 : number.IsBool() ? DType::Bool : DType::I64));
  }
  return out;
}

}  // namespace pt2onnx
