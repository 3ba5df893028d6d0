// Attention of four dims, from opset 23 on.
#include "fuse/fuse.h"

namespace pt2onnx {
namespace {

// [batch, heads, queries, keys], any dim 1 but the last two, of lower rank too.
bool IsBias(Val bias, Val q, Val kt) {
  if (!bias.value->type.ranked || bias.rank() < 2 || bias.rank() > 4 || bias.dtype() != q.dtype()) return false;
  return bias.dim(-1) == kt.dim(-1) && bias.dim(-2) == q.dim(-2);
}

// softmax(q k^T scale + bias) v. q, kt: [batch, heads, length, width] and its transpose.
OptVal Attend(Onnx& b, Val q, Val kt, Val v, const OptVal& bias, double scale) {
  const auto fits = [](Val x) { return x.value->type.ranked && x.rank() == 4; };
  if (!fits(q) || !fits(kt) || !fits(v) || !(q.dim(1) == kt.dim(1)) || !(q.dim(0) == kt.dim(0)) || !(v.dim(0) == q.dim(0)) || !(v.dim(1) == q.dim(1)))
    return {};
  if (!Usable(b, OnnxOp::Attention, q.dtype()) || q.dtype() != DType::F32 || (bias && !IsBias(*bias, q, kt))) return {};
  return b.Attention(q, b.Transpose(kt, {0, 1, 3, 2}), v, bias, {}, {}, {}, {.scale = scale}).Y;
}

}  // namespace

void AttentionFusions(Fusions& f) {
  const Pat q, kt, v, bias, scale = Number();
  // The scale stands at q, or at the scores.
  const Pat scaled = MatMul(OneOf({q * scale}), kt), plain = MatMul(q, kt) * scale;
  for (const Pat& scores : {scaled, plain}) {
    f.On("attention", MatMul(Softmax(scores), v), [=](Onnx& b, const Match& m) { return Attend(b, m[q], m[kt], m[v], {}, m.Number(scale)); });
    f.On("attention", MatMul(Softmax(scores + bias), v),
         [=](Onnx& b, const Match& m) { return Attend(b, m[q], m[kt], m[v], m[bias], m.Number(scale)); });
  }
}

}  // namespace pt2onnx
