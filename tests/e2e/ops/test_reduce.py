"""Reductions and running reductions: many small programs in one module for each kind of input, at two opsets, and with dynamic sizes."""
import pytest
import torch
from torch.export import Dim

NAN, INF = float("nan"), float("inf")


class Many(torch.nn.Module):
    """Several small programs in one, so that each costs no conversion of its own."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *inputs):
        results = [function(*inputs) for function in self.functions]
        return [tuple(result) if isinstance(result, tuple) else result for result in results]


def over_dims(function):
    """The whole tensor, one dim, several, all of them listed, and kept ones."""
    return [lambda x: function(x), lambda x: function(x, dim=1), lambda x: function(x, dim=-1, keepdim=True), lambda x: function(x, dim=(0, -1)),
            lambda x: function(x, dim=(0, 1), keepdim=True), lambda x: function(x[0, 0, 0]), lambda x: function(x[0, 0, 0], dim=0, keepdim=True)]


def over_dim(function):
    return [lambda x: function(x, 0), lambda x: function(x, -1), lambda x: function(x, 1, keepdim=True), lambda x: function(x[0, 0, 0], -1)]


A = torch.ops.aten
NUMBERS = [
    *over_dims(torch.sum), lambda x: x.sum(1, dtype=torch.float64), lambda x: x.sum([]), lambda x: A.sum.dim_IntList(x, None, True), lambda x: x[:0].sum(0),
    lambda x: x.sum_to_size(3, 1), lambda x: x.sum_to_size(1, 3, 4), lambda x: torch.trace(x[0]),
    lambda x: x.prod(), lambda x: x.prod(1), lambda x: x.prod(-1, keepdim=True), lambda x: x[:, :0].prod(1), lambda x: x[0, 0, 0].prod(0), lambda x: x.prod(0, dtype=torch.float32),
    *over_dims(torch.amax), *over_dims(torch.amin), lambda x: x.max(), lambda x: x.min(), *over_dim(torch.max), *over_dim(torch.min), lambda x: x.aminmax(),
    lambda x: x.aminmax(dim=1, keepdim=True), lambda x: x.argmax(), lambda x: x.argmin(), *over_dim(torch.argmax), *over_dim(torch.argmin),
    lambda x: x.argmax(keepdim=True), lambda x: x[0, 0, 0].argmax(), lambda x: torch.round(x / 3).argmin(1) if x.is_floating_point() else (x // 3).argmin(1),
    *over_dims(torch.any), *over_dims(torch.all), lambda x: x[:, :0].any(1), lambda x: x[:, :0].all(1), lambda x: A.any.dims(x, []), lambda x: (x > 1).all(), lambda x: (x > 1).any(0),
    lambda x: torch.count_nonzero(x), lambda x: torch.count_nonzero(x, 1), lambda x: torch.count_nonzero(x, (0, -1)),
    lambda x: x.cumsum(0), lambda x: x.cumsum(-1, dtype=torch.float32), lambda x: x[0, 0, 0].cumsum(0), lambda x: x.cumprod(1), lambda x: x[0, 0, 0].cumprod(0),
    lambda x: x.cummax(0), lambda x: x.cummin(-1), lambda x: (x // 2).cummax(1), lambda x: x[0, 0, 0].cummin(0),
]
FLOATS = [
    *over_dims(torch.mean), lambda x: x[:, :0].mean(1), lambda x: x.mean(0, dtype=torch.float64), *over_dims(torch.nansum), *over_dims(torch.nanmean),
    *over_dims(torch.var), *over_dims(torch.std), *over_dims(torch.var_mean), *over_dims(torch.std_mean), lambda x: x.var(unbiased=False), lambda x: x.std(1, unbiased=False, keepdim=True),
    lambda x: x.var(1, correction=0), lambda x: x.var((0, 1), correction=2), lambda x: torch.std_mean(x, 1, correction=0.5), lambda x: torch.var_mean(x, correction=0), lambda x: x[:1].var(0),
    lambda x: x[:1].var(0, correction=2), lambda x: x.logsumexp(1), lambda x: x.logsumexp((0, 2), keepdim=True), lambda x: (x * INF).logsumexp(-1), lambda x: x.logcumsumexp(1),
    *[lambda x, p=p: torch.linalg.vector_norm(x, p, (0, 2)) for p in (0, 1, 2, 3, -1, 0.5, INF, -INF)], *over_dims(torch.linalg.vector_norm),
    lambda x: torch.linalg.vector_norm(x, 2, 1, dtype=torch.float64), lambda x: x.norm(), lambda x: x.norm(p="fro"), lambda x: x.norm(1, 0), lambda x: x.norm(INF, -1, True),
    lambda x: torch.linalg.norm(x), lambda x: torch.linalg.norm(x, dim=1), lambda x: torch.linalg.norm(x, INF, (0, 1)), lambda x: torch.linalg.norm(x[0], 1), lambda x: torch.linalg.norm(x[0, 0], 3),
    *[lambda x, p=p: torch.linalg.matrix_norm(x, p) for p in (1, -1, INF, -INF, "fro")], lambda x: torch.linalg.matrix_norm(x, 1, (2, 0), keepdim=True),
    lambda x: torch.dist(x, x[:1] * 2), lambda x: torch.dist(x, x[:1] * 2, INF),
]


def numbers(dtype):
    return (torch.arange(24).reshape(2, 3, 4) * 7 % 11 - 3).to(dtype)


@pytest.mark.parametrize("dtype, opset", [(torch.float32, 20), (torch.float64, 18), (torch.int64, 22), (torch.int32, 18), (torch.uint8, 20), (torch.float16, 20)])
def test_numbers(check_program, dtype, opset):
    functions = NUMBERS + (FLOATS if dtype in (torch.float32, torch.float64) else [])
    check_program(Many(functions), (numbers(dtype),), opset=opset)


def test_bool(check_program):
    functions = [lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.prod(0), lambda x: x.amax(1), lambda x: x.amin(), lambda x: x.max(), lambda x: x.max(0), lambda x: x.any(1),
                 lambda x: x.all(), lambda x: x.all((0, 1)), lambda x: x.cumsum(1), lambda x: x.cummax(1), lambda x: torch.count_nonzero(x, 0)]
    for opset in (18, 20):
        check_program(Many(functions), (numbers(torch.int64) > 1,), opset=opset)


def test_nan_wins(check_program):
    x = torch.tensor([[1, NAN, 3, 2], [NAN, 1, NAN, -INF], [1, 2, NAN, INF], [4, 5, 6, 5], [NAN] * 4])
    functions = [lambda x: x.amax(), lambda x: x.amax(0), lambda x: x.amax(1), lambda x: x.amin(1), lambda x: x.amin((0, 1), keepdim=True), lambda x: x.max(1), lambda x: x.min(1), lambda x: x.max(0),
                 lambda x: x.argmax(1), lambda x: x.argmin(1), lambda x: x.argmin(), lambda x: x.aminmax(dim=1), lambda x: x.cummax(1), lambda x: x.cummin(1), lambda x: x.any(1), lambda x: x.all(1),
                 lambda x: x.nansum(1), lambda x: x.nanmean(1), lambda x: torch.linalg.vector_norm(x, INF, 1), lambda x: x.logcumsumexp(1)]
    for dtype in (torch.float32, torch.float64):
        check_program(Many(functions), (x.to(dtype),))


def test_sizes_vary(check_program):
    functions = [lambda x: x.sum(0), lambda x: x.mean((0, 1)), lambda x: x.amax(), lambda x: x.amax((0, 2)), lambda x: x.max(1), lambda x: x.argmin(0), lambda x: x.argmax(keepdim=True), lambda x: x.any(0),
                 lambda x: x.all((0, 1)), lambda x: x.var(0), lambda x: x.std((0, 2), correction=0), lambda x: x.cumsum(1), lambda x: x.cumprod(0), lambda x: x.cummax(1),
                 lambda x: x.sum_to_size(4), lambda x: x.norm(INF, 1)]
    shapes = {0: Dim("n", min=1, max=64), 1: Dim("m", min=1, max=64)}
    check_program(Many(functions), (numbers(torch.float32),), dynamic_shapes=[(shapes,)], calls=[((torch.randn(5, 2, 4),), {}), ((torch.randn(1, 7, 4),), {})])


@pytest.mark.parametrize("opset", [18, 20])
def test_no_elements(check_program, opset):
    functions = [lambda x: x.sum(0), lambda x: x.sum(), lambda x: x.prod(0), lambda x: x.any(0), lambda x: x.all(0), lambda x: x.sum(1), lambda x: x.cumsum(0),
                 lambda x: x.mean(0), lambda x: x.mean(), lambda x: x.half().mean(0), lambda x: x.nanmean(0), lambda x: x.var(0, correction=0), lambda x: torch.std_mean(x, 0)]
    check_program(Many(functions), (torch.randn(3, 4),), dynamic_shapes=[({0: Dim("n", max=64)},)], calls=[((torch.randn(0, 4),), {})], opset=opset)


def test_few_nodes(check_program):
    class M(torch.nn.Module):
        def forward(self, x):
            return x.mean(-1, keepdim=True), x.sum(1), x.logsumexp(0), x.norm(dim=0), *x.max(1, keepdim=True)

    assert check_program(M(), (torch.randn(3, 4),)).op_types == ["ReduceMean", "ReduceSum", "ReduceLogSumExp", "ReduceL2", "TopK"]
