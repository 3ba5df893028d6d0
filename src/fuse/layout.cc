// Reshapes that cancel around elementwise work: rows of a product that are given their dims back only to be taken as rows again.
//
//   Gemm -> Reshape [b, s, n] -> Gelu -> Reshape [-1, n] -> Gemm      ->      Gemm -> Gelu -> Gemm
#include <algorithm>

#include "fuse/fuse.h"

namespace pt2onnx {
namespace {

bool SameShape(Val a, const Type& b) {
  return a.value->type.ranked && b.ranked && std::equal(a.shape().begin(), a.shape().end(), b.shape.begin(), b.shape.end());
}

}  // namespace

void LayoutFusions(Fusions& f) {
  using enum OnnxOp;
  const auto reshaped = [](const Pat& x) { return OneOf({Op(Reshape, {x}), Op(Unsqueeze, {x}), Op(Squeeze, {x})}); };
  const Pat y, back = reshaped(y);
  std::vector<Pat> kinds;
  for (const OnnxOp op :
       {Clip, Elu, OnnxOp::Erf, Gelu, HardSigmoid, HardSwish, LeakyRelu, Mish, Neg, Relu, Selu, OnnxOp::Sigmoid, Softplus, Swish, OnnxOp::Tanh})
    kinds.push_back(Op(op, {back}));
  const Pat middle = OneOf(kinds);
  f.On("layout", reshaped(middle), [=](Onnx& b, const Match& m) -> OptVal {
    if (!SameShape(m[y], b.call().types[0])) return {};
    const Node& node = m.NodeOf(middle);
    std::vector<Arg> args(node.args.begin(), node.args.end());
    args[0] = m[y].value;
    return b.Wrap(b.Emit(*node.op, args, {&m[y].value->type, 1})[0]);
  });
}

}  // namespace pt2onnx
