// Scaled dot product attention and what is built around it.
//
//   softmax(q k^T * scale + bias) v        a row whose bias is -infinity everywhere has no key: its result is 0, as PyTorch's
//
//   %y = aten::scaled_dot_product_attention(%q, %k, %v, %mask)
//   ->  %b = Where(%mask, 0, -inf)   %p = Softmax(Add(MatMul(Mul(%q, 0.125), Transpose(%k)), %b))   %y = MatMul(%p, %v)
//       %y' = Where(Equal(ReduceMax(%b), -inf), 0, %y)
#include "lower/dropout.h"

namespace pt2onnx {
namespace {

// bool: true takes part. float: added.
Val Bias(Onnx& b, Val mask, DType dtype) {
  if (mask.dtype() != DType::Bool) return b.Cast(mask, dtype);
  return b.Where(mask, b.Constant(0, dtype), b.Constant(-INFINITY, dtype));
}

// Query i sees the keys 0 to i: -infinity above the diagonal.
Val CausalBias(Onnx& b, SymExpr queries, SymExpr keys, DType dtype) {
  return b.Trilu(b.Full({queries, keys}, -INFINITY, dtype), b.IntScalar(1));
}

// Heads of keys and values that serve several heads of queries: [..., heads, S, E], each repeated.
Val RepeatHeads(Onnx& b, Val x, SymExpr heads) {
  if (x.rank() < 3 || x.dim(-3) == heads) return x;
  const SymExpr times = FloorDiv(heads, x.dim(-3));
  DimVec wide(x.shape()), flat(x.shape());
  wide.insert(wide.end() - 2, times);
  flat[flat.size() - 3] = heads;
  return b.Reshape(b.Expand(b.Unsqueeze(x, {-3}), wide), flat);
}

Val SwapLast(Onnx& b, Val x) {
  IntVec perm = Axes(0, x.rank());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return b.Transpose(x, perm);
}

Val Scaled(Onnx& b, Val q, std::optional<double> scale) {
  if (scale) return q * *scale;
  const SymExpr width = q.dim(-1);
  if (width.IsConst()) return q * (1 / std::sqrt(static_cast<double>(width.Const())));
  return q / b.Sqrt(b.Number(width, q.dtype()));
}

struct Request {
  Val q, k, v;
  OptVal mask = {};
  bool causal = false;
  std::optional<double> scale = {};
  double dropout = 0;
};
struct Attended {
  Val y, weights, logsumexp;
};

// PyTorch's CPU kernel for bfloat16: all in float32 but the numerators, which are rounded before they meet the values.
//   round(exp(s - max)) v / sum(exp(s - max))
Val RoundedNumerators(Onnx& b, Val scores, Val v) {
  const Val e = b.Exp(scores - b.ReduceMax(scores, {-1}, true));
  return b.MatMul(b.Cast(b.Cast(e, DType::BF16), DType::F32), b.Cast(v, DType::F32)) / b.ReduceSum(e, {-1}, true);
}

Attended Attend(Onnx& b, const Request& r) {
  const DType dtype = r.q.dtype();
  const bool rounded = dtype == DType::BF16 && r.dropout == 0 && r.v.rank() == 4;
  const auto wide = [&](Val x) { return rounded ? b.Cast(x, DType::F32) : x; };
  Val scores = b.MatMul(Scaled(b, wide(r.q), r.scale), SwapLast(b, wide(r.k)));
  OptVal bias;
  if (r.mask) bias = Bias(b, *r.mask, dtype);
  if (r.causal) {
    const Val causal = CausalBias(b, r.q.dim(-2), r.k.dim(-2), dtype);
    bias = bias ? *bias + causal : causal;
  }
  if (bias) scores = scores + wide(*bias);
  const Val weights = b.Softmax(scores);
  Val y = rounded ? b.Cast(RoundedNumerators(b, scores, r.v), dtype) : b.MatMul(r.dropout > 0 ? Drop(b, weights, r.dropout).y : weights, r.v);
  if (r.mask) {
    const Val best = bias->IsScalar() ? *bias : b.ReduceMax(*bias, {-1}, true);
    y = b.Where(b.Equal(best, b.Constant(-INFINITY, dtype)), b.Constant(0, dtype), y);
  }
  return {y, weights, b.ReduceLogSumExp(scores, {-1})};
}

// Several results of which the first two are ever read.
OptVals WithTail(Onnx& b, const Attended& a) {
  OptVals out = {a.y, a.logsumexp};
  for (size_t i = 2; i < b.call().types.size(); ++i)
    out.push_back(b.call().types[i].kind == Kind::None ? OptVal() : LaterUnsupported(b, i, "only the output and logsumexp of this attention have an ONNX form"));
  return out;
}

template <class Op>
OptVals FusedRule(Onnx& b, const Op& op) {
  Request r{.q = op.query, .k = op.key, .v = op.value, .causal = op.is_causal, .scale = op.scale, .dropout = op.dropout_p};
  if constexpr (requires { op.attn_mask; }) r.mask = op.attn_mask;
  if constexpr (requires { op.attn_bias; }) r.mask = op.attn_bias;
  return WithTail(b, Attend(b, r));
}

// ---- Multi-head attention -----------------------------------------------------------------------------------------------------------

Val Project(Onnx& b, Val x, Val weight, Val bias) { return b.MatMul(x, b.Transpose(weight, {1, 0})) + bias; }

struct MultiHead {
  Val y;
  Val weights;  // of each head
};
// Batch first; the masks' true is "left out": mask_type 0 is [L, S], 1 is [N, S], 2 is [N, heads, L, S].
MultiHead MultiHeadAttention(Onnx& b, Val query, Val key, Val value, int64_t heads, Val qkv_weight, Val qkv_bias, Val out_weight, Val out_bias,
                             const OptVal& mask, std::optional<int64_t> mask_type) {
  const SymExpr width = query.dim(-1), head_width = FloorDiv(width, heads);
  const auto part = [&](Val x, int64_t i) {
    const SymExpr from = width * i, to = width * (i + 1);
    const Val y = Project(b, x, b.Slice(qkv_weight, 0, from, to), b.Slice(qkv_bias, 0, from, to));
    return b.Transpose(b.Reshape(y, {x.dim(0), x.dim(1), heads, head_width}), {0, 2, 1, 3});
  };
  Request r{.q = part(query, 0), .k = part(key, 1), .v = part(value, 2)};
  if (mask) {
    const Val keep = mask->dtype() == DType::Bool ? b.Not(*mask) : *mask;
    r.mask = mask_type == 1 ? b.Unsqueeze(keep, {1, 2}) : keep;
  }
  const Attended a = Attend(b, r);
  const Val joined = b.Reshape(b.Transpose(a.y, {0, 2, 1, 3}), query.shape());
  return {Project(b, joined, out_weight, out_bias), a.weights};
}

Val EncoderLayer(Onnx& b, const aten::_transformer_encoder_layer_fwd& op) {
  const auto norm = [&](Val x, Val weight, Val bias) { return b.LayerNormalization(x, weight, bias, {.axis = -1, .epsilon = op.eps}).Y; };
  const auto attend = [&](Val x) {
    return MultiHeadAttention(b, x, x, x, op.num_heads, op.qkv_weight, op.qkv_bias, op.proj_weight, op.proj_bias, op.mask, op.mask_type).y;
  };
  const auto feed = [&](Val x) {
    const Val inner = Project(b, x, op.ffn_weight_1, op.ffn_bias_1);
    const Val active = !op.use_gelu ? b.Relu(inner) : b.opset() >= 20 ? b.Gelu(inner) : inner * (b.Erf(inner * M_SQRT1_2) + 1) * 0.5;
    return Project(b, active, op.ffn_weight_2, op.ffn_bias_2);
  };
  if (op.norm_first) {
    const Val x = op.src + attend(norm(op.src, op.norm_weight_1, op.norm_bias_1));
    return x + feed(norm(x, op.norm_weight_2, op.norm_bias_2));
  }
  const Val x = norm(op.src + attend(op.src), op.norm_weight_1, op.norm_bias_1);
  return norm(x + feed(x), op.norm_weight_2, op.norm_bias_2);
}

}  // namespace

void AttentionRules(Rules<Onnx>& r) {
  r.On([](Onnx& b, const aten::scaled_dot_product_attention& op) {
    const auto heads = [&](Val x) { return op.enable_gqa && op.query.rank() >= 3 ? RepeatHeads(b, x, op.query.dim(-3)) : x; };
    return Attend(b, {op.query, heads(op.key), heads(op.value), op.attn_mask, op.is_causal, op.scale, op.dropout_p}).y;
  });
  r.On([](Onnx& b, const aten::_scaled_dot_product_attention_math& op) -> Vals {
    const auto heads = [&](Val x) { return op.enable_gqa && op.query.rank() >= 3 ? RepeatHeads(b, x, op.query.dim(-3)) : x; };
    const Attended a = Attend(b, {op.query, heads(op.key), heads(op.value), op.attn_mask, op.is_causal, op.scale, op.dropout_p});
    return {a.y, a.weights};
  });
  r.On<FusedRule<aten::_scaled_dot_product_flash_attention>>();
  r.On<FusedRule<aten::_scaled_dot_product_flash_attention_for_cpu>>();
  r.On<FusedRule<aten::_scaled_dot_product_efficient_attention>>();
  r.On<FusedRule<aten::_scaled_dot_product_cudnn_attention>>();
  r.On<FusedRule<aten::_scaled_dot_product_fused_attention_overrideable>>();

  r.On([](Onnx& b, const aten::_native_multi_head_attention& op) -> OptVals {
    const MultiHead out = MultiHeadAttention(b, op.query, op.key, op.value, op.num_head, op.qkv_weight, op.qkv_bias, op.proj_weight, op.proj_bias,
                                             op.mask, op.mask_type);
    if (!op.need_weights) return {out.y, b.call().types[1].kind == Kind::None ? OptVal() : b.Zeros(ResultShape(b, 1), ResultDType(b, 1))};
    return {out.y, op.average_attn_weights ? b.ReduceMean(out.weights, {1}) : out.weights};
  });
  r.On<EncoderLayer>();
}

}  // namespace pt2onnx
