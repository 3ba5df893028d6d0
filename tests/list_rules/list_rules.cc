// Prints the ops that have a rule, one a line: "lowering aten::mm". tools/coverage.py makes docs/ops.md of it.
#include <cstdio>

#include "decomp/rules.h"
#include "ir/op_table.h"
#include "lower/rules.h"

int main() {
  const auto lowering = pt2onnx::LoweringRules();
  const auto decomposition = pt2onnx::DecompositionRules();
  for (const pt2onnx::OpSchema& op : pt2onnx::OpTable()) {
    const int length = static_cast<int>(op.name.size());
    if (decomposition.Find(op)) std::printf("decomposition %.*s\n", length, op.name.data());
    if (lowering.Find(op)) std::printf("lowering %.*s\n", length, op.name.data());
  }
}
