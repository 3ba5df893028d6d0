"""Reading and writing by indices and masks: each case is a function of a few tensors, run at its own sizes and, where given, at others."""
import pytest
import torch
from test_shape import Many, numbers
from torch.nn import functional as F

X = numbers(4, 5, 6)
I = torch.tensor([0, -1, 2, 2])
J = torch.tensor([[1], [-2]])
M = torch.tensor([True, False, True, True])

READ = {
    "one": [(X, I, J), lambda x, i, j: x[i], lambda x, i, j: x[:, i], lambda x, i, j: x[..., j], lambda x, i, j: torch.ops.aten.index(x, [i[0]]), lambda x, i, j: x[i.int()], lambda x, i, j: x[:, i[:0]],
            lambda x, i, j: x[torch.arange(4)], lambda x, i, j: x[:, torch.arange(4)]],
    "several": [(X, I, J), lambda x, i, j: x[i, i], lambda x, i, j: x[:, i, i], lambda x, i, j: x[i, :, i], lambda x, i, j: x[j, i], lambda x, i, j: x[:, j, i], lambda x, i, j: x[j, :, i],
                lambda x, i, j: x[i, j, 1], lambda x, i, j: x[i, j, i], lambda x, i, j: x[i[:, None, None], j, i[:3]], lambda x, i, j: x[None, i, i],
                lambda x, i, j: x[j, i[None, :1]]],
    "mask": [(X, M, I), lambda x, m, i: x[m], lambda x, m, i: x[:, :4][:, m], lambda x, m, i: x[x > 3], lambda x, m, i: x[x[..., 0] > 3], lambda x, m, i: x[:, x[0] > 3],
             lambda x, m, i: x[m, i[:1]], lambda x, m, i: x.masked_select(m[:, None, None]),
             lambda x, m, i: x[:, 0].masked_select(x[:1, 0] > 0)],
    "gather": [(X, I.abs()), lambda x, i: x.index_select(1, i), lambda x, i: x.index_select(-1, i[0]), lambda x, i: x[0, 0, 0].index_select(0, i[:1]), lambda x, i: x.gather(0, (x.abs() % 4).long()),
               lambda x, i: x.gather(-1, (x[:2, :3].abs() % 6).long()), lambda x, i: x[0, 0, 0].gather(0, i[0]), lambda x, i: x.gather(1, i[:0]), lambda x, i: x.take(i), lambda x, i: x.take(i[0]),
               lambda x, i: x.take_along_dim(i[None, :, None], 1), lambda x, i: x.take_along_dim(i), lambda x, i: x[:, :1].take_along_dim(i[None, :, None].expand(4, 4, 6) * 0, 1)],
    "nonzero": [(X, M), lambda x, m: x.nonzero(), lambda x, m: m.nonzero(), lambda x, m: m.argwhere(), lambda x, m: (x > 2).nonzero(as_tuple=True), lambda x, m: torch.where(x > 3),
                lambda x, m: x[0, 0, 0].nonzero(), lambda x, m: torch.nonzero_static(m, size=2), lambda x, m: torch.nonzero_static(x, size=150, fill_value=7)],
    "search": [(X, I), lambda x, i: torch.searchsorted(x[0, 0], x[1]), lambda x, i: torch.searchsorted(x[:2], x.flip(0)[:2], right=True), lambda x, i: torch.searchsorted(x[0, 0], 2.5),
               lambda x, i: torch.searchsorted(x[0, 0].flip(0), x[0], sorter=torch.arange(5, -1, -1), side="right", out_int32=True), lambda x, i: torch.bucketize(x, x[0, 0]),
               lambda x, i: torch.bucketize(i, torch.tensor([0.5, 1.5]), right=True), lambda x, i: torch.searchsorted(x[0, 0], torch.tensor([float("nan"), float("inf")])),
               lambda x, i: torch.isin(x, i), lambda x, i: torch.isin(i, 2, invert=True), lambda x, i: torch.isin(2, i), lambda x, i: torch.isin(x, i[:0]),
               lambda x, i: F.one_hot(i.abs(), 4), lambda x, i: F.one_hot(i[0], 3), lambda x, i: torch.histc(x, 7, -10, 20), lambda x, i: torch.histc(x, 5), lambda x, i: torch.histc(x * 0 + 2, 4)],
    "count": [(I.abs(), numbers(4)), lambda i, w: torch.bincount(i), lambda i, w: torch.bincount(i, w), lambda i, w: torch.bincount(i, minlength=9),
              lambda i, w: w.repeat_interleave(i), lambda i, w: torch.repeat_interleave(i), lambda i, w: w[:, None].repeat_interleave(i, 0), lambda i, w: w.repeat_interleave(i[2:3])],
    "embedding": [(X[0], I.abs()), lambda w, i: F.embedding(i, w), lambda w, i: F.embedding(i[None].int(), w, padding_idx=2), lambda w, i: F.embedding_bag(i[None].repeat(3, 1), w),
                  lambda w, i: F.embedding_bag(i[None].repeat(3, 1), w, mode="max", padding_idx=2), lambda w, i: F.embedding_bag(i, w, torch.tensor([0, 1, 1])),
                  lambda w, i: F.embedding_bag(i, w, torch.tensor([0, 1, 1]), mode="max"), lambda w, i: F.embedding_bag(i, w, torch.tensor([0, 3]), mode="mean", padding_idx=-3),
                  lambda w, i: F.embedding_bag(i, w, torch.tensor([0, 2, 4]), mode="sum", per_sample_weights=w[0, :4], include_last_offset=True)],
}

WRITE = {
    "put": [(X, I[:3], J), lambda x, i, j: x.index_put((i,), x[1:] * 2), lambda x, i, j: x.index_put((i,), x[0, 0]), lambda x, i, j: x.index_put((i, i), x[0, 0, 0] * 2),
            lambda x, i, j: x.index_put((j, i), x[0, :2, :3, None]), lambda x, i, j: torch.ops.aten.index_put(x, [None, i], x[:, :3] * 2), lambda x, i, j: torch.ops.aten.index_put(x, [None, i], x[0, 0] * 2),
            lambda x, i, j: torch.ops.aten.index_put(x, [None, i[0]], x[:, 0] * 2), lambda x, i, j: torch.ops.aten.index_put(x, [i, None, i], x[:3, :, 0] * 2),
            lambda x, i, j: torch.ops.aten.index_put(x, [None, i, i], x[:, 0, :3] * 2), lambda x, i, j: torch.ops.aten.index_put(x, [None, i, i], x[0, 0, :3] * 2),
            lambda x, i, j: torch.ops.aten.index_put(x, [i[0], i[1], i[2]], x[0, 0, 1] * 2)],
    "add": [(X, I, J), lambda x, i, j: x.index_put((i,), x * 2, True), lambda x, i, j: x.index_put((i, i), x[0, 0, 0], True), lambda x, i, j: x.index_put((j, i), x[0, :2, :4, None], True),
            lambda x, i, j: torch.ops.aten.index_put(x, [None, i], x[:, :4], True), lambda x, i, j: torch.ops.aten.index_put(x, [None, i, i], x[:, 0, :4], True),
            lambda x, i, j: torch.ops.aten.index_put(x, [i, None, i], x[:, :, 0], True), lambda x, i, j: x.half().index_put((i,), x.half(), True)],
    "mask": [(X, M), lambda x, m: x.index_put((m,), x[0, 0, 0] * 2), lambda x, m: x.index_put((m,), x[0] * 2), lambda x, m: x.index_put((x > 3,), x[0, 0, 0], True),
             lambda x, m: x.index_put((m,), x[1:] * 2), lambda x, m: torch.ops.aten.index_put(x, [None, x[0] > 0], x[0, 0, :1] * 2), lambda x, m: x.masked_fill(m[:, None, None], 2.5),
             lambda x, m: x.masked_fill(x > 2, x[0, 0, 0]), lambda x, m: x.int().masked_fill(x > 2, 3), lambda x, m: x.masked_scatter(m[:, None, None], x * 2),
             lambda x, m: x.masked_scatter(x > 3, x.flip(0))],
    "scatter": [(X, (X.abs() % 4).long()), lambda x, i: x.scatter(0, i, x * 2), lambda x, i: x.scatter(0, i[:2, :3], x * 2), lambda x, i: x.scatter(-1, i, 7.5), lambda x, i: x[0, 0, 0].scatter(0, i[0, 0, 0] * 0, 2.5),
                lambda x, i: x.scatter(1, i[:0], x), lambda x, i: x.scatter(2, i, x, reduce="add"), lambda x, i: x.scatter(1, i[:2], 2.0, reduce="multiply"), lambda x, i: x.scatter_add(0, i, x),
                lambda x, i: x.scatter_add(1, i[:, :, :2], x)],
    "reduce": [(X, (X.abs() % 3).long()), *[lambda x, i, how=how, own=own: x.scatter_reduce(1, i, x * 0.5 + 1, how, include_self=own) for how in ["sum", "prod", "mean", "amax", "amin"] for own in [True, False]],
               *[lambda x, i, how=how: x.int().scatter_reduce(1, i, x.int() - 3, how, include_self=False) for how in ["sum", "mean", "amax", "amin"]]],
    "index": [(X, I[:3].abs()), lambda x, i: x.index_add(0, i, x[:3]), lambda x, i: x.index_add(2, i, x[:, :, :3], alpha=2), lambda x, i: x.index_copy(1, i[:2], x[:, :2] * 2), lambda x, i: x.index_copy(0, i[:2], x[:2] * 2),
              lambda x, i: x.index_fill(1, i, 2.5), lambda x, i: x.index_fill(0, i[0], x[0, 0, 0]), lambda x, i: x.put(i, x[0, 0, :3] * 2), lambda x, i: x.put(i, x[0, 0, :3] * 2, True),
              *[lambda x, i, how=how, own=own: x.index_reduce(1, i, x[:, :3] * 2, how, include_self=own) for how in ["prod", "mean", "amax", "amin"] for own in [True, False]]],
}


@pytest.mark.parametrize("name", READ)
def test_read(check_program, name):
    inputs, *functions = READ[name]
    check_program(Many(functions), inputs)


@pytest.mark.parametrize("name", WRITE)
def test_write(check_program, name):
    inputs, *functions = WRITE[name]
    check_program(Many(functions), inputs)


DYNAMIC = [lambda x, i: x[i], lambda x, i: x[:, i], lambda x, i: x[i, i], lambda x, i: x[i, :, i], lambda x, i: x[i[:, None], i], lambda x, i: x[x > 2], lambda x, i: x[x[:, 0, 0] > -9],
           lambda x, i: x.index_put((i,), x[0, 0]), lambda x, i: torch.ops.aten.index_put(x, [None, i], x[:, :1]), lambda x, i: x.index_put((x > 2,), x[0, 0, 0]),
           lambda x, i: torch.ops.aten.index_put(x, [i, None, i], x[0, :, :1].mT), lambda x, i: x.index_put((i, i), x[0, 0, 0], True), lambda x, i: x.index_put((x[:, 0, 0] > -9,), x[x[:, 0, 0] > -9] * 2),
           lambda x, i: x.index_add(1, i.abs(), x[:, :1].expand(-1, i.shape[0], -1)), lambda x, i: x.scatter(0, i.abs()[:, None, None].expand(-1, 1, 6), x[:1, :1, :].expand(i.shape[0], -1, -1)),
           lambda x, i: x.nonzero(), lambda x, i: x.masked_scatter(x > 0, x * 2), lambda x, i: torch.searchsorted(x[0, 0], x[:, :, 0]), lambda x, i: x[:, torch.arange(x.shape[1])]]


def test_dynamic(check_program):
    size = torch.export.Dim.DYNAMIC
    calls = [((numbers(a, b, 6), torch.tensor(i)), None) for a, b, i in [(3, 3, [0, -1]), (7, 4, [1, 2, -3, 0, 0])]]
    check_program(Many(DYNAMIC), (numbers(5, 4, 6), torch.tensor([0, 3, -1])), dynamic_shapes={"inputs": ({0: size, 1: size}, {0: size})}, calls=calls)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.int8, torch.float16, torch.float64], ids=str)
def test_dtypes(check_program, dtype):
    check_program(Many([lambda x, i: x[i, i], lambda x, i: x[x != x[0, 0, 0]], lambda x, i: x.index_put((i, i), x[0, 0, 0]), lambda x, i: x.index_put((i,), x[0], True),
                        lambda x, i: x.scatter_add(0, i[:, None, None].expand(4, 5, 6), x), lambda x, i: x.scatter(2, i[:, None, None].expand(4, 5, 6), x),
                        lambda x, i: x.masked_fill(x != 0, 1), lambda x, i: x.nonzero(), lambda x, i: x.index_select(2, i), lambda x, i: x.gather(0, i[:, None, None].expand(4, 5, 6))]),
                  (numbers(4, 5, 6, dtype=dtype), I.abs()))


def test_few_nodes(check_program):
    def nodes(function, *args):
        return check_program(Many([function]), args).op_types
    assert nodes(lambda x, i: x[:, i], X, I) == ["Gather"]
    assert nodes(lambda x, i, j: x[j, i], X, I, J) == ["Squeeze", "Gather", "Gather"]
    assert nodes(lambda x, m: x[m], X, M) == ["Compress"]
    assert nodes(lambda x: x[torch.arange(4)] + 1, X)[-1] == "Add"
    assert nodes(lambda x, i, v: x.index_put((i,), v), X, I, X) == ["Unsqueeze", "ScatterND"]
    assert nodes(lambda x, m, v: x.index_put((m,), v), X, X > 2, torch.tensor(1.0)) == ["Where"]
