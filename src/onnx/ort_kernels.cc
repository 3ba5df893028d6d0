#include "onnx/ort_kernels.h"

#include <algorithm>

namespace pt2onnx {
namespace {

using Rows = std::span<const RuntimeKernel>;

Rows RowsOf(std::string_view op) {
  if (op.starts_with("onnx::")) op.remove_prefix(6);
  const Rows all = RuntimeKernels();
  const auto first = std::lower_bound(all.begin(), all.end(), op, [](const RuntimeKernel& k, std::string_view name) { return k.op < name; });
  auto last = first;
  while (last != all.end() && last->op == op) ++last;
  return {first, last};
}

// Of all the op's rows those of the version that holds at this opset: the last one that has begun.
Rows RowsAt(Rows rows, int opset) {
  size_t begin = rows.size(), end = rows.size();
  for (size_t i = 0; i < rows.size() && rows[i].since <= opset; ++i) {
    if (begin == rows.size() || rows[i].since != rows[begin].since) begin = i;
    end = i + 1;
  }
  return rows.subspan(begin, end - begin);
}

bool Has(const RuntimeKernel& row, DType dtype) { return (row.dtypes >> static_cast<int>(dtype) & 1) != 0; }

}  // namespace

bool RuntimeHas(std::string_view op, int opset, DType dtype) {
  const Rows rows = RowsAt(RowsOf(op), opset);
  return !rows.empty() && Has(rows[0], dtype);
}

bool RuntimeHas(std::string_view op, int opset, std::string_view constraint, DType dtype) {
  for (const RuntimeKernel& row : RowsAt(RowsOf(op), opset))
    if (row.constraint == constraint) return Has(row, dtype);
  return RuntimeHas(op, opset, dtype);  // what no kernel constrains is open
}

bool RuntimeRefuses(std::string_view op, int opset, std::string_view constraint, DType dtype) {
  const Rows rows = RowsAt(RowsOf(op), opset);
  if (rows.empty() || rows[0].dtypes == 0) return true;
  for (const RuntimeKernel& row : rows)
    if (row.constraint == constraint && dtype != DType::Unknown) return !Has(row, dtype);
  return false;
}

OpsetRange RuntimeOpsets(std::string_view op, DType dtype) {
  OpsetRange range;
  const Rows rows = RowsOf(op);
  for (size_t i = 0; i < rows.size();) {
    size_t next = i + 1;
    while (next < rows.size() && rows[next].since == rows[i].since) ++next;
    const int last = next < rows.size() ? rows[next].since - 1 : kOpenOpset;
    if (Has(rows[i], dtype)) range = {range.last > 0 && range.last == rows[i].since - 1 ? range.first : rows[i].since, last};
    i = next;
  }
  return range;
}

}  // namespace pt2onnx
