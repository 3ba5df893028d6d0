#include "archive/dtype_codes.h"

#include <algorithm>
#include <iterator>

namespace pt2onnx {

namespace {

constexpr DTypeCode kDTypes[] = {
    {1, 1, "uint8", "ByteStorage"},
    {2, 1, "int8", "CharStorage"},
    {3, 2, "int16", "ShortStorage"},
    {4, 4, "int32", "IntStorage"},
    {5, 8, "int64", "LongStorage"},
    {6, 2, "float16", "HalfStorage"},
    {7, 4, "float32", "FloatStorage"},
    {8, 8, "float64", "DoubleStorage"},
    {9, 4, "complex32", ""},
    {10, 8, "complex64", "ComplexFloatStorage"},
    {11, 16, "complex128", "ComplexDoubleStorage"},
    {12, 1, "bool", "BoolStorage"},
    {13, 2, "bfloat16", "BFloat16Storage"},
    {28, 2, "uint16", ""},
    {29, 1, "float8_e4m3fn", ""},
    {30, 1, "float8_e5m2", ""},
    {31, 1, "float8_e4m3fnuz", ""},
    {32, 1, "float8_e5m2fnuz", ""},
    {33, 1, "float8_e8m0fnu", ""},
    {34, 4, "uint32", ""},
    {35, 8, "uint64", ""},
};

template <class Matches>
const DTypeCode* FindIf(Matches matches) {
  const auto* found = std::find_if(std::begin(kDTypes), std::end(kDTypes), matches);
  return found == std::end(kDTypes) ? nullptr : found;
}

}  // namespace

const DTypeCode* FindDTypeCode(int code) {
  return FindIf([&](const DTypeCode& t) { return t.code == code; });
}

const DTypeCode* FindDTypeByName(std::string_view name) {
  return FindIf([&](const DTypeCode& t) { return t.name == name; });
}

const DTypeCode* FindDTypeByStorage(std::string_view class_name) {
  return FindIf([&](const DTypeCode& t) { return !t.storage.empty() && t.storage == class_name; });
}

int64_t ItemSize(int code) {
  const DTypeCode* found = FindDTypeCode(code);
  return found ? found->item_size : 0;
}

}  // namespace pt2onnx
