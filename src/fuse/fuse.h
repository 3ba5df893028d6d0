// Fuse: groups of ONNX operators that are one operator become it: one node in place of many, and one kernel in the runtime.
//
//   Mul(Mul(%x, 0.5), Add(Erf(Mul(%x, 0.7071)), 1))    ->    Gelu(%x)
//
// A rule is a pattern and what is written in its place. It applies where the asked opset has the operator and ONNX Runtime a kernel for it, and
// only if nobody else reads what disappears. Rules apply in program order, so one may go on where another ended: a LayerNormalization takes in
// the product and the sum behind it. This pass looks at uses, so it edits a graph, as Cleanup does; sub-graphs too.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "fuse/pattern.h"

namespace pt2onnx {

struct Fusion {
  std::string_view name;  // what --fuse calls it: "gelu"; several rules may share one
  Pat pattern;
  std::function<OptVal(Onnx&, const Match&)> apply;  // none: not here
};

class Fusions {
 public:
  template <class F>
  void On(std::string_view name, Pat pattern, F apply) {
    list_.push_back({name, std::move(pattern), std::move(apply)});
  }
  const std::vector<Fusion>& list() const { return list_; }
  void Keep(const std::function<bool(std::string_view)>& wanted) {
    std::erase_if(list_, [&](const Fusion& fusion) { return !wanted(fusion.name); });
  }

 private:
  std::vector<Fusion> list_;
};

// One function a family.
void ActivationFusions(Fusions& f);
void AttentionFusions(Fusions& f);
void LayoutFusions(Fusions& f);
void NormFusions(Fusions& f);

Fusions AllFusions();

// names: those to apply; "all" and "none" as they say.
void Fuse(Context& context, Graph& graph, const std::vector<std::string>& names, bool bf16_as_f32);

// The operator exists at this opset, and ONNX Runtime runs it for the dtype.
bool Usable(const Onnx& b, OnnxOp op, DType dtype);

}  // namespace pt2onnx
