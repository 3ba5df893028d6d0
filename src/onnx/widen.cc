#include "onnx/widen.h"

#include <algorithm>

#include "onnx/ort_kernels.h"

namespace pt2onnx {
namespace {

// Which dtypes an operator can be computed for in a wider one with the same result, bit for bit.
enum class Exact {
  Never,
  Floats,      // float16, bfloat16 in float32, rounded once at the end
  Wrapping,    // and integers: sums and products modulo 2^n, bits
  Numbers,     // and integers: values that the narrow dtype can hold, order, truncating division
  Moves,       // and bool: elements are only moved or compared
};

Exact ExactnessOf(OnnxOp op) {
  using enum OnnxOp;
  switch (op) {
    case Acos: case Acosh: case Asin: case Asinh: case Atan: case Atanh: case AveragePool: case BatchNormalization: case Ceil: case Celu: case Conv:
    case ConvTranspose: case Cos: case Cosh: case DeformConv: case Det: case Elu: case Erf: case Exp: case Floor: case Gelu: case Gemm:
    case GlobalAveragePool: case GlobalMaxPool: case GridSample: case GroupNormalization: case HardSigmoid: case HardSwish: case InstanceNormalization:
    case IsInf: case IsNaN: case LRN: case LSTM: case GRU: case RNN: case LayerNormalization: case LeakyRelu: case Log: case LogSoftmax:
    case LpNormalization: case LpPool: case Mish: case PRelu: case RMSNormalization: case Reciprocal: case ReduceL1: case ReduceL2: case ReduceLogSum:
    case ReduceLogSumExp: case ReduceMean: case ReduceSumSquare: case Resize: case RoiAlign: case Round: case Selu: case Shrink: case Sigmoid: case Sin:
    case Sinh: case Softmax: case Softplus: case Softsign: case Sqrt: case Swish: case SwiGLU: case Tan: case Tanh: case ThresholdedRelu: case Attention:
    case AffineGrid: case Col2Im: case RotaryEmbedding: case MeanVarianceNormalization: case Hardmax: case Mean: case Einsum: return Exact::Floats;
    case Add: case Sub: case Mul: case BitwiseAnd: case BitwiseNot: case BitwiseOr: case BitwiseXor: case ReduceSum: case ReduceProd: case CumSum:
    case CumProd: case MatMul: case Sum: case Neg: return Exact::Wrapping;
    case Abs: case Sign: case Div: case Mod: case Relu: case Clip: case Pow: case MaxPool: return Exact::Numbers;
    case Max: case Min: case Equal: case Less: case LessOrEqual: case Greater: case GreaterOrEqual: case ReduceMax: case ReduceMin: case ArgMax:
    case ArgMin: case TopK: case Where: case Expand: case Tile: case Concat: case Slice: case Pad: case Gather: case GatherElements: case GatherND:
    case ScatterElements: case ScatterND: case Compress: case NonZero: case Trilu: case EyeLike: case DepthToSpace: case SpaceToDepth:
    case Range: case Unique: case ReverseSequence: case Split: case Transpose: case Reshape: case Unsqueeze: case Squeeze: case Flatten: return Exact::Moves;
    default: return Exact::Never;
  }
}

// The type variable that is widened: that of the first result, or where that is fixed (comparisons, ArgMax) that of the first operand.
int8_t MainVariable(OnnxOp op) {
  const OnnxFacts& facts = FactsOf(op);
  const int8_t of_result = facts.operands[static_cast<size_t>(facts.inputs)].variable;
  for (int i = 0; i < facts.inputs; ++i)
    if (of_result >= 0 && facts.operands[static_cast<size_t>(i)].variable == of_result) return of_result;
  return facts.operands[0].variable;
}

bool SpecHas(OnnxOp op, int operand, DType dtype, int opset) {
  const OnnxForm* form = FormAt(op, opset);
  return form && (form->dtypes[operand] & (1u << static_cast<int>(dtype)));
}

bool RuntimeRuns(OnnxOp op, int opset, DType dtype) {
  return RuntimeHas(SchemaOf(op).name.substr(6), opset, FactsOf(op).variables[static_cast<size_t>(MainVariable(op))], dtype);
}

// Written as it is, whatever ONNX Runtime has.
bool IsKept(DType dtype, const OnnxOptions& options) { return !options.runtime_casts || (dtype == DType::BF16 && !options.bf16_as_f32); }

// Wider dtypes to try, nearest first.
std::vector<DType> Candidates(DType dtype, Exact exact) {
  switch (dtype) {
    case DType::BF16: case DType::F16: return {DType::F32};
    case DType::Bool: return exact == Exact::Moves ? std::vector{DType::U8, DType::I32, DType::I64} : std::vector<DType>{};
    case DType::I8: case DType::U8: case DType::I16: case DType::U16:
      return exact >= Exact::Wrapping ? std::vector{DType::I32, DType::I64} : std::vector<DType>{};
    case DType::I32: case DType::U32: return exact >= Exact::Wrapping ? std::vector{DType::I64} : std::vector<DType>{};
    case DType::U64: return exact == Exact::Wrapping ? std::vector{DType::I64} : std::vector<DType>{};
    default: return {};
  }
}

}  // namespace

std::vector<int> WidenedInputs(OnnxOp op, std::span<const Arg> args) {
  const int8_t variable = MainVariable(op);
  const DType dtype = WidenedDType(op, args);
  std::vector<int> out;
  for (int i = 0; i < FactsOf(op).inputs; ++i) {
    const Arg& arg = args[static_cast<size_t>(i)];
    if (IsNone(arg)) continue;
    const auto* value = std::get_if<Value*>(&arg);
    // Statistics and exponents that happen to have the same narrow dtype go along.
    const bool alike = value && (*value)->type.dtype == dtype && (op == OnnxOp::Pow || op == OnnxOp::BatchNormalization || op == OnnxOp::Attention ||
                                                                  op == OnnxOp::RMSNormalization || op == OnnxOp::GridSample);
    if (variable >= 0 && (FactsOf(op).operands[static_cast<size_t>(i)].variable == variable || alike)) out.push_back(i);
  }
  return out;
}

DType WidenedDType(OnnxOp op, std::span<const Arg> args) {
  const int8_t variable = MainVariable(op);
  for (int i = 0; i < FactsOf(op).inputs; ++i) {
    if (variable < 0 || FactsOf(op).operands[static_cast<size_t>(i)].variable != variable) continue;
    const Arg& arg = args[static_cast<size_t>(i)];
    if (const auto* value = std::get_if<Value*>(&arg)) return (*value)->type.dtype;
    if (const auto* list = std::get_if<ValueList>(&arg); list && !list->empty()) return list->front()->type.dtype;
  }
  return DType::Unknown;
}

DType WiderDType(OnnxOp op, std::span<const Arg> args, int opset, const OnnxOptions& options) {
  const Exact exact = ExactnessOf(op);
  if (exact == Exact::Never || !FormAt(op, opset)) return DType::Unknown;
  const DType dtype = WidenedDType(op, args);
  if (dtype == DType::Unknown || dtype == DType::F32 || dtype == DType::F64) return DType::Unknown;
  const std::vector<int> inputs = WidenedInputs(op, args);
  const bool valid = SpecHas(op, inputs.front(), dtype, opset);
  if (valid && (IsKept(dtype, options) || RuntimeRuns(op, opset, dtype))) return DType::Unknown;
  for (const DType wider : Candidates(dtype, exact))
    if (SpecHas(op, inputs.front(), wider, opset) && (!options.runtime_casts || RuntimeRuns(op, opset, wider))) return wider;
  return DType::Unknown;
}

bool RuntimeLacks(OnnxOp op, std::span<const Arg> args, int opset, const OnnxOptions& options) {
  const int8_t variable = MainVariable(op);
  const DType dtype = WidenedDType(op, args);
  if (!options.runtime_casts || IsKept(dtype, options)) return false;
  return RuntimeRefuses(SchemaOf(op).name.substr(6), opset, variable < 0 ? "" : FactsOf(op).variables[static_cast<size_t>(variable)], dtype);
}

}  // namespace pt2onnx
