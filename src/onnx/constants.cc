// Constants of the builder: bytes of any dtype from numbers, one value for equal ones.
#include "onnx/constants.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "onnx/args.h"
#include "onnx/scope.h"
#include "onnx/table.h"

namespace pt2onnx {
namespace {

template <class T>
void Append(std::vector<std::byte>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof(T));
}

float FromHalf(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const float mantissa = static_cast<float>(bits & 1023);
  const float size = exponent == 0    ? std::ldexp(mantissa, -24)
                     : exponent == 31 ? (mantissa == 0 ? INFINITY : NAN)
                                      : std::ldexp(mantissa + 1024, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

template <class T>
T Load(const std::byte* bytes) {
  T x;
  std::memcpy(&x, bytes, sizeof x);
  return x;
}

// A float rounded to its upper 16 bits, to nearest even; NaN stays NaN.
uint16_t ToBFloat16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// The same to 5 bits of exponent and 10 of mantissa; what is too small for a normal number becomes subnormal, what is too large infinite.
uint16_t ToFloat16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (std::isnan(x)) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and more
  if (magnitude < 0x38800000) {                        // below 2^-14: in units of 2^-24
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(std::fabs(static_cast<double>(x)), 24))));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000) >> 13));
}

// As PyTorch's conversions: half floats by way of float, integers modulo 2^n.
template <class T>
void AppendNumber(std::vector<std::byte>& out, T x, DType dtype) {
  const auto as_int = [&] {
    if constexpr (std::is_same_v<T, double>) return std::isfinite(x) && std::fabs(x) < 9.3e18 ? static_cast<int64_t>(x) : std::numeric_limits<int64_t>::min();
    else return static_cast<int64_t>(x);
  };
  switch (dtype) {
    case DType::Bool: return Append<uint8_t>(out, x != 0);
    case DType::U8: return Append(out, static_cast<uint8_t>(as_int()));
    case DType::I8: return Append(out, static_cast<int8_t>(as_int()));
    case DType::I16: return Append(out, static_cast<int16_t>(as_int()));
    case DType::U16: return Append(out, static_cast<uint16_t>(as_int()));
    case DType::I32: return Append(out, static_cast<int32_t>(as_int()));
    case DType::U32: return Append(out, static_cast<uint32_t>(as_int()));
    case DType::I64: return Append(out, as_int());
    case DType::U64: return Append(out, static_cast<uint64_t>(as_int()));
    case DType::F16: return Append(out, ToFloat16(static_cast<float>(x)));
    case DType::BF16: return Append(out, ToBFloat16(static_cast<float>(x)));
    case DType::F32: return Append(out, static_cast<float>(x));
    case DType::F64: return Append(out, static_cast<double>(x));
    case DType::C64: return Append(out, static_cast<float>(x)), Append(out, 0.0f);
    case DType::C128: return Append(out, static_cast<double>(x)), Append(out, 0.0);
    default: PT2ONNX_UNREACHABLE();
  }
}

void AppendComplex(std::vector<std::byte>& out, std::complex<double> x, DType dtype) {
  PT2ONNX_CHECK(dtype == DType::C64 || dtype == DType::C128);
  const DType real = RealOf(dtype);
  AppendNumber(out, x.real(), real);
  AppendNumber(out, x.imag(), real);
}

// What can't be written down by AppendNumber is computed from float32.
bool IsEncodable(DType dtype) { return ItemSize(dtype) > 0 && (dtype < DType::F8E4M3FN) && dtype != DType::C32; }

}  // namespace

std::vector<std::byte> EncodeScalar(const Scalar& value, DType dtype) {
  std::vector<std::byte> out;
  if (value.IsComplex()) AppendComplex(out, value.AsComplex(), dtype);
  else if (value.IsFloat()) AppendNumber(out, value.AsDouble(), dtype);
  else AppendNumber(out, value.AsInt(), dtype);
  return out;
}

std::vector<std::byte> EncodeNumbers(std::span<const double> values, DType dtype) {
  std::vector<std::byte> out;
  for (double x : values) AppendNumber(out, x, dtype);
  return out;
}

double FloatAt(const TensorData& data, int64_t i) {
  const std::byte* bytes = data.bytes.data() + i * ItemSize(data.dtype);
  switch (data.dtype) {
    case DType::F16: return FromHalf(Load<uint16_t>(bytes));
    case DType::BF16: return std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(bytes)) << 16);
    case DType::F32: return Load<float>(bytes);
    case DType::F64: return Load<double>(bytes);
    default: PT2ONNX_UNREACHABLE();
  }
}

int64_t IntAt(const TensorData& data, int64_t i) {
  const std::byte* bytes = data.bytes.data() + i * ItemSize(data.dtype);
  switch (data.dtype) {
    case DType::Bool: case DType::U8: return Load<uint8_t>(bytes);
    case DType::I8: return Load<int8_t>(bytes);
    case DType::U16: return Load<uint16_t>(bytes);
    case DType::I16: return Load<int16_t>(bytes);
    case DType::U32: return Load<uint32_t>(bytes);
    case DType::I32: return Load<int32_t>(bytes);
    case DType::I64: return Load<int64_t>(bytes);
    default: PT2ONNX_UNREACHABLE();
  }
}

Val Onnx::Remember(Val x, DimVec numbers) {
  scope().known.emplace(x.value->id, std::move(numbers));
  return x;
}

const DimVec* Onnx::KnownInts(Val x) { return FindInScopes(scopes_, &Scope::known, x.value->id); }

std::optional<double> Onnx::ScalarOf(Val x) {
  const double* found = FindInScopes(scopes_, &Scope::scalars, x.value->id);
  return found ? std::optional(*found) : std::nullopt;
}

Val Onnx::Tensor(const TensorData& data) {
  std::string key(1, static_cast<char>(data.dtype));
  for (int64_t dim : data.shape) key.append(reinterpret_cast<const char*>(&dim), sizeof dim);
  key += '|';
  const int64_t place[] = {static_cast<int64_t>(data.file_offset), static_cast<int64_t>(data.file_length)};
  if (data.stored) key.append(reinterpret_cast<const char*>(place), sizeof place);
  else key.append(reinterpret_cast<const char*>(data.bytes.data()), data.bytes.size());
  if (Value** known = FindInScopes(scopes_, &Scope::tensors, key)) return Wrap(*known);

  TensorData* own = context_.arena.New<TensorData>(data);
  own->shape = context_.arena.Copy(data.shape);
  Type type = {.kind = Kind::Tensor, .dtype = data.dtype};
  type.shape = context_.arena.Copy(DimVec(own->shape));
  std::vector<Arg> args(SchemaOf(OnnxOp::Constant).args.size());
  args[static_cast<size_t>(SchemaOf(OnnxOp::Constant).ArgIndex("value"))] = static_cast<const TensorData*>(own);
  Value* value = Emit(SchemaOf(OnnxOp::Constant), args, {&type, 1})[0];
  scope().tensors.emplace(std::move(key), value);
  return Wrap(value);
}

Val Onnx::Constant(Scalar value, DType dtype) {
  if (value.IsSymbolic()) return Number(std::get<SymExpr>(value.value), dtype);
  if (!IsEncodable(dtype)) return Cast(Constant(value, DType::F32), dtype);
  const Val out = Tensor({.dtype = dtype, .shape = {}, .bytes = context_.arena.Copy(EncodeScalar(value, dtype))});
  if (!value.IsComplex()) scope().scalars.emplace(out.value->id, value.AsDouble());
  return dtype == DType::I64 ? Remember(out, {value.AsInt()}) : out;
}

Val Onnx::IntScalar(int64_t value) { return Constant(value, DType::I64); }

Val Onnx::Ints(IntVec values) {
  const int64_t size = std::ssize(values);
  const Val out = Tensor({.dtype = DType::I64, .shape = {&size, 1}, .bytes = context_.arena.Copy(std::as_bytes(std::span(values)))});
  return Remember(out, DimVec(pt2onnx::Ints(values)));
}

Val Onnx::Tensor(IntVec shape, const std::vector<double>& values, DType dtype) {
  if (!IsEncodable(dtype)) return Cast(Tensor(std::move(shape), values, DType::F32), dtype);
  return Tensor({.dtype = dtype, .shape = shape, .bytes = context_.arena.Copy(EncodeNumbers(values, dtype))});
}

Val Onnx::Full(DimVec shape, Scalar value, DType dtype) { return Expand(Constant(value, dtype), std::move(shape)); }

Val Onnx::ConstantOfShape(Val shape, Scalar value, DType dtype) {
  if (value.IsSymbolic() || !IsEncodable(dtype)) return OnnxOps::Expand(Constant(value, dtype), shape);
  const int64_t one = 1;
  auto* data = context_.arena.New<TensorData>();
  data->dtype = dtype;
  data->shape = context_.arena.Copy(std::span(&one, 1));
  data->bytes = context_.arena.Copy(EncodeScalar(value, dtype));
  return OnnxOps::ConstantOfShape(shape, {.value = data});
}

}  // namespace pt2onnx
