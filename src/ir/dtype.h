// Element types. One table knows each one's names, size and codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace pt2onnx {

enum class DType : uint8_t {
  Unknown, U8, I8, I16, I32, I64, F16, F32, F64, C32, C64, C128, Bool, BF16, U16, U32, U64,
  F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0, I4, U4, String,
};

struct DTypeFacts {
  DType dtype;
  std::string_view name;   // in the text form: "f32"
  std::string_view torch;  // "float32"
  int size;                // bytes of an element; 0: less than one, or none
  int pt2;                 // code in a .pt2 (ScalarType); -1: none
  int onnx;                // TensorProto.DataType; 0: none
};

const DTypeFacts& Facts(DType dtype);
std::optional<DType> DTypeFromPt2(int64_t code);
std::optional<DType> DTypeFromOnnx(int64_t code);
std::optional<DType> DTypeFromName(std::string_view name);  // the text form's name

inline std::string_view Name(DType dtype) { return Facts(dtype).name; }
inline int ItemSize(DType dtype) { return Facts(dtype).size; }
inline int OnnxCode(DType dtype) { return Facts(dtype).onnx; }

inline bool IsComplex(DType d) { return d == DType::C32 || d == DType::C64 || d == DType::C128; }
inline bool IsFloat(DType d) { return d == DType::F16 || d == DType::F32 || d == DType::F64 || d == DType::BF16 || (d >= DType::F8E4M3FN && d <= DType::F8E8M0); }
// Integers without bool.
inline bool IsIntegral(DType d) { return (d >= DType::U8 && d <= DType::I64) || (d >= DType::U16 && d <= DType::U64) || d == DType::I4 || d == DType::U4; }
inline bool IsUnsigned(DType d) { return d == DType::U8 || (d >= DType::U16 && d <= DType::U64) || d == DType::U4; }

DType RealOf(DType complex);      // c64 -> f32; a real dtype is itself
DType ComplexOf(DType real);      // f32 -> c64
DType Promote(DType a, DType b);  // torch.promote_types

}  // namespace pt2onnx
