// What ONNX Runtime's CPU provider runs (a valid model is not enough): the table is gen/ort_kernels.cc, from ONNX Runtime itself.
//
//   if (!RuntimeHas("Relu", 20, x.dtype())) ...   // int64: write Max(x, 0)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/dtype.h"

namespace pt2onnx {

// One type constraint of a version of an op. The deciding constraint of a version stands first.
struct RuntimeKernel {
  std::string_view op;  // "Relu"
  int since;
  std::string_view constraint;
  uint32_t dtypes;  // bit of each DType
};
std::span<const RuntimeKernel> RuntimeKernels();  // sorted by op and version

// Runs at this opset: by a kernel, by expanding the op's function body, or in float32 between casts (float16).
// dtype: of T (else T1, else the first input), or of the constraint named.
bool RuntimeHas(std::string_view op, int opset, DType dtype);
bool RuntimeHas(std::string_view op, int opset, std::string_view constraint, DType dtype);

// Surely has no kernel: the version has none at all, or the named constraint leaves the dtype out. (Versions name constraints differently.)
bool RuntimeRefuses(std::string_view op, int opset, std::string_view constraint, DType dtype);

// The newest run of opsets that have it, both inclusive; last 0: none. For messages and --opset advice.
struct OpsetRange {
  int first = 0, last = 0;
  bool operator==(const OpsetRange&) const = default;
};
inline constexpr int kOpenOpset = 1 << 20;
OpsetRange RuntimeOpsets(std::string_view op, DType dtype);

}  // namespace pt2onnx
