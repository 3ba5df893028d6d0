// Autocast: what a `with torch.autocast` region does to the ops in it. Capture records such a region before its casts are made, but each result's
// dtype as they make it.
//
//   %y : bf16 = aten::linear(%x : f32, %w : f32)    ->    %a = convert(%x, bf16)  %b = convert(%w, bf16)  %y = aten::linear(%a, %b)
//
// Ops of the matmul and convolution families compute in the region's dtype. Other ops whose recorded result is wider than an operand compute wide.
#pragma once

#include <functional>

#include "rewrite/sink.h"

namespace pt2onnx {

class Autocast : public PassSink {
 public:
  // `is_inlined`: ops whose sub-graph is part of the region.
  Autocast(Sink& down, DType dtype, bool (*is_inlined)(const OpSchema&)) : PassSink(down), dtype_(dtype), is_inlined_(is_inlined) {}
  Results Emit(const Call& call) override;

 private:
  DType dtype_;
  bool (*is_inlined_)(const OpSchema&);
};

}  // namespace pt2onnx
