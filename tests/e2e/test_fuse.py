"""Fusions: what a program spells out becomes one operator, with the same numbers, under dynamic shapes, at the opsets that have the operator;
and only then: near misses, and values that somebody else reads, stay as they are."""
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

INF = float("inf")


class Fn(nn.Module):
    def __init__(self, function, **parameters):
        super().__init__()
        self.function = function
        for name, value in parameters.items():
            self.register_parameter(name, nn.Parameter(value))

    def forward(self, *inputs):
        return self.function(self, *inputs)


def of(function, **parameters):
    return Fn(lambda m, *inputs: function(*inputs), **parameters)


S = math.sqrt(2 / math.pi)


def layer_norm(m, x):
    mean = x.mean(-1, keepdim=True)
    return m.weight * (x - mean) / torch.sqrt((x - mean).pow(2).mean(-1, keepdim=True) + 1e-6) + m.bias


def rms_norm(m, x):
    return m.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def softmax(x):
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def log_softmax(x):
    d = x - x.amax(1, keepdim=True)
    return d - d.exp().sum(1, keepdim=True).log()


W = dict(weight=torch.linspace(0.5, 1.5, 8), bias=torch.linspace(-1, 1, 8))

# what it becomes, since which opset, module
FUSED = {
    "gelu": ("Gelu", 20, of(lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))))),
    "gelu_other_order": ("Gelu", 20, of(lambda x: (torch.erf(x * 0.7071067811865476) + 1.0) * x / 2)),
    "gelu_of_a_product": ("Gelu", 20, of(lambda x: 0.5 * (2 * x) * (1 + torch.erf((2 * x) / math.sqrt(2))))),
    "gelu_tanh": ("Gelu", 20, of(lambda x: 0.5 * x * (1 + torch.tanh(S * (x + 0.044715 * torch.pow(x, 3)))))),
    "gelu_tanh_factored": ("Gelu", 20, of(lambda x: 0.5 * x * (1 + torch.tanh(S * x * (1 + 0.044715 * x * x))))),
    "hardswish": ("HardSwish", 18, of(lambda x: x * F.relu6(x + 3) / 6)),
    "softmax": ("Softmax", 18, of(softmax)),
    "log_softmax": ("LogSoftmax", 18, of(log_softmax)),
    "log_softmax_of_logsumexp": ("LogSoftmax", 18, of(lambda x: x - x.logsumexp(-1, keepdim=True))),
    "layernorm": ("LayerNormalization", 18, Fn(layer_norm, **W)),
    "layernorm_without_weight": ("LayerNormalization", 18, of(lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt())),
    "rmsnorm": ("RMSNormalization", 23, Fn(rms_norm, **W)),
    "rmsnorm_of_torch": ("RMSNormalization", 23, nn.RMSNorm(8, eps=1e-5)),
}


@pytest.mark.parametrize("opset", [20, 24])
@pytest.mark.parametrize("name", FUSED)
def test_formula_becomes_one_operator(check_program, name, opset):
    operator, since, module = FUSED[name]
    x = torch.randn(2, 5, 8) * 3
    x[0, 0, :3] = torch.tensor([0.0, 50.0, -50.0])
    shapes = ({0: torch.export.Dim("batch"), 1: torch.export.Dim("length")},)
    checked = check_program(module, (x,), dynamic_shapes=(shapes,) if isinstance(module, Fn) else shapes, calls=[((torch.randn(1, 1, 8),), {}), ((torch.randn(0, 3, 8),), {})], opset=opset)
    assert (operator in checked.op_types) == (opset >= since), checked.op_types
    if opset >= since and name != "gelu_of_a_product":
        assert checked.op_types == [operator]


# near misses, and values with other readers
KEPT = {
    "swish": of(lambda x: x * torch.sigmoid(x)),  # ONNX Runtime runs the operator at opset 24 only
    "gelu_other_number": of(lambda x: x * 0.5 * (1 + torch.erf(x / 1.4))),
    "gelu_of_two_values": Fn(lambda m, x: x * 0.5 * (1 + torch.erf((x + m.bias) / math.sqrt(2))), **W),
    "inner_value_read": of(lambda x: (x * 0.5 * (1 + torch.erf(x / math.sqrt(2))), torch.erf(x / math.sqrt(2)))),
    "layernorm_other_dim": of(lambda x: (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()),
    "layernorm_unbiased": of(lambda x: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt()),
    "softmax_without_maximum": of(lambda x: torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)),
    "softmax_two_dims": of(lambda x: torch.exp(x - x.amax(-1, keepdim=True)) / torch.exp(x - x.amax(-1, keepdim=True)).sum(1, keepdim=True)),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_only_looks_alike_stays(check_program, name):
    checked = check_program(KEPT[name], (torch.randn(2, 5, 8),), opset=24)
    assert not {"Gelu", "LayerNormalization", "Softmax", "LogSoftmax"} & set(checked.op_types)


def attention(q, k, v, mask=None, scale=0.25):
    scores = (q @ k.transpose(-1, -2)) * scale
    return torch.softmax(scores if mask is None else scores + mask, -1) @ v


Q, K, V = torch.randn(2, 4, 5, 16), torch.randn(2, 4, 7, 16), torch.randn(2, 4, 7, 16)
BIAS = torch.where(torch.rand(2, 1, 5, 7) > 0.3, 0.0, -INF)
BIAS[1, 0, 2] = -INF  # a query without a key
ATTENTION = {
    "eager": (of(attention), (Q, K, V)),
    "eager_mask": (of(attention), (Q, K, V, torch.randn(2, 1, 5, 7))),
    "eager_mask_of_two_dims": (of(attention), (Q, K, V, torch.randn(5, 7))),
    "scaled_query": (of(lambda q, k, v: torch.softmax((q / 4) @ k.transpose(2, 3), -1) @ v), (Q, K, V)),
    "sdpa": (of(lambda q, k, v: F.scaled_dot_product_attention(q, k, v)), (Q, K, V)),
    "sdpa_causal": (of(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)), (Q, K[:, :, :5], V[:, :, :5])),
    "sdpa_float_mask": (of(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m)), (Q, K, V, BIAS)),
    "sdpa_bool_mask": (of(lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m)), (Q, K, V, BIAS == 0)),
}


@pytest.mark.parametrize("opset", [20, 23, 24, 28])
@pytest.mark.parametrize("name", ATTENTION)
def test_attention(check_program, name, opset):
    module, inputs = ATTENTION[name]
    batch = torch.export.Dim("batch")
    shapes = (tuple({0: batch} if x.dim() == 4 else None for x in inputs),)
    more = tuple(x[:1] if x.dim() == 4 else x for x in inputs)
    checked = check_program(module, inputs, dynamic_shapes=shapes, calls=[(more, {})], opset=opset)
    assert ("Attention" in checked.op_types) == (opset >= 23)


def test_each_is_switchable(check_program):
    module = of(lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2))) + log_softmax(x))
    x = torch.randn(2, 8)
    for fuse, expected in {"all": {"Gelu", "LogSoftmax"}, "none": set(), "gelu": {"Gelu"}, "softmax,layernorm": {"LogSoftmax"}}.items():
        assert {"Gelu", "LogSoftmax"} & set(check_program(module, (x,), options=("--fuse", fuse)).op_types) == expected


def test_unknown_name_is_wrong_use(run, demo, tmp_path):
    done = run("convert", demo, "-o", tmp_path / "m.onnx", "--fuse", "gelu,telu")
    assert done.code == 2 and "telu" in done.err and "layernorm" in done.err


def test_reshapes_around_activations_cancel(check_program):
    module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
    shapes = ({0: torch.export.Dim("batch"), 1: torch.export.Dim("length")},)
    checked = check_program(module, (torch.randn(2, 3, 8),), dynamic_shapes=shapes, calls=[((torch.randn(0, 3, 8),), {}), ((torch.randn(1, 1, 8),), {})])
    assert [op for op in checked.op_types if op not in ("Shape", "Concat")] == ["Reshape", "Gemm", "Gelu", "Gemm", "Reshape"]


def test_in_a_branch(check_program):
    def branch(x, y):
        return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    module = of(lambda p, x: torch.cond(p, branch, lambda x, y: softmax(x) * y, (x, x + 1)))
    checked = check_program(module, (torch.tensor(True), torch.randn(2, 8)), calls=[((torch.tensor(False), torch.randn(2, 8)), {})])
    inner = {node.op_type for attribute in checked.model.graph.node[-1].attribute for node in attribute.g.node}
    assert inner & {"Gelu", "Softmax"}


def constant_work(x):
    """What a fixed size makes of ranges and masks."""
    n = x.shape[-1]
    i = torch.arange(n)
    mask = (i[:, None] >= i[None, :]) & (i[:, None] - i[None, :] < 3)
    table = torch.outer(torch.arange(n, dtype=torch.float32), 10000 ** (-torch.arange(0, 4).float() / 4))
    angles = torch.cat((table.sin(), table.cos()), -1)
    return (x.masked_fill(~mask, -INF), x @ angles, x[:, torch.where(i % 2 == 0, i, n - 1 - i)], x + torch.full((n, n), -2.5).triu(1).t(),
            x + torch.arange(n).sub(7).div(-2, rounding_mode="floor"), x * torch.arange(n).to(torch.int8).mul(50))


def test_what_is_constant_is_computed(check_program):
    checked = check_program(of(constant_work), (torch.randn(6, 6),))
    check_program(of(lambda x: (x << torch.tensor([1, 64, 3]), x + torch.tensor([1, 2, 3], dtype=torch.uint8))), (torch.tensor([5, -7, 1 << 40]),))
    assert set(checked.op_types) <= {"Where", "MatMul", "Gather", "Add", "Mul", "Cast"}, checked.op_types
