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


# ---- Attention as models write it

GROUPS = (rand(2, 4, 3, 8), rand(2, 2, 5, 8), rand(2, 2, 5, 8))


def sliding(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None] + k.shape[2] - q.shape[2], torch.arange(k.shape[2])[None]
    return attend(q, k, v, attn_mask=(j <= i) & (j > i - 3), enable_gqa=True)


def alibi(q, k, v):
    slopes = torch.pow(2.0, -torch.arange(1, 5) * 2.0)
    return attend(q, k, v, attn_mask=slopes[:, None, None] * (torch.arange(k.shape[2])[None] - torch.arange(q.shape[2])[:, None]), enable_gqa=True)


def eager(q, k, v):
    k, v = (x[:, :, None].expand(-1, -1, 2, -1, -1).flatten(1, 2) for x in (k, v))
    mask = torch.triu(torch.full((q.shape[2], k.shape[2]), torch.finfo(q.dtype).min), 1)
    return (q @ k.transpose(-1, -2) / 8**0.5 + mask).softmax(-1, dtype=torch.float32).to(q.dtype) @ v


def no_key(q, k, v):
    return attend(q, k, v, attn_mask=torch.zeros(q.shape[2], k.shape[2], dtype=torch.bool), enable_gqa=True)


def test_of_groups(check_program):
    size = torch.export.Dim.DYNAMIC
    check_program(Many([sliding, alibi, eager, no_key, lambda q, k, v: attend(q, k, v, enable_gqa=True)]), GROUPS, dynamic_shapes={"inputs": ({0: size, 2: size},) * 3},
                  calls=[((rand(1, 4, n, 8), rand(1, 2, m, 8), rand(1, 2, m, 8)), None) for n, m in ((1, 7), (7, 7), (2, 0))])


def test_rows_without_a_key(check_program):
    padding = torch.tensor([[True, True, False, False, False], [False] * 5])
    check_program(Many([lambda q, k, v, p: attend(q, k, v, attn_mask=p[:, None, None, :], enable_gqa=True)]), (*GROUPS, padding))


def test_five_dims(check_program):
    x = rand(2, 3, 4, 5, 8)
    check_program(Many([lambda q, k, v: attend(q, k, v, is_causal=True), lambda q, k, v: attend(q, k, v, attn_mask=torch.ones(5, 5).tril().bool())]), (x, x + 1, x - 1))


def test_bfloat16_is_rounded_as_on_a_cpu(check_program):
    inputs = tuple(x.bfloat16() for x in GROUPS)
    check_program(Many([lambda q, k, v: attend(q, k, v, enable_gqa=True), lambda q, k, v: attend(q, k, v, is_causal=True, enable_gqa=True), sliding]), inputs)


def half_turned(x, at):
    angles = at[:, None, :, None].float() / (10000 ** (torch.arange(0, 8, 2) / 8))
    angles = torch.cat([angles, angles], -1)
    return x * angles.cos() + torch.cat([-x[..., 4:], x[..., :4]], -1) * angles.sin()


def pairs_turned(x, at):
    angles = at[:, None, :, None].float() / (10000 ** (torch.arange(0, 8, 2) / 8))
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(-2)


def test_rotary_embeddings(check_program):
    size = torch.export.Dim.DYNAMIC
    check_program(Many([half_turned, pairs_turned]), (rand(2, 4, 5, 8), torch.arange(5)[None].expand(2, -1)), dynamic_shapes={"inputs": ({0: size, 2: size}, {0: size, 1: size})},
                  calls=[((rand(1, 4, 1, 8), torch.tensor([[7]])), None)])


# ---- Mixtures of experts

class Experts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(8, 4)
        self.up, self.down = torch.nn.Parameter(rand(4, 8, 16)), torch.nn.Parameter(rand(4, 16, 8))

    def forward(self, x):
        tokens = x.reshape(-1, 8)
        weight, chosen = self.gate(tokens).softmax(-1).topk(2, -1)
        out = torch.zeros_like(tokens)
        for expert in range(4):                                         # by the tokens that chose it
            row, column = torch.where(chosen == expert)
            out.index_add_(0, row, (F.silu(tokens[row] @ self.up[expert]) @ self.down[expert]) * weight[row, column, None])
        hidden = torch.einsum("td,edh->teh", tokens, self.up).relu()    # all of all
        dense = torch.einsum("teh,ehd->ted", hidden, self.down).gather(1, chosen[..., None].expand(-1, -1, 8))
        return out.reshape(x.shape), (dense * weight[..., None]).sum(1)


def test_experts(check_program):
    size = torch.export.Dim.DYNAMIC
    check_program(Experts(), (rand(2, 3, 8),), dynamic_shapes=({0: size, 1: size},), calls=[((rand(1, 1, 8),), None), ((rand(1, 7, 8),), None)])


def test_grouped_products(check_program):
    def grouped(x, w, chosen):
        order = chosen.argsort(stable=True)
        return torch._grouped_mm(x[order], w, torch.bincount(chosen, minlength=4).cumsum(0).to(torch.int32))
    check_program(Many([grouped]), (rand(12, 16).bfloat16(), rand(4, 16, 8).bfloat16(), torch.randint(0, 4, (12,))), calls=[((rand(12, 16).bfloat16(), rand(4, 16, 8).bfloat16(), torch.full((12,), 2)), None)])
