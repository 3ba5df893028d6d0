#include "passes/lower.h"

#include <algorithm>

#include "passes/decompose.h"

namespace pt2onnx {

Lower::Lower(Context& context, Graph& model, const Rules<Onnx>& rules, OnnxOptions options, bool keep_assertions,
             std::map<std::string, std::string> kept)
    : Sink(context), rules_(rules), model_(context, model), onnx_(context, model_, options), kept_(std::move(kept)) {
  if (keep_assertions) assertions_.emplace(onnx_);
  onnx_.SetInliner([this](const Graph& graph, std::span<const Arg> operands) {
    std::vector<Value*> values;
    for (const Arg& arg : operands) values.push_back(std::get<Value*>(arg));
    for (size_t i = 0; i < values.size(); ++i)
      if (const Value* inner = graph.inputs[i].value; inner && inner->type.kind == Kind::Sym) onnx_.Define(inner->type.value, values[i]);
    return Inline(graph, values, *this);
  });
}

Value* Lower::Input(const GraphInput& input) {
  if (!input.value) return model_.Input(input);
  Value tensor = *input.value;
  const bool number = tensor.type.kind == Kind::Sym;
  if (number) tensor.type = {.kind = Kind::Tensor, .dtype = tensor.type.dtype};
  tensor.type.strides = {};
  GraphInput own = input;
  own.value = &tensor;
  Value* value = model_.Input(own);
  if (number) onnx_.Define(input.value->type.value, value);
  else if (input.kind == InputKind::User) inputs_.push_back(value);
  return value;
}

void Lower::DefineInputs() {
  if (inputs_.empty()) return;
  onnx_.Begin(idle_);
  // A dim that is a symbol itself comes before one that is computed from it.
  for (const bool bare : {true, false})
    for (Value* input : inputs_) {
      bool any = false;
      for (const SymExpr& dim : input->type.shape) any |= dim.IsSymbol() == bare && !dim.IsConst();
      if (any) onnx_.DefineFrom(input);
    }
  inputs_.clear();
}

Value* Lower::Poison(uint32_t problem, const Type& type) {
  if (type.kind == Kind::None) return nullptr;
  Type plain = type;
  plain.strides = {};
  Value* value = context_.NewValue(plain);
  value->problem = problem;
  return value;
}

// Tensors are its inputs, in order, and all else attributes by the names that the schema gives.
Answer Lower::Keep(const Call& call, std::string_view target) {
  const auto is_number = [](const SymExpr& e) { return e.IsConst(); };
  std::vector<Arg> args(call.args.begin(), call.args.end());
  for (size_t i = 0; i < args.size(); ++i) {
    Arg& arg = args[i];
    if (std::holds_alternative<Device>(arg) || std::holds_alternative<MemoryFormat>(arg)) arg = {};  // a matter of PyTorch's memory
    const SymExpr* size = std::get_if<SymExpr>(&arg);
    const Dims* sizes = std::get_if<Dims>(&arg);
    if ((size && !is_number(*size)) || (sizes && !std::ranges::all_of(*sizes, is_number)) || std::holds_alternative<std::complex<double>>(arg))
      return onnx_.Unsupported("argument '" + std::string(call.op->args[i].name) + "' of an operator that is kept can't be an attribute of ONNX",
                               "give it a fixed real number, or a tensor");
  }
  OpSchema schema = *call.op;
  schema.name = context_.Join(target);
  OptVals results;
  for (Value* result : onnx_.Emit(*context_.RegisterOp(schema), args, call.types)) results.push_back(onnx_.Wrap(result, true));
  return results;
}

Results Lower::Emit(const Call& call) {
  DefineInputs();
  const auto poison = [&](uint32_t problem) {
    std::vector<Value*> values;
    for (const Type& type : call.types) values.push_back(Poison(problem, type));
    return Results(context_.arena.Copy(values));
  };
  if (call.op->name == "pt2onnx::poison") return poison(static_cast<uint32_t>(std::get<int64_t>(call.args[0])));
  const uint32_t before = PoisonOf(context_, call.args);
  if (before == 0 && assertions_ && IsAssertion(*call.op)) assertions_->Add(call, &onnx_.sink() != &model_);
  const auto kept = kept_.empty() ? kept_.end() : kept_.find(std::string(call.op->name));
  const auto rule = rules_.Find(*call.op);
  if (!rule && kept == kept_.end()) {
    Problem problem{"E0301", "no ONNX form", "", call.loc, std::string(call.op->name)};
    problem.help = "give its meaning with --decompose " + problem.op + "=impl.pt2, or keep it with --custom-op " + problem.op + "=domain::Op";
    return poison(context_.diagnostics.Both(before, context_.diagnostics.Add(std::move(problem))));
  }
  if (before) return poison(before);
  onnx_.Begin(call);
  const uint32_t fresh = context_.value_count();
  Answer answer = kept == kept_.end() ? rule(onnx_, call.args) : Keep(call, kept->second);
  if (onnx_.problem()) return poison(onnx_.problem());
  for (size_t i = 0; i < answer.values.size() && i < call.types.size(); ++i)
    if (OptVal& value = answer.values[i]; value && call.types[i].kind == Kind::Tensor) value = onnx_.Cast(*value, call.types[i].dtype);
  const Results results = Settle(*this, onnx_, call, answer, fresh);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i] || results[i]->problem) continue;
    if (call.types[i].kind == Kind::Sym) onnx_.Define(call.types[i].value, results[i]);
    else onnx_.DefineFrom(results[i]);
  }
  return results;
}

void Lower::Output(const GraphOutput& output) {
  DefineInputs();
  onnx_.Begin(idle_);
  GraphOutput own = output;
  if (const SymExpr* expr = std::get_if<SymExpr>(&output.value)) {
    const DType dtype = expr->kind() == SymKind::Int ? DType::I64 : expr->kind() == SymKind::Bool ? DType::Bool : DType::F64;
    own.value = onnx_.Number(*expr, dtype).value;
  } else if (const int64_t* number = std::get_if<int64_t>(&output.value)) {
    own.value = onnx_.Constant(*number, DType::I64).value;
  } else if (const double* real = std::get_if<double>(&output.value)) {
    own.value = onnx_.Constant(*real, DType::F64).value;
  } else if (const bool* truth = std::get_if<bool>(&output.value)) {
    own.value = onnx_.Constant(*truth, DType::Bool).value;
  }
  if (Value* const* value = std::get_if<Value*>(&own.value); value && assertions_) own.value = assertions_->Tie(*value);
  if (Value* const* value = std::get_if<Value*>(&own.value); value && (*value)->problem) context_.diagnostics.Report((*value)->problem);
  model_.Output(own);
}

}  // namespace pt2onnx
