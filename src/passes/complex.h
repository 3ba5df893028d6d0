// ComplexToReal: below this sink there is no complex number. A complex tensor of shape S is a real one of shape [S..., 2], its last dim the real
// and the imaginary part: complex64 is float32, complex128 float64, complex32 float16. Inputs, outputs, weights and operands of sub-graphs are
// such pairs.
//
//   %y : c64[4] = aten::mul.Tensor(%a : c64[4], %b : c64[4])    ->    %ar : f32[4] = aten::select.int(%a' : f32[4, 2], -1, 0)   ...
//                                                                     %re = aten::sub.Tensor(%ar * %br, %ai * %bi)   %im = ...
//
// Inside, a value is kept in whatever form was last computed, as a pair or in two parts of shape S, and the other form is made when an op wants it;
// a part that is zero everywhere is not kept at all. So a chain of arithmetic neither packs nor unpacks in between, view_as_real(view_as_complex(x))
// is x, and 1j * x costs a change of sign. It stands before Promote, so that a real operand is scaled with instead of being made complex first.
//
// A product with a real number or tensor scales both parts. Eager PyTorch multiplies by r + 0j, which differs only where infinity times that
// zero is NaN.
#pragma once

#include <unordered_map>

#include "complex/pairs.h"
#include "rewrite/rules.h"

namespace pt2onnx {

class ComplexToReal : public PassSink {
 public:
  ComplexToReal(Sink& down, const Rules<Pairs>& rules) : PassSink(down), rules_(rules) {}
  Value* Input(const GraphInput& input) override;
  Results Emit(const Call& call) override;
  void Output(const GraphOutput& output) override;

  // What upstream sees as a complex value, by what it is below.
  Value* Handle(const Type& type, const ComplexForm& form, std::string_view name = {});
  ComplexForm& Form(const Value* handle);
  // The op itself on pairs: operands and results of complex dtype are [..., 2].
  Results EmitOnPairs(const Call& call, std::span<const Arg> args);

 private:
  const Rules<Pairs>& rules_;
  std::unordered_map<const Value*, ComplexForm> forms_;
  const Call idle_{FindOpInTable("pt2onnx::poison"), {}, {}};
};

}  // namespace pt2onnx
