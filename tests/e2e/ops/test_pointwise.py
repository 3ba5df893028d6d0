"""Elementwise ops: every overload against eager PyTorch, many ops in one program. Inputs carry zeros of both signs, infinities and NaN."""
import math

import pytest
import torch
import torch.nn.functional as F

INF, NAN = math.inf, math.nan
ODD = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.7, -3.7, 1e-6, -1e-6, 20.0, -20.0, INF, -INF, NAN, 0.999]


class Table(torch.nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *xs):
        return tuple(f(*xs) for f in self.functions)


def floats(dtype=torch.float32):
    return torch.tensor(ODD, dtype=dtype)


def pairs(dtype=torch.float32):
    x = floats(dtype)
    return x[:, None], x[None, :]


def whole(dtype, low=-9, high=10):
    return torch.arange(low, high).to(dtype)


UNARY = [
    torch.abs, torch.neg, torch.sign, torch.sgn, torch.reciprocal, torch.sqrt, torch.rsqrt, torch.square, torch.exp, torch.exp2, torch.expm1, torch.log,
    torch.log1p, torch.log2, torch.log10, torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan, torch.sinh, torch.cosh, torch.tanh,
    torch.asinh, torch.acosh, torch.atanh, torch.sinc, torch.deg2rad, torch.rad2deg, torch.round, torch.floor, torch.ceil, torch.trunc, torch.frac,
    torch.signbit, torch.isnan, torch.isinf, torch.isfinite, torch.isposinf, torch.isneginf, torch.isreal, torch.nan_to_num, torch.sigmoid, torch.positive,
    torch.logical_not, lambda x: torch.logit(x), lambda x: torch.logit(x, eps=1e-3), lambda x: torch.round(x, decimals=2), lambda x: torch.round(x, decimals=-1),
    lambda x: torch.nan_to_num(x, nan=3.0, posinf=7.0), lambda x: torch.nan_to_num(x, neginf=-4.0),
    lambda x: x ** 2, lambda x: x ** 3, lambda x: x ** -1, lambda x: x ** 0.5, lambda x: x ** -0.5, lambda x: x ** -2, lambda x: x ** 1, lambda x: x ** 0,
    lambda x: 2 ** x, lambda x: 1.5 ** x, lambda x: torch.float_power(x, 2), lambda x: x + 1, lambda x: 1 - x, lambda x: x * True, lambda x: x / 3, lambda x: 2 / x,
    lambda x: torch.rsub(x, 2, alpha=3), lambda x: torch.clamp(x, -1, 2), lambda x: torch.clamp(x, min=0.3), lambda x: torch.clamp(x, max=0.3), lambda x: torch.clamp(x, 3, 1),
    lambda x: x % 2, lambda x: x % -1.5, lambda x: 2.5 % x, lambda x: torch.fmod(x, 2), lambda x: x // 2, lambda x: x // -0.7, lambda x: torch.div(x, 0.3, rounding_mode="trunc"),
    lambda x: x > 0, lambda x: x <= 0.5, lambda x: x == 1, lambda x: x != 1, lambda x: torch.where(x > 0, x, 0.0), lambda x: torch.where(x > 0, 1, x),
    lambda x: torch.where(x > 0, 1.0, 2.0), lambda x: torch.copysign(x, -1.0), lambda x: torch.xlogy(x, 2.0), lambda x: torch.xlogy(0.0, x),
    lambda x: torch.special.xlog1py(x, 2.0), lambda x: torch.lerp(x, x + 1, 0.3), lambda x: torch.lerp(x, x + 1, 0.7), lambda x: torch.ldexp(x, torch.tensor(3)),
]
UNARY64 = [f for f in UNARY if f not in (torch.asinh,)] + [torch.asinh]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unary(check_program, dtype):
    check_program(Table(UNARY), (floats(dtype),), rtol=1e-5 if dtype == torch.float32 else 1e-7, atol=2e-7)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_unary_of_half(check_program, dtype):
    functions = [torch.abs, torch.neg, torch.sign, torch.exp, torch.sqrt, torch.sigmoid, torch.tanh, torch.round, torch.floor, torch.isnan, F.relu, F.gelu, F.silu,
                 torch.expm1, torch.log1p, torch.erf, lambda x: x + 1, lambda x: x ** 2, lambda x: x > 0, lambda x: torch.clamp(x, -1, 2), lambda x: F.softmax(x, 0)]
    check_program(Table(functions), (torch.linspace(-3, 3, 13).to(dtype),), options=("--compute", "bfloat16=float32"))


BINARY = [
    torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.fmax, torch.fmin, torch.pow, torch.fmod, torch.remainder, torch.floor_divide,
    torch.atan2, torch.copysign, torch.hypot, torch.logaddexp, torch.logaddexp2, torch.xlogy, torch.special.xlog1py, torch.heaviside, torch.nextafter,
    torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge, torch.logical_and, torch.logical_or, torch.logical_xor, torch.float_power, torch.rsub, torch.isclose,
    lambda x, y: torch.add(x, y, alpha=0.5), lambda x, y: torch.sub(x, y, alpha=2), lambda x, y: torch.div(x, y, rounding_mode="floor"),
    lambda x, y: torch.div(x, y, rounding_mode="trunc"), lambda x, y: torch.where(x > y, x, y), lambda x, y: torch.clamp(x, y, y + 1), lambda x, y: torch.clamp(x, min=y),
    lambda x, y: torch.clamp(x, max=y), lambda x, y: torch.addcmul(x, y, y, value=0.5), lambda x, y: torch.addcdiv(x, y, y + 3, value=2), lambda x, y: torch.lerp(x, y, y),
    lambda x, y: torch.isclose(x, y, equal_nan=True),
]
# What NumPy's and C's rules leave open: the sign of zero quotients, powers of NaN, products with infinities.
FINITE = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.7, -3.7, 1e-6, 20.0, -20.0, 0.1, 0.3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_binary(check_program, dtype):
    left_open = {torch.hypot}
    check_program(Table([f for f in BINARY if f not in left_open]), pairs(dtype), rtol=1e-5, atol=2e-7)
    x = torch.tensor(FINITE, dtype=dtype)
    check_program(Table(BINARY), (x[:, None], x[None, :]), rtol=1e-5, atol=2e-7)


INTEGER = [
    torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.fmax, torch.eq, torch.ne, torch.lt, torch.ge, torch.bitwise_and, torch.bitwise_or,
    torch.bitwise_xor, torch.logical_and, torch.gcd, torch.atan2, torch.copysign, torch.xlogy,
    lambda x, y: x & 5, lambda x, y: x | y, lambda x, y: ~x, lambda x, y: x ^ 3, lambda x, y: x + 2, lambda x, y: x + 2.5, lambda x, y: x * 1.5, lambda x, y: x / 2,
    lambda x, y: torch.lcm(x, y), lambda x, y: torch.abs(x), lambda x, y: torch.sign(x), lambda x, y: torch.neg(x), lambda x, y: torch.exp(x), lambda x, y: torch.floor(x),
    lambda x, y: x ** 2, lambda x, y: x ** 5, lambda x, y: x ** 0, lambda x, y: x ** 0.5, lambda x, y: torch.clamp(x, 1, 5), lambda x, y: torch.clamp(x, 0.5, 2.5),
    lambda x, y: x > 1.5, lambda x, y: torch.where(x > 1, x, y), lambda x, y: torch.where(x > 1, x, 2.5), lambda x, y: F.relu(x), lambda x, y: torch.isnan(x),
    lambda x, y: torch.heaviside(x, y), lambda x, y: torch.signbit(x), lambda x, y: torch.square(x), lambda x, y: torch.isclose(x, y), lambda x, y: torch.frac(x * 0.3),
]
DIVIDING = [torch.floor_divide, torch.remainder, torch.fmod, lambda x, y: torch.div(x, y, rounding_mode="floor"), lambda x, y: torch.div(x, y, rounding_mode="trunc"),
            lambda x, y: x // 2, lambda x, y: x % 3, lambda x, y: 7 % y, lambda x, y: x // 2.5, lambda x, y: torch.true_divide(x, y)]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8])
def test_integers(check_program, dtype):
    low = 0 if dtype == torch.uint8 else -9
    x, y = whole(dtype, low)[:, None], whole(dtype, low)[None, :]
    check_program(Table(INTEGER), (x, y))
    nonzero = y[y != 0][None, :]
    signed = [] if dtype == torch.uint8 else [lambda x, y: x // -2, lambda x, y: x % -4, lambda x, y: torch.fmod(x, -4)]
    check_program(Table(DIVIDING + signed), (x, nonzero))


def test_integer_powers_and_shifts(check_program):
    x, n = whole(torch.int64)[:, None], whole(torch.int64, -3, 20)[None, :]
    check_program(Table([torch.pow, lambda x, n: 3 ** n.clamp(min=0), lambda x, n: (-1) ** n]), (x, n))
    for dtype, low in [(torch.int64, -9), (torch.int32, -9), (torch.int8, -9), (torch.uint8, 0)]:
        x, n = whole(dtype, low)[:, None] * 7, whole(dtype, max(low, -2), 12)[None, :]
        check_program(Table([torch.bitwise_left_shift, torch.bitwise_right_shift, lambda x, n: x << 2, lambda x, n: x >> 1]), (x, n))


def test_bools(check_program):
    x, y = torch.tensor([[True], [False]]), torch.tensor([[True, False]])
    functions = [torch.add, torch.mul, torch.maximum, torch.minimum, torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge, torch.bitwise_and, torch.bitwise_or,
                 torch.bitwise_xor, torch.logical_xor, torch.div, lambda x, y: x & y, lambda x, y: x | True, lambda x, y: x ^ y, lambda x, y: ~x, lambda x, y: x + 1,
                 lambda x, y: x * 2.5, lambda x, y: x.float() - y.int(), lambda x, y: torch.where(x, y, x), lambda x, y: x == 1, lambda x, y: torch.sign(x),
                 lambda x, y: torch.exp(x), lambda x, y: torch.square(x), lambda x, y: x.sigmoid(), lambda x, y: torch.where(x, 1, 2), lambda x, y: torch.logical_not(x)]
    check_program(Table(functions), (x, y))


def test_promotion(check_program):
    """Dimensions beat rank 0, which beats numbers, within a category."""
    i8, i64, f16, f32, scalar = torch.ones(3, dtype=torch.int8), torch.arange(3), torch.ones(3, dtype=torch.float16), torch.rand(3), torch.tensor(2.5, dtype=torch.float64)
    functions = [lambda a, b, c, d, s: a + b, lambda a, b, c, d, s: a * 2.5, lambda a, b, c, d, s: a + s, lambda a, b, c, d, s: c * d, lambda a, b, c, d, s: c + s,
                 lambda a, b, c, d, s: b / a, lambda a, b, c, d, s: b ** a, lambda a, b, c, d, s: b == s, lambda a, b, c, d, s: torch.where(a > 0, b, d),
                 lambda a, b, c, d, s: torch.maximum(a, b), lambda a, b, c, d, s: b.clamp(max=s), lambda a, b, c, d, s: 3 - a, lambda a, b, c, d, s: s - b,
                 lambda a, b, c, d, s: 2.5 - a, lambda a, b, c, d, s: torch.rsub(a, 2.5, alpha=2), lambda a, b, c, d, s: a // s]
    check_program(Table(functions), (i8, i64, f16, f32, scalar))


def test_casts(check_program):
    dtypes = [torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
    functions = [lambda x, d=d: x.to(d) for d in dtypes] + [lambda x: x.type_as(torch.zeros(1, dtype=torch.int32)), lambda x: x.to(torch.int8, copy=True), lambda x: x.clone()]
    check_program(Table(functions), (torch.tensor([0.0, 0.3, -0.3, 1.9, -1.9, 100.5, -100.5]),))
    check_program(Table(functions), (torch.tensor([0, 1, -1, 127, 128, 255, 256, -129]),))
    check_program(Table(functions), (torch.tensor([True, False]),))


ACTIVATIONS = [
    F.relu, F.relu6, F.gelu, lambda x: F.gelu(x, approximate="tanh"), F.silu, F.mish, F.elu, lambda x: F.elu(x, 0.7), F.selu, F.celu, lambda x: F.celu(x, 0.6),
    F.leaky_relu, lambda x: F.leaky_relu(x, -0.3), lambda x: F.prelu(x, torch.tensor([0.2], dtype=x.dtype)), lambda x: F.rrelu(x, 0.1, 0.3), F.hardtanh, lambda x: F.hardtanh(x, -0.3, 2.0),
    F.hardsigmoid, F.hardswish, F.softplus, lambda x: F.softplus(x, 2.0, 3.0), lambda x: F.softplus(x, 0.5), F.softsign, F.logsigmoid, F.tanhshrink, F.softshrink,
    lambda x: F.softshrink(x, 0.1), F.hardshrink, lambda x: F.hardshrink(x, 1.0), lambda x: F.threshold(x, 0.2, 7.0), torch.sigmoid, torch.tanh,
    lambda x: torch.ops.aten.elu(x, 0.5, 1.1, 0.9),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_activations(check_program, dtype):
    check_program(Table(ACTIVATIONS), (floats(dtype),), rtol=1e-5 if dtype == torch.float32 else 1e-7, atol=1e-6)


@pytest.mark.parametrize("opset", [18, 23])
def test_activations_at_opset(check_program, opset):
    check_program(Table(ACTIVATIONS), (floats(),), opset=opset, rtol=1e-5, atol=1e-6)


def test_channelwise_and_rows(check_program):
    x = torch.randn(2, 4, 3, 6)
    functions = [lambda x: F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4])), lambda x: F.glu(x, 1), F.glu, lambda x: F.softmax(x, 1), lambda x: F.log_softmax(x, -1),
                 lambda x: F.softmin(x, 0), lambda x: F.softmax(x, 2, dtype=torch.float64), lambda x: F.softmax(x.int(), 2, dtype=torch.float32),
                 lambda x: torch.ops.aten._safe_softmax(x.masked_fill(x > 0, -INF), -1), lambda x: torch.softmax(x[0, 0, 0, 0], 0), lambda x: F.log_softmax(x.sum(), 0),
                 lambda x: F.prelu(x[:, :, 0, 0], torch.tensor([0.1, 0.2, 0.3, 0.4]))]
    check_program(Table(functions), (x,))


CREATION = [
    lambda x: torch.zeros(2, 3), lambda x: torch.ones(2, dtype=torch.int8), lambda x: torch.full((2, 2), 3.7, dtype=torch.int64), lambda x: torch.full((2,), True),
    lambda x: torch.zeros_like(x), lambda x: torch.ones_like(x, dtype=torch.bool), lambda x: torch.full_like(x, -INF), lambda x: x.new_zeros(2, 2), lambda x: x.new_ones(3),
    lambda x: x.new_full((2,), 9), lambda x: torch.empty(2, 3).fill_(4), lambda x: torch.arange(5), lambda x: torch.arange(2, 9, 3), lambda x: torch.arange(1.0, 0.0, -0.3),
    lambda x: torch.arange(0, 1, 0.1), lambda x: torch.arange(0, 3, dtype=torch.float16), lambda x: torch.arange(3000), lambda x: torch.arange(0, 400, 0.25),
    lambda x: torch.linspace(0, 1, 7), lambda x: torch.linspace(-3, 9, 5, dtype=torch.int32), lambda x: torch.linspace(2, 3, 1), lambda x: torch.linspace(x.sum(), x.amax() + 10, 4),
    lambda x: torch.logspace(0, 2, 5), lambda x: torch.logspace(0, 2, 5, base=2.0), lambda x: torch.eye(3), lambda x: torch.eye(2, 4, dtype=torch.bool),
    lambda x: torch.scalar_tensor(2.5), lambda x: torch.tril_indices(3, 4, 1), lambda x: torch.triu_indices(4, 3, -1), lambda x: torch.tensor([1, 2]),
    lambda x: torch.zeros(x.shape[0], 2) + x.shape[0], lambda x: torch.arange(x.shape[0]), lambda x: torch.arange(1, 2 * x.shape[0] + 1, 2), lambda x: torch.eye(x.shape[0]),
    lambda x: torch.arange(x.shape[0], dtype=torch.float32) / 2, lambda x: torch.full((x.shape[0],), x.shape[0]), lambda x: x * x.shape[0], lambda x: x + 2.0 ** x.shape[0],
]


@pytest.mark.parametrize("dynamic", [False, True])
def test_creation(check_program, dynamic):
    shapes = ({0: torch.export.Dim("n", min=2, max=64)},) if dynamic else None
    calls = [((torch.rand(9, 3),), {})] if dynamic else ()
    check_program(Table(CREATION), (torch.rand(5, 3),), dynamic_shapes=(shapes,) if shapes else None, calls=calls)


def test_empty_and_rank_0(check_program):
    functions = [torch.exp, torch.sign, F.gelu, lambda x: x % 2, lambda x: x // 2, torch.erfinv, torch.lgamma, lambda x: F.softplus(x), lambda x: x > 0, torch.log1p]
    check_program(Table(functions), (torch.tensor(0.5),))
    check_program(Table(functions), (torch.rand(0, 3),))


def test_numbers_out_of_tensors(check_program):
    class Scale(torch.nn.Module):
        def forward(self, x, n):
            k = n.item()
            return x * k, x + k, torch.full((2,), k)
    check_program(Scale(), (torch.rand(3), torch.tensor(4)))
