// The generated schema tables: every op of torch (aten, prims, quantized, quantized_decomposed, torchvision, ...), sym, hop, onnx.
#pragma once

#include <span>
#include <string_view>

#include "ir/op.h"

namespace pt2onnx {

std::span<const OpSchema> OpTable();                    // ids are positions
const OpSchema* FindOpInTable(std::string_view name);   // "aten::add.Tensor"; null if unknown

}  // namespace pt2onnx
