// How a tensor lies in its storage: questions about sizes and strides that decide whether an op aliases or copies, as eager PyTorch
// decides them. Three answers: symbolic sizes may leave it open.
#pragma once

#include <optional>
#include <vector>

#include "ir/context.h"

namespace pt2onnx {

enum class Tri : uint8_t { No, Yes, Open };

std::vector<SymExpr> RowMajorStrides(Dims shape);
// A type's strides: as recorded, row-major where none were.
std::vector<SymExpr> StridesOf(const Type& type);

// Contiguous in that memory format (1: row-major, 2: channels_last, 3: channels_last_3d).
Tri IsContiguous(const Type& type, int64_t memory_format = 1);

// The strides with which `type` can be viewed as `shape` without a copy (at::detail::computeStride); none: it can't; Open: unknown.
struct ViewStrides {
  Tri possible;
  std::vector<SymExpr> strides;
};
ViewStrides StridesAsView(const Type& type, Dims shape);

// Whether two index tuples can meet in one element. Open counts as yes for who must be careful.
Tri Overlaps(const Type& type);

// Whether `part` lies within the memory that `whole` fills densely. What sizes leave open counts as yes: who names it recorded it so.
bool Covers(const Type& whole, const Type& part);

// The order of dims in memory, outermost first, if the tensor fills its memory densely without overlap (any permutation of row-major).
std::optional<std::vector<int64_t>> MemoryOrder(const Type& type);

}  // namespace pt2onnx
