// torchvision's ops, and those of transformers that are ops of their own.
//
//   %keep : i64[u0] = torchvision::nms(%boxes : f32[n, 4], %scores : f32[n], 0.5)    ->    NonMaxSuppression, and the boxes' numbers of its rows
#include "gen/torchvision.h"
#include "gen/transformers.h"
#include "lower/rules.h"

namespace pt2onnx {

void VisionRules(Rules<Onnx>& r) {
  // Boxes by falling score, each kept if it overlaps no kept one by more than the threshold.
  r.On([](Onnx& b, const torchvision::nms& op) {
    const SymExpr n = op.dets.dim(0);
    const Val boxes = b.Reshape(b.Cast(op.dets, DType::F32), {1, n, 4}), scores = b.Reshape(b.Cast(op.scores, DType::F32), {1, 1, n});
    const Val rows = b.NonMaxSuppression(boxes, scores, b.Int1(n), b.Tensor({1}, {op.iou_threshold}, DType::F32));  // [kept, 3]
    return b.Select(rows, 1, 2);
  });

  // out[t] = input[t] @ weight[g], for the group g whose rows end behind t: offs[g - 1] <= t < offs[g]
  r.On([](Onnx& b, const transformers::grouped_mm_fallback& op) {
    const SymExpr rows = op.input.dim(0);
    const Val t = b.Unsqueeze(b.Range(b.IntScalar(0), b.Int(rows), b.IntScalar(1)), {1});
    const Val ended = b.Cast(b.LessOrEqual(b.Unsqueeze(b.Cast(op.offs, DType::I64), {0}), t), DType::I64);  // [rows, groups]
    const Val group = b.Min(b.ReduceSum(ended, {1}), b.Int(op.weight.dim(0) - 1));
    const Val y = b.MatMul(b.Unsqueeze(op.input, {1}), b.Gather(op.weight, group, 0));                      // [rows, 1, out]
    return b.Squeeze(y, {1});
  });
}

}  // namespace pt2onnx
