"""cond, while_loop, scan, map, associative_scan and vmap: nested, captured values, sizes known at run time, no trips, every kind of carry."""
import pytest
import torch
from torch import cond
from torch._higher_order_ops import associative_scan, map as torch_map, scan, while_loop
from torch.export import Dim

N = Dim.DYNAMIC


class Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.linear = torch.nn.Linear(4, 4)
        self.register_buffer("bias", torch.randn(4))

    def forward(self, x, y):
        return self.function(self, x, y)


def rand(*shape):
    return torch.randn(*shape)


# ---- cond

def test_cond(check_program):
    def function(m, x, y):
        a = cond(x.sum() > 0, lambda x, y: m.linear(x) + y, lambda x, y: x * 2 - m.bias, (x, y))
        b, c = cond(y[0, 0] > x[0, 0], lambda x: (x.relu(), x.sum(0)), lambda x: (x.neg(), x.amax(0)), (x,))
        return a, b, c
    check_program(Call(function), (rand(3, 4), rand(3, 4)), dynamic_shapes=({0: N}, {0: N}),
                  calls=[((s * rand(n, 4), rand(n, 4)), None) for n in (1, 5) for s in (10, -10)])


def test_nested_cond(check_program):
    def function(m, x, y):
        def positive(x, y):
            return cond(y.sum() > 0, lambda x, y: x + y, lambda x, y: x @ y.transpose(0, 1) @ y, (x, y))

        def negative(x, y):
            return cond((x > y).all(), lambda x, y: x * y, lambda x, y: m.linear(y), (x, y))
        return cond(x.sum() > 0, positive, negative, (x, y))
    signs = [(a, b) for a in (1, -1) for b in (1, -1)]
    check_program(Call(function), (rand(3, 4).abs(), rand(3, 4).abs()), calls=[((rand(3, 4).abs() * a, rand(3, 4).abs() * b), None) for a, b in signs])


def test_cond_on_a_size(check_program):
    def function(m, x, y):
        return cond(x.shape[0] > 4, lambda x: x.sum(0), lambda x: x.prod(0), (x,)) + y[0]
    check_program(Call(function), (rand(3, 4), rand(1, 4)), dynamic_shapes=({0: N}, None), calls=[((rand(n, 4), rand(1, 4)), None) for n in (5, 8, 2)])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64, torch.int32, torch.bool], ids=str)
def test_cond_of_dtypes(check_program, dtype):
    x = (rand(3, 4) * 4).to(dtype)
    check_program(Call(lambda m, x, y: cond(y.any(), lambda x: x.flip(0), lambda x: x.roll(1, 1), (x,))), (x, torch.tensor(True)), calls=[((x, torch.tensor(False)), None)])


# ---- while_loop

def test_while_loop(check_program):
    def function(m, x, y):
        i, total = while_loop(lambda i, t: i < y.sum(), lambda i, t: (i + 1, t * 0.5 + m.linear(x)), (torch.zeros((), dtype=torch.int64), x))
        return i, total
    check_program(Call(function), (rand(3, 4), torch.tensor([2, 1])), dynamic_shapes=({0: N}, None), calls=[((rand(n, 4), torch.tensor([k, 0])), None) for n, k in ((1, 0), (5, 7))])


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int32, torch.int64], ids=str)
def test_while_loop_carries(check_program, dtype):
    def function(m, x, y):
        def body(going, x, y):
            x = x + y
            return x.sum() < 40, x, y.clone()
        return while_loop(lambda going, x, y: going & True, body, (x.sum() < 40, x, y))
    x = torch.arange(4).to(dtype)
    check_program(Call(function), (x, torch.ones_like(x)), calls=[((x * 9, torch.ones_like(x)), None)])


def test_while_loop_with_nested_control_flow(check_program):
    def function(m, x, y):
        def body(i, x):
            x = cond(i % 2 == 0, lambda x: x + 1, lambda x: x * 2, (x,))
            j, x = while_loop(lambda j, x: j < i, lambda j, x: (j + 1, x - y), (torch.zeros_like(i), x))
            return i + 1, x
        return while_loop(lambda i, x: i < 4, body, (torch.zeros((), dtype=torch.int64), x))
    check_program(Call(function), (rand(3, 4), rand(4)))


# ---- scan and map

@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_scan(check_program, dim, reverse):
    def function(m, x, y):
        state, out = scan(lambda s, x: (m.linear(s).tanh() + x, s * x), y, x, dim=dim, reverse=reverse)
        return state, out
    x = rand(5, 3, 4)
    check_program(Call(function), (x, rand(5 if dim else 3, 4)), calls=[((rand(5, 3, 4), rand(5 if dim else 3, 4)), None)])


def test_scan_over_an_unknown_length(check_program):
    def function(m, x, y):
        (state, count), out = scan(lambda s, x: ((s[0] + x, s[1] + 1), s[0] * m.bias), (y, torch.zeros((), dtype=torch.int64)), x)
        return state, count, out
    check_program(Call(function), (rand(5, 4), rand(4)), dynamic_shapes=({0: N}, None), calls=[((rand(n, 4), rand(4)), None) for n in (1, 2, 9)])


@pytest.mark.parametrize("dtype", [torch.float16, torch.int32, torch.int64, torch.bool], ids=str)
def test_scan_of_dtypes(check_program, dtype):
    x = (rand(5, 4) * 3).to(dtype)

    def step(s, x):
        s = s ^ x if dtype == torch.bool else s + x
        return s, s.flip(0)
    check_program(Call(lambda m, x, y: scan(step, y, x)), (x, x[0].clone()))


def test_map(check_program):
    def function(m, x, y):
        return torch_map(lambda x, y: m.linear(x) @ y + x.sum(), x, y), torch_map(lambda x: (x[0] + 1, x * 2), x)
    check_program(Call(function), (rand(5, 3, 4), rand(4)), dynamic_shapes=({0: N, 1: N}, None), calls=[((rand(n, k, 4), rand(4)), None) for n, k in ((1, 1), (2, 7))])


# ---- associative_scan and vmap: captured op by op

@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(check_program, reverse):
    def function(m, x, y):
        def step(a, b):
            return a[0] * b[0], a[1] * b[0] + b[1]
        return associative_scan(step, (x.sigmoid(), y), 0, reverse=reverse, combine_mode="generic"), associative_scan(lambda a, b: a @ b, x.reshape(2, 2, 6)[..., :2], 0, combine_mode="generic")
    check_program(Call(function), (rand(6, 4), rand(6, 4)))


def test_vmap(check_program):
    """Where out_dims is not 0, capture itself fails."""
    def function(m, x, y):
        return (torch.vmap(lambda a, b: a @ b + a.sum())(x, y),
                torch.vmap(lambda a: a.softmax(-1).narrow(1, 1, 3).reshape(-1), in_dims=1)(x),
                torch.vmap(lambda a, b: (a * b + 1, b.exp() - 1), in_dims=(2, None))(x, y.select(0, 0)),
                torch.vmap(torch.vmap(lambda a, b: a * b, (0, None)), (None, 0))(x.select(0, 0).select(0, 0), y.select(1, 0)),
                torch.vmap(torch.vmap(lambda a, b: torch.stack([a @ b, a.sum()]).cumsum(0), (1, None)), (0, 0))(x, y))
    check_program(Call(function), (rand(3, 4, 4), rand(3, 4)), dynamic_shapes=({0: N}, {0: N}), calls=[((rand(n, 4, 4), rand(n, 4)), None) for n in (1, 6)])


def test_vmap_of_what_is_shared(check_program):
    def function(m, x, y):
        return torch.vmap(lambda a, w, y: (a @ w, y * 2, a.narrow(0, 0, 2).clone().add_(1)), (0, None, None))(x, y, y)
    check_program(Call(function), (rand(3, 4), rand(4, 2)))
