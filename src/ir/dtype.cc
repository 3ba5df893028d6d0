#include "ir/dtype.h"

#include <algorithm>

#include "support/check.h"

namespace pt2onnx {
namespace {

constexpr DTypeFacts kFacts[] = {
    {DType::Unknown, "?", "unknown", 0, 0, 0},
    {DType::U8, "u8", "uint8", 1, 1, 2},
    {DType::I8, "i8", "int8", 1, 2, 3},
    {DType::I16, "i16", "int16", 2, 3, 5},
    {DType::I32, "i32", "int32", 4, 4, 6},
    {DType::I64, "i64", "int64", 8, 5, 7},
    {DType::F16, "f16", "float16", 2, 6, 10},
    {DType::F32, "f32", "float32", 4, 7, 1},
    {DType::F64, "f64", "float64", 8, 8, 11},
    {DType::C32, "c32", "complex32", 4, 9, 0},
    {DType::C64, "c64", "complex64", 8, 10, 14},
    {DType::C128, "c128", "complex128", 16, 11, 15},
    {DType::Bool, "bool", "bool", 1, 12, 9},
    {DType::BF16, "bf16", "bfloat16", 2, 13, 16},
    {DType::U16, "u16", "uint16", 2, 28, 4},
    {DType::U32, "u32", "uint32", 4, 34, 12},
    {DType::U64, "u64", "uint64", 8, 35, 13},
    {DType::F8E4M3FN, "f8e4m3fn", "float8_e4m3fn", 1, 29, 17},
    {DType::F8E5M2, "f8e5m2", "float8_e5m2", 1, 30, 19},
    {DType::F8E4M3FNUZ, "f8e4m3fnuz", "float8_e4m3fnuz", 1, 31, 18},
    {DType::F8E5M2FNUZ, "f8e5m2fnuz", "float8_e5m2fnuz", 1, 32, 20},
    {DType::F8E8M0, "f8e8m0", "float8_e8m0fnu", 1, 33, 24},
    {DType::I4, "i4", "int4", 0, -1, 22},
    {DType::U4, "u4", "uint4", 0, -1, 21},
    {DType::String, "str", "string", 0, -1, 8},
};

template <class Match>
std::optional<DType> Find(Match match) {
  const auto* found = std::find_if(std::begin(kFacts) + 1, std::end(kFacts), match);
  return found == std::end(kFacts) ? std::nullopt : std::optional(found->dtype);
}

// Order of torch's promotion lattice; equal where two types meet above both.
int Rank(DType d) {
  switch (d) {
    case DType::Bool: return 0;
    case DType::U8: case DType::I8: return 1;
    case DType::I16: return 2;
    case DType::I32: return 3;
    case DType::I64: return 4;
    case DType::F16: case DType::BF16: return 5;
    case DType::F32: return 6;
    case DType::F64: return 7;
    case DType::C32: return 8;
    case DType::C64: return 9;
    case DType::C128: return 10;
    default: return 4;
  }
}

}  // namespace

const DTypeFacts& Facts(DType dtype) {
  const DTypeFacts& facts = kFacts[static_cast<int>(dtype)];
  PT2ONNX_CHECK(facts.dtype == dtype);
  return facts;
}

std::optional<DType> DTypeFromPt2(int64_t code) {
  return Find([&](const DTypeFacts& f) { return f.pt2 == code; });
}
std::optional<DType> DTypeFromOnnx(int64_t code) {
  return Find([&](const DTypeFacts& f) { return f.onnx == code; });
}
std::optional<DType> DTypeFromName(std::string_view name) {
  return Find([&](const DTypeFacts& f) { return f.name == name; });
}

DType RealOf(DType d) {
  switch (d) {
    case DType::C32: return DType::F16;
    case DType::C64: return DType::F32;
    case DType::C128: return DType::F64;
    default: return d;
  }
}

DType ComplexOf(DType d) {
  switch (d) {
    case DType::F16: return DType::C32;
    case DType::BF16: case DType::F32: return DType::C64;
    case DType::F64: return DType::C128;
    default: return d;
  }
}

DType Promote(DType a, DType b) {
  if (a == b) return a;
  if (Rank(a) > Rank(b)) std::swap(a, b);
  // b is the higher one. Two of one rank, and a complex with a wider real, meet in a type of their own.
  if (IsComplex(b)) return IsFloat(a) || IsComplex(a) ? ComplexOf(Promote(RealOf(a), RealOf(b))) : b;
  if (Rank(a) == 5 && Rank(b) == 5) return DType::F32;  // f16 with bf16
  if (Rank(a) == 1 && Rank(b) == 1) return DType::I16;  // u8 with i8
  return b;
}

}  // namespace pt2onnx
