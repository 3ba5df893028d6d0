// Running sums, products and extremes along a dim. Only the sum is an operator at every opset; the others scan the slices one by one.
//
//   %y = aten::cumsum(%x : i32, 1)    ->    %y = CumSum(Cast(%x, i64), 1)
#include "lower/reduce.h"

namespace pt2onnx {
namespace {

template <class Op>
Val CumSum(Onnx& b, const Op& op) {
  const Val x = b.Cast(op.self, ResultDType(b));
  return x.IsScalar() ? x : b.CumSum(x, b.IntScalar(Axis(op.dim, x.rank())));
}

}  // namespace

void CumulativeRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::cumsum& op) { return CumSum(b, op); });
}

}  // namespace pt2onnx
