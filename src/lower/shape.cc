// Views and shapes as values: reshape, permute, expand, slices, and what builds tensors from sizes. Sizes may be symbolic everywhere.
//
//   %y = aten::permute(%x, [0, 2, 1])    ->    %y = Transpose(%x, perm=[0, 2, 1])
#include "lower/rules.h"

namespace pt2onnx {

// The result's shape is recorded with each op, with -1 resolved: rules read it instead of computing it again.
Dims ResultShape(const Onnx& b) { return b.call().types[0].shape; }

void ShapeRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::reshape& op) { return b.Reshape(op.self, ResultShape(b)); });
  r.On([](Onnx& b, const aten::view& op) { return b.Reshape(op.self, ResultShape(b)); });
  r.On([](Onnx& b, const aten::expand& op) { return b.Expand(op.self, ResultShape(b)); });
  r.On([](Onnx& b, const aten::permute& op) { return b.Transpose(op.self, op.dims); });
  r.On([](Onnx& b, const aten::unsqueeze& op) { return b.Unsqueeze(op.self, {op.dim}); });
}

}  // namespace pt2onnx
