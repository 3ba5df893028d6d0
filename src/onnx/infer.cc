// dtypes of results, and shapes of elementwise operators.
#include "onnx/infer.h"

#include <algorithm>

namespace pt2onnx {
namespace {

bool IsBroadcast(OnnxOp op) {
  using enum OnnxOp;
  switch (op) {
    case Add: case And: case BitShift: case BitwiseAnd: case BitwiseOr: case BitwiseXor: case Div: case Equal: case Greater: case GreaterOrEqual:
    case Less: case LessOrEqual: case Max: case Mean: case Min: case Mod: case Mul: case Or: case Pow: case Sub: case Sum: case SwiGLU: case Where:
    case Xor: return true;
    default: return false;
  }
}

bool IsLikeFirst(OnnxOp op) {
  using enum OnnxOp;
  switch (op) {
    case Abs: case Acos: case Acosh: case Asin: case Asinh: case Atan: case Atanh: case BatchNormalization: case Bernoulli: case BitwiseNot: case Cast:
    case CastLike: case Ceil: case Celu: case Clip: case Cos: case Cosh: case CumProd: case CumSum: case DequantizeLinear: case Dropout:
    case DynamicQuantizeLinear: case Elu: case Erf: case Exp: case EyeLike: case Floor: case Gelu: case GroupNormalization: case HardSigmoid:
    case HardSwish: case Hardmax: case Identity: case InstanceNormalization: case IsInf: case IsNaN: case LRN: case LayerNormalization: case LeakyRelu:
    case Log: case LogSoftmax: case LpNormalization: case MeanVarianceNormalization: case Mish: case Neg: case Not: case PRelu: case QuantizeLinear:
    case RMSNormalization: case RandomNormalLike: case RandomUniformLike: case Reciprocal: case Relu: case ReverseSequence: case RotaryEmbedding:
    case Round: case ScatterElements: case ScatterND: case Selu: case Shrink: case Sigmoid: case Sign: case Sin: case Sinh: case Softmax: case Softplus:
    case Softsign: case Sqrt: case Swish: case Tan: case Tanh: case TensorScatter: case ThresholdedRelu: case Trilu: return true;
    default: return false;
  }
}

// Where no operand shares the result's type variable.
DType SpecialDType(const InferCall& call) {
  using enum OnnxOp;
  const auto of_attr = [&](std::string_view name, DType none) {
    const Arg& arg = call.Attr(name);
    return IsNone(arg) ? none : std::get<DType>(arg);
  };
  const auto of_input = [&](int i) { return call.In(i) ? call.In(i)->dtype : DType::Unknown; };
  switch (call.op) {
    case Cast: case BitCast: return of_attr("to", DType::Unknown);
    case Bernoulli: case EyeLike: case RandomNormalLike: case RandomUniformLike: return of_attr("dtype", of_input(0));
    case Multinomial: return of_attr("dtype", DType::I32);
    case RandomNormal: case RandomUniform: return of_attr("dtype", DType::F32);
    case BlackmanWindow: case HammingWindow: case HannWindow: case MelWeightMatrix: return of_attr("output_datatype", DType::F32);
    case QuantizeLinear: return of_attr("output_dtype", DType::U8);
    case DequantizeLinear: return of_attr("output_dtype", of_input(1));
    case LinearAttention: return of_input(0);
    case ConstantOfShape: {
      const Arg& value = call.Attr("value");
      return IsNone(value) ? DType::F32 : std::get<const TensorData*>(value)->dtype;
    }
    default: return DType::F32;  // Mean and InvStdDev of LayerNormalization
  }
}

DType ResultDType(const InferCall& call, size_t result) {
  const OnnxFacts& facts = FactsOf(call.op);
  const size_t inputs = static_cast<size_t>(facts.inputs);
  const OnnxOperand& out = facts.operands[std::min(inputs + result, facts.operands.size() - 1)];
  if (out.fixed != DType::Unknown) return out.fixed;
  for (size_t i = 0; i < inputs; ++i)
    if (out.variable >= 0 && facts.operands[i].variable == out.variable && call.In(static_cast<int>(i))) return call.In(static_cast<int>(i))->dtype;
  return SpecialDType(call);
}

void InferElementwise(InferCall& call) {
  if (IsBroadcast(call.op)) {
    std::vector<const Type*> operands;
    for (int i = 0; i < FactsOf(call.op).inputs; ++i)
      for (const Type* type : call.List(i)) operands.push_back(type);
    if (const auto shape = BroadcastTypes(operands)) call.Set(0, *shape);
    return;
  }
  if (IsLikeFirst(call.op) && call.Ranked(0)) call.Set(0, DimVec(call.Shape(0)));
}

}  // namespace

InferCall::InferCall(Context& c, OnnxOp o, std::span<const Arg> a, size_t results, const KnownIntsFn& known)
    : context(c), op(o), args(a), types(results), known_(known) {
  for (Type& type : types) {
    type.kind = Kind::Tensor;
    type.ranked = false;
  }
  for (size_t i = 0; i < results; ++i) types[i].dtype = ResultDType(*this, i);
}

const Type* InferCall::In(int i) const {
  if (const auto* value = std::get_if<Value*>(&args[static_cast<size_t>(i)])) return &(*value)->type;
  if (const auto* list = std::get_if<ValueList>(&args[static_cast<size_t>(i)])) return list->empty() ? nullptr : &list->front()->type;
  return nullptr;
}

std::vector<const Type*> InferCall::List(int i) const {
  const auto* list = std::get_if<ValueList>(&args[static_cast<size_t>(i)]);
  if (!list) return In(i) ? std::vector<const Type*>{In(i)} : std::vector<const Type*>{};
  std::vector<const Type*> out;
  for (Value* value : *list) out.push_back(&value->type);
  return out;
}

const DimVec* InferCall::Known(int i) const {
  const auto* value = std::get_if<Value*>(&args[static_cast<size_t>(i)]);
  return value ? known_(*value) : nullptr;
}

std::optional<IntVec> InferCall::KnownConst(int i) const {
  const DimVec* known = Known(i);
  if (!known) return std::nullopt;
  IntVec out;
  for (const SymExpr& e : *known) {
    if (!e.IsConst()) return std::nullopt;
    out.push_back(e.Const());
  }
  return out;
}

const Arg& InferCall::Attr(std::string_view name) const {
  const OpSchema& schema = SchemaOf(op);
  for (size_t i = static_cast<size_t>(FactsOf(op).inputs); i < schema.args.size(); ++i)
    if (schema.args[i].name == name) return args[i];
  PT2ONNX_UNREACHABLE();
}

int64_t InferCall::Int(std::string_view name, int64_t none) const {
  const Arg& arg = Attr(name);
  return IsNone(arg) ? none : std::get<int64_t>(arg);
}

Ints InferCall::IntList(std::string_view name) const {
  const Arg& arg = Attr(name);
  return IsNone(arg) ? Ints() : std::get<Ints>(arg);
}

std::string_view InferCall::Text(std::string_view name, std::string_view none) const {
  const Arg& arg = Attr(name);
  return IsNone(arg) ? none : std::get<std::string_view>(arg);
}

std::optional<int64_t> InferCall::Axis(int64_t axis, int64_t rank) const {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? std::optional(axis) : std::nullopt;
}

void InferCall::Set(size_t result, const DimVec& shape) {
  types[result].ranked = true;
  types[result].shape = context.arena.Copy(shape);
}

void InferCall::SetRank(size_t result, int64_t rank) { Set(result, std::vector<SymExpr>(static_cast<size_t>(rank), SymExpr::Unknown())); }

DimVec BroadcastDims(Dims a, Dims b) {
  if (a.size() < b.size()) std::swap(a, b);
  DimVec out(a);
  const size_t shift = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    const SymExpr x = a[shift + i], y = b[i];
    // A constant other than 1 wins over a dim that isn't known: that one is 1 or equal to it.
    const auto decides = [](const SymExpr& e) { return e.IsConst() && e.Const() != 1; };
    out[shift + i] = x == y || y == SymExpr(1) || decides(x) ? x : x == SymExpr(1) || decides(y) ? y : SymExpr::Unknown();
  }
  return out;
}

std::optional<DimVec> BroadcastTypes(std::span<const Type* const> types) {
  DimVec out;
  for (const Type* type : types) {
    if (!type->ranked) return std::nullopt;
    out = BroadcastDims(out, type->shape);
  }
  return out;
}

std::vector<Type> InferOnnx(Context& context, OnnxOp op, std::span<const Arg> args, size_t results, const KnownIntsFn& known) {
  InferCall call(context, op, args, results, known);
  if (!InferStructure(call)) {
    InferElementwise(call);
    InferNetwork(call);
  }
  return std::move(call.types);
}

}  // namespace pt2onnx
