// Prints what becomes of each op that gives a tensor, is not in-place and has no out argument, one a line: "lowering aten::mm",
// "lowering,complex aten::add.Tensor", "none aten::linalg_eig". tools/coverage.py makes docs/ops.md of it.
#include <algorithm>
#include <cstdio>
#include <string>

#include "complex/rules.h"
#include "decomp/rules.h"
#include "ir/op_table.h"
#include "lower/rules.h"

int main() {
  const auto lowering = pt2onnx::LoweringRules();
  const auto decomposition = pt2onnx::DecompositionRules();
  const auto complex = pt2onnx::ComplexRules();
  for (const pt2onnx::OpSchema& op : pt2onnx::OpTable()) {
    if (op.kind == pt2onnx::OpKind::Inplace || op.kind == pt2onnx::OpKind::Out) continue;
    const bool gives = std::any_of(op.results.begin(), op.results.end(), [](const pt2onnx::ResultSchema& result) { return result.tensor || result.list; });
    std::string ways;
    const auto add = [&](bool has, const char* way) { ways += has ? (ways.empty() ? "" : ",") + std::string(way) : ""; };
    add(decomposition.Find(op), "decomposition");
    add(lowering.Find(op), "lowering");
    add(complex.Find(op), "complex");
    if (ways.empty() && gives) ways = "none";
    if (!ways.empty()) std::printf("%s %.*s\n", ways.c_str(), static_cast<int>(op.name.size()), op.name.data());
  }
}
