// The dtype codes of the .pt2 format. They are torch's export ScalarType, not c10's numbers.
#pragma once

#include <cstdint>
#include <string_view>

namespace pt2onnx {

struct DTypeCode {
  int code;
  int64_t item_size;
  std::string_view name;     // as in torch.float32
  std::string_view storage;  // as in torch.FloatStorage; "" where torch has no such class
};

// nullptr: no such dtype.
const DTypeCode* FindDTypeCode(int code);
const DTypeCode* FindDTypeByName(std::string_view name);
const DTypeCode* FindDTypeByStorage(std::string_view class_name);

// Bytes of one element; 0 for a code that has none.
int64_t ItemSize(int code);

}  // namespace pt2onnx
