// Promote: after it, the tensors of an elementwise op have one dtype, the one that PyTorch computes in, so that lowering rules are maths.
//
//   %y : f32 = aten::add.Tensor(%a : i64, %b : f32)    ->    %c = prims::convert_element_type(%a, f32)   %y = aten::add.Tensor(%c, %b)
//
// Python numbers stay numbers: a rule makes them constants of its operand's dtype.
#pragma once

#include "rewrite/aten.h"
#include "rewrite/sink.h"

namespace pt2onnx {

class PromoteTypes : public PassSink {
 public:
  explicit PromoteTypes(Sink& down) : PassSink(down) {}
  Results Emit(const Call& call) override;
};

}  // namespace pt2onnx
