#include "onnx/table.h"

#include <algorithm>

namespace pt2onnx {

// The table is sorted by name.
const OpSchema* FindOnnxOp(std::string_view name) {
  const auto table = OnnxOpTable();
  const auto at = std::lower_bound(table.begin(), table.end(), name, [](const OpSchema& op, std::string_view key) { return op.name < key; });
  return at != table.end() && at->name == name ? &*at : nullptr;
}

const OnnxForm* FormAt(OnnxOp op, int opset) {
  const OnnxForm* found = nullptr;
  for (const OnnxForm& form : FactsOf(op).forms)
    if (form.since <= opset) found = &form;
  return found;
}

}  // namespace pt2onnx
