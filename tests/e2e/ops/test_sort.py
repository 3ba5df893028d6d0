"""Order: sorts, selections, medians, quantiles and unique values."""
import pytest
import torch
from test_reduce import INF, NAN, Many, numbers
from torch.export import Dim

MIXED = torch.tensor([[3, NAN, 1, 2, 1], [NAN, 1, NAN, -INF, 4], [1, 2, 3, INF, 0], [4, 4, 4, 5, 5], [NAN] * 5])
SORTS = [lambda x: x.sort(), lambda x: x.sort(0, descending=True), lambda x: x.sort(stable=True, dim=1, descending=True), lambda x: x.argsort(0), lambda x: x.argsort(dim=1, stable=True),
         lambda x: x.msort(), lambda x: x[0, 0].sort(0), lambda x: x[0, 0].topk(1), lambda x: x.kthvalue(2)[0], lambda x: x.kthvalue(1, 0, keepdim=True)[0], lambda x: x[0, 0].kthvalue(1)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.float16])
def test_sort(check_program, dtype):
    x = (torch.arange(35).reshape(5, 7) * 11 % 37).to(dtype)
    functions = [*SORTS, lambda x: x.topk(3), lambda x: x.topk(2, 0, largest=False), lambda x: x.topk(3, sorted=True), lambda x: x.topk(0), lambda x: x.median(), lambda x: x.median(0),
                 lambda x: x[:4].median(0, keepdim=True), lambda x: x[0, 0].median(0), lambda x: (x // 3).mode(), lambda x: (x // 9).mode(0, keepdim=True), lambda x: x[0, 0].mode()]
    check_program(Many(functions), (x,))


def test_nan_last(check_program):
    functions = [lambda x: x.sort(), lambda x: x.sort(descending=True)[0], lambda x: x.topk(2)[0], lambda x: x.topk(2, largest=False)[0], lambda x: x.kthvalue(5)[0], lambda x: x.median(1),
                 lambda x: x.median(), lambda x: x.nanmedian(1)[0], lambda x: x.nanmedian(), lambda x: x[2:4].mode(1)]
    for dtype in (torch.float32, torch.float64):
        check_program(Many(functions), (MIXED.to(dtype),))


def test_bool(check_program):
    check_program(Many([lambda x: x.sort(stable=True), lambda x: x.argsort(descending=True, stable=True), lambda x: x.unique()]), (numbers(torch.int64)[0] > 1,))


def test_quantile(check_program):
    q = torch.tensor([0, 0.25, 0.5, 0.9, 1])
    kinds = ["linear", "lower", "higher", "midpoint", "nearest"]
    functions = [f for name in ("quantile", "nanquantile") for f in [
        *[lambda x, how=how, name=name: getattr(x, name)(q, 1, interpolation=how) for how in kinds],
        *[lambda x, how=how, name=name: getattr(x, name)(0.3, 1, keepdim=True, interpolation=how) for how in kinds],
        lambda x, name=name: getattr(x, name)(q), lambda x, name=name: getattr(x, name)(0.5), lambda x, name=name: getattr(x, name)(q, keepdim=True), lambda x, name=name: getattr(x, name)(q, 0, keepdim=True),
        lambda x, name=name: getattr(x[2:4], name)(0.25, 0)]]
    check_program(Many(functions), (torch.where(MIXED.isinf(), 7, MIXED),))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.uint8])
def test_unique(check_program, dtype):
    x = torch.tensor([[3, 1, 1, 3, 2], [3, 1, 1, 3, 2], [0, 1, 1, 3, 2], [3, 1, 1, 3, 2]]).to(dtype)
    functions = [lambda x: x.unique(), lambda x: x.unique(return_inverse=True, return_counts=True), lambda x: x.unique(dim=0, return_inverse=True, return_counts=True), lambda x: x.unique(dim=1),
                 lambda x: x.unique_consecutive(), lambda x: x.unique_consecutive(return_inverse=True, return_counts=True),
                 lambda x: x.unique_consecutive(return_inverse=True, return_counts=True, dim=0), lambda x: x.unique_consecutive(dim=1)]
    check_program(Many(functions), (x,), calls=[((x.flip(0),), {})])


def test_sizes_vary(check_program):
    functions = [lambda x: x.sort(), lambda x: x.argsort(0, descending=True), lambda x: x.topk(x.shape[0]), lambda x: x.topk(min(x.shape[0], 2), 0), lambda x: x.kthvalue(x.shape[0])[0], lambda x: x.median(0),
                 lambda x: x.quantile(0.3, 0), lambda x: x.nanquantile(torch.tensor([0.3, 0.8]), 0), lambda x: x.mode(0), lambda x: x.unique(), lambda x: x.unique_consecutive(return_counts=True)]
    check_program(Many(functions), (torch.randn(4, 6),), dynamic_shapes=[({0: Dim("n", min=2, max=6)},)], calls=[((torch.randn(2, 6),), {}), ((torch.randn(5, 6),), {})])


def test_histogram(check_program):
    edges, weight = torch.tensor([-2, -0.5, 0, 1.25, 2]), torch.rand(60)
    functions = [lambda x: torch.histogram(x, 7), lambda x: torch.histogram(x, 4, range=(-1, 1)), lambda x: torch.histogram(x, 5, density=True), lambda x: torch.histogram(x, edges),
                 lambda x: torch.histogram(x, edges, weight=weight.reshape(4, 15), density=True), lambda x: torch.histogram(x * 0 + 2, 3), lambda x: torch.histogramdd(x.reshape(20, 3), [2, 3, 4])[0],
                 lambda x: torch.histogramdd(x.reshape(20, 3), 3, range=(-1, 1, -2, 2, -1, 2), density=True)[0], lambda x: torch.histogramdd(x.reshape(30, 2), [edges, edges], weight=x[0, :1].expand(30))[0]]
    check_program(Many(functions), (torch.randn(4, 15),))


def test_segments(check_program):
    lengths, offsets = torch.tensor([2, 0, 3, 1]), torch.tensor([0, 1, 4, 6])
    functions = [lambda x, how=how, extra=extra: torch.segment_reduce(x, how, **extra) for how in ("sum", "mean", "max", "min", "prod")
                 for extra in (dict(lengths=lengths, unsafe=True), dict(offsets=offsets, initial=2), dict(lengths=lengths, initial=2))]
    check_program(Many(functions), (torch.randn(6, 3),))
    check_program(Many([lambda x: torch.segment_reduce(x, "mean", lengths=torch.tensor([[2, 1], [1, 2]]), axis=1)]), (torch.randn(2, 3, 4),))
