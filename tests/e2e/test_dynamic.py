"""Sizes known at run time: arithmetic of sizes as Python's, sizes 0 and 1, derived and equal ones, and sizes that values decide."""
import math

import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F

N = Dim.DYNAMIC
a, h = Dim("a"), Dim("h", min=1)


class Call(torch.nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *inputs):
        return [function(*inputs) for function in self.functions]


def rand(*shape):
    return torch.randn(*shape)


def of(*shapes):
    return tuple(rand(*shape) for shape in shapes)


def item(x, n):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0])
    return x[:k] * 2, torch.zeros(k, 3), x.narrow(0, 0, k).sum(0)


def parts(x, n):
    first, second = n.tolist()
    torch._check(first >= 0)
    torch._check(second >= 0)
    torch._check(first + second == x.shape[0])
    return x.split([first, second])


def assigned(x, m):
    y = x.clone()
    y[m] = y[m] * 2 + 1
    return y


def causal(x):
    n = x.shape[1]
    return (x @ x.transpose(1, 2)).masked_fill(torch.triu(torch.ones(n, n, dtype=torch.bool), 1), -math.inf).softmax(-1) @ x


# name: first inputs, dynamic dims, further inputs, functions
CASES = {
    "arithmetic": (of((12,)), [{0: N}], [of((k,)) for k in (1, 2, 3, 14, 30)], [
        lambda x: x[:x.shape[0] % 3 + 1] * (x.shape[0] % 5), lambda x: torch.zeros((x.shape[0] - 7) % 4 + 1), lambda x: torch.zeros(9 + (x.shape[0] - 9) // 4),
        lambda x: x * torch.sym_sqrt(x.shape[0]), lambda x: x / (x.shape[0] / 2 + 1), lambda x: torch.zeros(x.shape[0] ** 2) + x.shape[0] ** 0.5,
        lambda x: torch.arange(0, x.shape[0], 0.7), lambda x: torch.arange(x.shape[0], -3, -2), lambda x: F.pad(x, (1, x.shape[0] % 3)),
        lambda x: F.pad(x, (0, (-x.shape[0]) % 8)).reshape(-1, 8), lambda x: x.roll(x.shape[0] // 2, 0), lambda x: (x.shape[0] * 2, x.shape[0] / 4)]),
    "two_sizes": (of((3,), (4,)), [{0: N}, {0: N}], [of((5,), (2,)), of((1,), (1,)), of((2,), (7,))], [
        lambda x, y: torch.zeros(max(x.shape[0], y.shape[0])), lambda x, y: torch.zeros(torch.sym_max(x.shape[0], y.shape[0]), torch.sym_min(x.shape[0], y.shape[0])),
        lambda x, y: torch.cat([x, y, x])[1:-1], lambda x, y: x[:, None] * y, lambda x, y: torch.stack(torch.meshgrid(x, y, indexing="ij"))]),
    "derived": (of((4,), (5,)), [{0: a}, {0: a + 1}], [of((1,), (2,)), of((9,), (10,))], [lambda x, y: x + y[1:] + y[:-1]]),
    "multiple": (of((12, 2)), [{0: 2 * h}], [of((2, 2)), of((6, 2))], [lambda x: x.reshape(-1, 4).sum(1), lambda x: x.split(x.shape[0] // 2, 0)[0], lambda x: x.repeat_interleave(x.shape[0] // 2, 0)]),
    "equal": (of((4,), (4,)), [{0: a}, {0: a}], [of((1,), (1,)), of((0,), (0,)), of((9,), (9,))], [lambda x, y: x + y, lambda x, y: torch.stack([x, y]), lambda x, y: (x * y).sum()]),
    "ones": (of((4, 1), (1, 5)), [{0: N}, {1: N}], [of((1, 1), (1, 1)), of((3, 1), (1, 1)), of((0, 1), (1, 7))], [lambda x, y: x + y, lambda x, y: torch.where(x > y, x, y)]),
    "none": (of((4, 2)), [{0: N}], [of((1, 2)), of((0, 2))], [
        lambda x: (x.sum(0), x.prod(0), x.softmax(0), x.cumsum(0)), lambda x: torch.sort(x, dim=0, descending=True)[0], lambda x: x.flatten(), lambda x: F.linear(x, torch.ones(3, 2)),
        lambda x: torch.zeros(x.shape[0] + 1, 2).index_add(0, torch.arange(x.shape[0]) // 2, x), lambda x: x[:, None].expand(-1, 3, -1).reshape(-1, 2), lambda x: F.layer_norm(x, (2,))]),
    "images": (of((3, 2, 8, 9)), [{0: N, 2: N, 3: N}], [of((2, 2, 5, 7)), of((1, 2, 4, 4))], [
        lambda x: F.conv2d(x, torch.ones(2, 2, 3, 3), stride=2, padding=1), lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True, count_include_pad=False),
        lambda x: F.adaptive_avg_pool2d(x, (3, 2)), lambda x: F.group_norm(x, 2), lambda x: F.interpolate(x, scale_factor=1.7), lambda x: torch.stack(x.chunk(2, 1))]),
    "sequences": (of((2, 5, 4)), [{0: N, 1: N}], [of((1, 1, 4)), of((3, 8, 4))], [
        causal, lambda x: x + torch.sin(torch.arange(x.shape[1])[:, None] * torch.exp(torch.arange(0, 4, 2) * -0.5).repeat_interleave(2)),
        lambda x: x.flatten(1).unflatten(1, (-1, 2)).flatten(0, 1), lambda x: torch.tril(torch.ones(x.shape[1], x.shape[1])) @ x, lambda x: torch.einsum("bij,bkj->bik", x, x)]),
    "values": (of((4, 3)), [{0: N}], [(-torch.ones(2, 3),), (torch.ones(1, 3),)], [
        lambda x: x.round().nonzero() + 1, lambda x: x[x > 0] * 2, lambda x: x[x.sum(1) > 0].sum(0, keepdim=True) + x[0], lambda x: torch.where(x > 0),
        lambda x: torch.cat([x.masked_select(x > 0), x.masked_select(x < 0)]), lambda x: (x.argmax(), x.max(1)[0], x.cummax(0)[0]), lambda x: x.index_put((x > 1,), torch.tensor(9.0))]),
    "items": ((rand(5, 3), torch.tensor(3)), [{0: N}, None], [(rand(5, 3), torch.tensor(0)), (rand(4, 3), torch.tensor(1)), (rand(4, 3), torch.tensor(4))], [item, lambda x, n: torch.arange(n.item())]),
    "parts": ((rand(5, 3), torch.tensor([3, 2])), [{0: N}, None], [(rand(5, 3), torch.tensor([0, 5])), (rand(2, 3), torch.tensor([1, 1]))], [parts]),
    "masked": ((rand(4, 3), torch.tensor([True, False, True, False])), [{0: a}, {0: a}], [(rand(1, 3), torch.tensor([False])), (rand(2, 3), torch.tensor([True, True]))], [assigned, lambda x, m: x[m].mean(1)]),
    "counts": ((torch.tensor([3, 1, 3, 2]),), [{0: N}], [(torch.tensor([5]),), (torch.tensor([2, 2]),)], [
        lambda x: torch.unique(x, return_counts=True, return_inverse=True), lambda x: torch.bincount(x, minlength=5), lambda x: x.repeat_interleave(x)]),
    "distances": (of((3, 4), (5, 4)), [{0: N}, {0: N}], [of((1, 4), (1, 4)), of((2, 4), (0, 4))], [torch.cdist]),
}


@pytest.mark.parametrize("name", CASES)
def test_dynamic(check_program, name):
    inputs, dims, calls, functions = CASES[name]
    check_program(Call(functions), inputs, dynamic_shapes={"inputs": tuple(dims)}, calls=[(call, None) for call in calls])
