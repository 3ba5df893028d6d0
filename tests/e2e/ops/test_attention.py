"""Scaled dot product attention and multi-head attention."""
import pytest
import torch
from test_linalg import rand
from test_shape import Many
from torch.nn import functional as F

ops = torch.ops.aten
Q, K, V = rand(2, 4, 3, 8), rand(2, 4, 5, 8), rand(2, 4, 5, 6)
MASK = torch.tensor([[True, False, True, True, False], [False] * 5, [True] * 5])
BIAS = torch.where(MASK, rand(3, 5), torch.tensor(-torch.inf))
attend = F.scaled_dot_product_attention

CASES = {
    "plain": [(Q, K, V), attend, lambda q, k, v: attend(q, k, v, scale=0.3), lambda q, k, v: attend(q[0], k[0], v[0]), lambda q, k, v: attend(q[0, 0], k[0, 0], v[0, 0]), lambda q, k, v: attend(q[:1], k, v),
              lambda q, k, v: attend(q[None], k[None], v[None])],
    "causal": [(Q, K, V), lambda q, k, v: attend(q, k, v, is_causal=True), lambda q, k, v: attend(k, q, q, is_causal=True), lambda q, k, v: attend(q[:, :, :1], k, v, is_causal=True)],
    "mask": [(Q, K, V, MASK), lambda q, k, v, m: attend(q, k, v, m), lambda q, k, v, m: attend(q, k, v, m.expand(2, 1, 3, 5)), lambda q, k, v, m: attend(q, k, v, m[:1]), lambda q, k, v, m: attend(q, k, v, m[:, :1]),
             lambda q, k, v, m: attend(q, k, v, BIAS), lambda q, k, v, m: attend(q, k, v, BIAS.expand(2, 4, 3, 5)), lambda q, k, v, m: attend(q[0, 0], k[0, 0], v[0, 0], m)],
    "groups": [(Q, K, V), lambda q, k, v: attend(q, k[:, :2], v[:, :2], enable_gqa=True), lambda q, k, v: attend(q[0], k[0, :1], v[0, :1], enable_gqa=True), lambda q, k, v: attend(q, k, v, enable_gqa=True)],
    "parts": [(Q, K, V[..., :6]), lambda q, k, v: ops._scaled_dot_product_flash_attention_for_cpu(q, k, k), lambda q, k, v: ops._scaled_dot_product_flash_attention_for_cpu(q, k, k, attn_mask=BIAS[:1]),
              lambda q, k, v: ops._scaled_dot_product_attention_math(q, k, v, is_causal=True)],
}


@pytest.mark.parametrize("name", CASES)
def test_attention(check_program, name):
    inputs, *functions = CASES[name]
    check_program(Many(functions), inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64], ids=str)
def test_dtypes(check_program, dtype):
    inputs = tuple(x.to(dtype) for x in (Q, K, V))
    check_program(Many([attend, lambda q, k, v: attend(q, k, v, MASK), lambda q, k, v: attend(q, k, v, is_causal=True)]), inputs)


def test_dynamic(check_program):
    size = torch.export.Dim.DYNAMIC
    functions = [lambda q, k, v: attend(q, k, v), lambda q, k, v: attend(q, k, v, is_causal=True), lambda q, k, v: attend(q, k[:, :2], v[:, :2], enable_gqa=True), lambda q, k, v: attend(q, k, v, (k[..., 0] > 0)[:, :, None])]
    keys = {0: size, 2: size}
    check_program(Many(functions), (Q, K, V), dynamic_shapes={"inputs": (keys, keys, keys)}, calls=[((rand(1, 4, 6, 8), rand(1, 4, 2, 8), rand(1, 4, 2, 6)), None)])


def test_dropout(check_program):
    check_program(Many([lambda q, k, v: attend(q, k, v, dropout_p=0.5)]), (Q, K, V), values=False)


class MultiHead(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, y, padding):
        a = self.attention
        return a(x, y, y), a(x, y, y, need_weights=False), a(x, x, x, padding[:, :3]), a(x, y, y, padding, attn_mask=torch.zeros(3, 5)), a(x[0], y[0], y[0], average_attn_weights=False)


class Native(torch.nn.Module):
    """The fused forms, which capture leaves alone when they are called by name."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, activation, batch_first=True, norm_first=first) for activation, first in [("relu", False), ("gelu", True)])

    def forward(self, x, padding):
        out = []
        for layer in self.layers:
            a = layer.self_attn
            out.append(ops._native_multi_head_attention(x, x, x, 8, 2, a.in_proj_weight, a.in_proj_bias, a.out_proj.weight, a.out_proj.bias))
            for mask, kind in [(None, None), (padding, 1)]:
                out.append(ops._transformer_encoder_layer_fwd(x, 8, 2, a.in_proj_weight, a.in_proj_bias, a.out_proj.weight, a.out_proj.bias, layer.activation_relu_or_gelu == 2, layer.norm_first, layer.norm1.eps,
                                                              layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias, layer.linear1.weight, layer.linear1.bias, layer.linear2.weight, layer.linear2.bias, mask, kind))
        return out


def test_multi_head(check_program):
    padding = torch.tensor([[False, False, True, False, True], [False] * 5])
    check_program(MultiHead().eval(), (rand(2, 3, 8), rand(2, 5, 8), padding))
    check_program(Native().eval(), (rand(2, 5, 8), padding))


def test_few_nodes(check_program):
    assert sorted(check_program(Many([attend]), (Q, K, V)).op_types) == ["MatMul", "MatMul", "Mul", "Softmax", "Transpose"]
