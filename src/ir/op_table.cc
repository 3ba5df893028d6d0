#include "ir/op_table.h"

#include <algorithm>

namespace pt2onnx {

const OpSchema* FindOpInTable(std::string_view name) {
  const std::span<const OpSchema> table = OpTable();
  const auto found = std::lower_bound(table.begin(), table.end(), name, [](const OpSchema& op, std::string_view n) { return op.name < n; });
  if (found != table.end() && found->name == name) return &*found;
  return name.starts_with("onnx::") ? FindOnnxOp(name) : nullptr;
}

std::vector<int> ArgsOfFunctional(const OpSchema& op) {
  if (op.functional < 0) return {};
  const OpSchema& functional = OpTable()[static_cast<size_t>(op.functional)];
  std::vector<int> from;
  for (size_t i = 0; i < functional.args.size(); ++i) {
    int source = op.ArgIndex(functional.args[i].name);
    if (source < 0 && i < op.args.size() && functional.ArgIndex(op.args[i].name) < 0 && op.args[i].type == functional.args[i].type)
      source = static_cast<int>(i);
    from.push_back(source);
  }
  return from;
}

}  // namespace pt2onnx
