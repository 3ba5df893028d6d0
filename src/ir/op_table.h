// The generated schema tables: every op of torch (aten, prims, quantized, quantized_decomposed, torchvision, ...), sym, hop, onnx.
//
// Ids: torch's ops are positions in OpTable(), onnx's follow (onnx table), a program's own start at kFirstCustomId.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "ir/op.h"

namespace pt2onnx {

inline constexpr uint32_t kFirstCustomId = 1 << 16;

std::span<const OpSchema> OpTable();                   // sorted by name; ids are positions
const OpSchema* FindOpInTable(std::string_view name);  // "aten::add.Tensor"; null if unknown
const OpSchema* FindOnnxOp(std::string_view name);     // "onnx::Add"; FindOpInTable asks it too

// Where the out-of-place form takes its arguments from: for each the index of op's argument, -1: its default. By name, where names
// differ by position (dropout_(self, p, train) -> dropout(input, p, train)). Empty if op has no such form.
std::vector<int> ArgsOfFunctional(const OpSchema& op);

}  // namespace pt2onnx
