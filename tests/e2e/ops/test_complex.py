"""Complex numbers: each case is a function of a few tensors. In the model a complex tensor is a real one with a last dim of two parts."""
import pytest
import torch
from test_shape import Many
from torch.export import Dim
from torch.nn import functional as F

ops = torch.ops.aten


def rand(*shape, dtype=torch.complex64):
    """Numbers from -2 to 2 without a pattern, with an imaginary part where the dtype has one; the same wherever it is called."""
    n = torch.Size(shape).numel()
    numbers = torch.arange(n, dtype=torch.float64).mul(1.7).add(len(shape)).sin().mul(2).reshape(shape)
    if dtype.is_complex:
        numbers = torch.complex(numbers, torch.arange(n, dtype=torch.float64).mul(2.3).add(1).cos().mul(2).reshape(shape))
    return numbers.to(dtype)


A, B, V, R = rand(3, 4), rand(3, 4) * 1j + 0.5, rand(4), rand(3, 4, dtype=torch.float32)
SPECIAL = torch.tensor([0, 1, -1, 1j, -1j, 0.5 - 0.25j, -3 + 4j, 1e20 + 1e20j, 1e-25j, 20 + 5j], dtype=torch.complex64)
SMALL = SPECIAL[:7]

CASES = {
    "arithmetic": [(A, B, R), lambda x, y, r: x + y, lambda x, y, r: x - y, lambda x, y, r: x * y, lambda x, y, r: x / y, lambda x, y, r: x + r, lambda x, y, r: r - x,
                   lambda x, y, r: x * r, lambda x, y, r: r / x, lambda x, y, r: x / r, lambda x, y, r: x + 2, lambda x, y, r: 2j - x, lambda x, y, r: r * 1j, lambda x, y, r: r + 1j,
                   lambda x, y, r: x * (2 - 3j), lambda x, y, r: x / 2j, lambda x, y, r: x / (1 + 2j), lambda x, y, r: 1 / x, lambda x, y, r: torch.add(x, y, alpha=2),
                   lambda x, y, r: torch.sub(x, y, alpha=2j), lambda x, y, r: torch.rsub(x, y), lambda x, y, r: -x, lambda x, y, r: x[:1] * y[:, :1], lambda x, y, r: x * y[0, 0],
                   lambda x, y, r: torch.addcmul(x, y, x, value=0.5), lambda x, y, r: torch.addcdiv(x, y, x, value=2j), lambda x, y, r: torch.lerp(x, y, 0.25),
                   lambda x, y, r: (x + r * 0) * (1j * r), lambda x, y, r: r.long() * x, lambda x, y, r: r.double()[0, 0] * x, lambda x, y, r: torch.mul(r, 2j).real],
    "special": [(SPECIAL,), lambda x: x.abs(), lambda x: x.angle(), lambda x: x.sgn(), lambda x: x.sqrt(), lambda x: x[1:].log(), lambda x: x[1:7].reciprocal(),
                lambda x: x[1:] / x[1:].flip(0), lambda x: torch.isnan(x / 0), lambda x: torch.isinf(x), lambda x: torch.isfinite(x), lambda x: torch.isreal(x)],
    "functions": [(SMALL,), *[lambda x, f=f: f(x) for f in (
        torch.exp, torch.exp2, torch.expm1, torch.log1p, torch.sin, torch.cos, torch.tan, torch.sinh, torch.cosh, torch.tanh, torch.sigmoid, torch.square, torch.sinc, F.silu)],
        *[lambda x, f=f: f(x * 0.7 + 0.1) for f in (torch.log2, torch.log10, torch.rsqrt, torch.asin, torch.acos, torch.atan, torch.asinh, torch.acosh, torch.atanh, torch.log, torch.reciprocal)]],
    "power": [(SMALL, B[0]), *[lambda x, y, n=n: x[1:] ** n for n in (-2, -1, 0, 1, 2, 3, 7, 20, 0.5, -0.5, 1.5, 2j, 1 - 1j)], lambda x, y: x ** 2, lambda x, y: y ** V, lambda x, y: 2 ** y,
              lambda x, y: 2j ** y, lambda x, y: torch.float_power(y, 2), lambda x, y: y.real ** y, lambda x, y: torch.zeros_like(y) ** (y * y.conj()), lambda x, y: torch.polar(y.abs(), y.angle())],
    "parts": [(A, R), lambda x, r: x.real, lambda x, r: x.imag, lambda x, r: x.conj() * 1, lambda x, r: x.conj(), lambda x, r: x.conj().imag, lambda x, r: torch.conj_physical(x), lambda x, r: x.H, lambda x, r: x.mH,
              lambda x, r: torch.view_as_real(x), lambda x, r: torch.view_as_complex(r.reshape(3, 2, 2)), lambda x, r: torch.complex(r, r + 1), lambda x, r: torch.complex(r, r[:1]), lambda x, r: torch.polar(r.abs(), r),
              lambda x, r: x.resolve_conj(), lambda x, r: r.conj(), lambda x, r: torch.real(r), lambda x, r: r.conj().resolve_conj(), lambda x, r: r.angle()],
    "compare": [(A, R), lambda x, r: x == x.conj(), lambda x, r: x != x.real, lambda x, r: x == 1j, lambda x, r: r == r + 0j, lambda x, r: torch.isclose(x, x * 1.000001), lambda x, r: torch.logical_not(x * (r > 0)),
                lambda x, r: torch.logical_and(x, r), lambda x, r: (x * (r > 0)).any(0), lambda x, r: (x * (r > 0)).all(), lambda x, r: torch.count_nonzero(x * (r > 0)), lambda x, r: x.bool(), lambda x, r: torch.nonzero(x * (r > 0))],
    "types": [(A, R), lambda x, r: r.to(torch.complex64), lambda x, r: x.to(torch.complex128), lambda x, r: r.cdouble() * 2, lambda x, r: x.to(torch.complex64), lambda x, r: torch.zeros_like(x), lambda x, r: torch.ones(2, dtype=torch.complex128),
              lambda x, r: torch.full((2, 3), 1 - 2j), lambda x, r: torch.full_like(x, 2), lambda x, r: torch.zeros_like(x, dtype=torch.float64), lambda x, r: x.new_full((2,), 1j), lambda x, r: torch.eye(3, dtype=torch.complex64),
              lambda x, r: torch.tensor([1j, 2]) * r[:, :2], lambda x, r: torch.tensor(2 - 1j), lambda x, r: x.type_as(r + 0j), lambda x, r: torch.cat([x, r]), lambda x, r: torch.where(r > 0, x, r), lambda x, r: torch.where(r > 0, x, 1j),
              lambda x, r: torch.linspace(1j, 2, 5), lambda x, r: x.to(torch.float32)],
    "views": [(rand(3, 4, 2),), lambda x: x.permute(2, 0, 1), lambda x: x.transpose(-1, 0), lambda x: x.reshape(6, 4), lambda x: x.view(-1), lambda x: x.flatten(1), lambda x: x[1], lambda x: x[..., -1], lambda x: x[:, ::2], lambda x: x.narrow(-2, 1, 2),
              lambda x: x.unsqueeze(-1), lambda x: x[:, :, :1].squeeze(-1), lambda x: x[:1].squeeze(), lambda x: x.unbind(-1), lambda x: x.split(2, -2), lambda x: x.chunk(2, 1), lambda x: x[:1].expand(5, -1, 2), lambda x: x.diagonal(), lambda x: x.diagonal(dim1=-1, dim2=-2),
              lambda x: x.unfold(1, 2, 1), lambda x: x.movedim(0, -1), lambda x: x.T, lambda x: x.as_strided((2, 3), (1, 2), 1), lambda x: x.unflatten(1, (2, 2)), lambda x: x[0, 0, 0], lambda x: x[0, 0, 0].expand(2, 2), lambda x: x[0, 0, 0].reshape(1),
              lambda x: (x * 2).transpose(0, -1)[..., 0].reshape(-1), lambda x: torch.broadcast_to(x[0], (2, 4, 2)), lambda x: x.view(torch.float32), lambda x: x.real.contiguous().view(torch.complex64), lambda x: x.tensor_split(torch.tensor([1, 2]), 0), lambda x: torch.atleast_2d(x[0, 0, 0])],
    "structure": [(A, B, torch.tensor([2, 0, 1])), lambda x, y, i: torch.cat([x, y], -1), lambda x, y, i: torch.stack([x, y], -1), lambda x, y, i: torch.stack([x * 2, y], 0), lambda x, y, i: torch.cat([x * 2, y]), lambda x, y, i: x[i], lambda x, y, i: x[:, i],
                  lambda x, y, i: x[i, i], lambda x, y, i: x[x.real > 0], lambda x, y, i: x.flip(-1), lambda x, y, i: x.roll(1), lambda x, y, i: x.roll((1, 2), (0, -1)), lambda x, y, i: x.index_select(-1, i), lambda x, y, i: x.gather(-1, i[:, None]),
                  lambda x, y, i: x.scatter(0, i[None], y), lambda x, y, i: x.scatter_add(0, i[None], y), lambda x, y, i: x.index_add(0, i, y, alpha=2), lambda x, y, i: x.index_put((i,), y[0]), lambda x, y, i: x.masked_fill(x.real > 0, 1j),
                  lambda x, y, i: x.masked_fill(x.real > 0, 2), lambda x, y, i: x.repeat(2, 1), lambda x, y, i: x.tile(2), lambda x, y, i: torch.tril(x), lambda x, y, i: torch.diag(x[0]), lambda x, y, i: F.pad(x, (1, -1)), lambda x, y, i: F.pad(x, (1, 2), value=3),
                  lambda x, y, i: F.pad(x, (1, 2), "reflect"), lambda x, y, i: torch.hstack([x, y]), lambda x, y, i: x.repeat_interleave(2, -1), lambda x, y, i: torch.rot90(x), lambda x, y, i: torch.take(x, i), lambda x, y, i: F.embedding(i, x),
                  lambda x, y, i: torch.select_scatter(x, y[0], 0, 1), lambda x, y, i: torch.index_copy(x, 0, i, y), lambda x, y, i: torch.meshgrid(x[0], y[0], indexing="ij"), lambda x, y, i: x[0, 0].index_select(0, i[:1] * 0), lambda x, y, i: torch.nan_to_num(x)],
    "reductions": [(A, B), lambda x, y: x.sum(), lambda x, y: x.sum(-1), lambda x, y: x.mean((0, 1), keepdim=True), lambda x, y: x.real.sum(dtype=torch.complex64), lambda x, y: x.prod(), lambda x, y: x.prod(-1), lambda x, y: x.prod(0, keepdim=True), lambda x, y: x.cumsum(-1),
                   lambda x, y: x.cumprod(0), lambda x, y: x.var(), lambda x, y: x.std(-1), lambda x, y: torch.var_mean(x, 0), lambda x, y: torch.std_mean(x, 1, correction=0), lambda x, y: x.norm(), lambda x, y: torch.linalg.vector_norm(x, 3, dim=-1),
                   lambda x, y: torch.linalg.vector_norm(x, float("inf")), lambda x, y: torch.linalg.norm(x), lambda x, y: torch.linalg.matrix_norm(x, 1), lambda x, y: torch.dist(x, y), lambda x, y: x.logsumexp(0), lambda x, y: torch.trace(x), lambda x, y: x.diff(),
                   lambda x, y: F.l1_loss(x, y), lambda x, y: torch.logaddexp(x, y), lambda x, y: torch.trapezoid(x, y), lambda x, y: torch.cumulative_trapezoid(x, y[0]), lambda x, y: torch.renorm(x, 2, 0, 1.5),
                   lambda x, y: (x * (x.real > 0)).any((0, 1)), lambda x, y: F.pairwise_distance(x, y), lambda x, y: F.rms_norm(x, (4,)), lambda x, y: torch.logspace(1j, 2, 4, base=3), lambda x, y: torch.gradient(x)],
    "linalg": [(torch.stack([A[:, :3], B[:, 1:]]), A, rand(3)), lambda m, x, v: torch.linalg.inv(m), lambda m, x, v: torch.linalg.solve(m, x), lambda m, x, v: torch.linalg.solve(m, x.T, left=False), lambda m, x, v: torch.linalg.solve(m[0], v),
               lambda m, x, v: torch.matrix_exp(m), lambda m, x, v: torch.linalg.matrix_power(m, -2), lambda m, x, v: torch.linalg.solve_triangular(m, x[None], upper=True), lambda m, x, v: torch.linalg.solve_triangular(m, x[None], upper=False, unitriangular=True)],
    "products": [(A, B, V, R), lambda x, y, v, r: x @ y.mT, lambda x, y, v, r: x @ y.mH, lambda x, y, v, r: x @ v, lambda x, y, v, r: v @ x.T, lambda x, y, v, r: v @ v, lambda x, y, v, r: torch.vdot(v, y[0]), lambda x, y, v, r: x @ (r.mT + 0j),
                 lambda x, y, v, r: torch.mm(x, y.T), lambda x, y, v, r: x.expand(2, 3, 4) @ y.T, lambda x, y, v, r: torch.bmm(x[None], y.T[None]), lambda x, y, v, r: torch.addmm(x[:, :3], x, y.T, beta=2, alpha=1j), lambda x, y, v, r: torch.addmv(x[:, 0], y, v),
                 lambda x, y, v, r: torch.outer(v, v.conj()), lambda x, y, v, r: torch.kron(x, y), lambda x, y, v, r: torch.einsum("ij,kj->ik", x, y), lambda x, y, v, r: torch.einsum("ij,kj,k->i", x, y, x[:, 0]), lambda x, y, v, r: torch.tensordot(x, y, ([1], [1])),
                 lambda x, y, v, r: F.linear(x, y, v[:3]), lambda x, y, v, r: F.linear(v, y), lambda x, y, v, r: torch.linalg.vecdot(x, y), lambda x, y, v, r: torch.linalg.multi_dot([x, y.T, x]), lambda x, y, v, r: torch.matrix_power(x[:, :3], 3),
                 lambda x, y, v, r: torch.matrix_power(x[:, :3], 0), lambda x, y, v, r: torch.baddbmm(x[:, :3], x[None], y.T[None]), lambda x, y, v, r: F.conv1d(x[None], y[None, :, :2], v[:1]), lambda x, y, v, r: torch.cross(x[:, :3], y[:, :3], dim=1)],
}


@pytest.mark.parametrize("name", CASES)
def test_complex(check_program, name):
    inputs, *functions = CASES[name]
    check_program(Many(functions), inputs)


def test_complex128(check_program):
    x = rand(3, 4, dtype=torch.complex128)
    check_program(Many([lambda x: x * x.conj() / (x + 1), lambda x: x.exp().log().sqrt(), lambda x: x @ x.mT, lambda x: x.abs(), lambda x: x.tanh(), lambda x: x * torch.tensor(1j)]), (x,), rtol=1e-9, atol=1e-12)


class Rotary(torch.nn.Module):
    """As in Llama's reference code."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(16).float(), 1.0 / 100 ** (torch.arange(0, 8, 2) / 8))
        self.register_buffer("freqs", torch.polar(torch.ones_like(angles), angles))

    def forward(self, q):
        pairs = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
        freqs = self.freqs[:q.shape[1]].view(1, q.shape[1], 1, 4)
        return torch.view_as_real(pairs * freqs).flatten(3).type_as(q)


def test_rotary(check_program):
    seq = Dim("seq", max=16)
    checked = check_program(Rotary(), (torch.randn(2, 5, 3, 8),), dynamic_shapes={"q": {1: seq}}, calls=[((torch.randn(2, 9, 3, 8),), None), ((torch.randn(2, 1, 3, 8),), None)])
    assert len(checked.model.graph.node) < 30


class State(torch.nn.Module):
    """Complex parameters and buffers, written through every view that shows them."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(rand(3))
        self.register_buffer("memory", rand(2, 3))

    def forward(self, x):
        self.memory.mul_(0.5j)
        self.memory[0].real.add_(1)
        torch.view_as_real(self.memory)[1, :, 1].zero_()
        self.memory.conj()[1, 1:].mul_(2j)
        x.imag.copy_(x.real * 2)
        y = x.conj().resolve_conj()
        y.mul_(2)                                       # a copy: x stays
        return self.memory * self.weight + x, y


def test_state(check_program):
    check_program(State(), (rand(2, 3),), calls=[((rand(2, 3) * 2,), None)])


def test_writes(check_program):
    def fill(x):
        y = x.clone()
        y[0] = 1j
        y[:, 1].fill_(2)
        y[y.real > 1] = 0
        torch.view_as_real(y).select(-1, 1).neg_()
        return y

    def pairs(r):
        z = torch.view_as_complex(r.clone().reshape(6, 2))
        z *= 1j
        return torch.view_as_real(z)
    check_program(Many([lambda x, r: fill(x), lambda x, r: pairs(r), lambda x, r: x.clone().conj_physical_(), lambda x, r: x.clone().T.mul_(2j)]), (A, R))


def test_dynamic(check_program):
    n = Dim("n")
    functions = [lambda x: x * x.conj(), lambda x: x.prod(0), lambda x: torch.cat([x, x]).flip(0), lambda x: x.mT @ x, lambda x: x.reshape(-1), lambda x: torch.zeros_like(x) + 1j, lambda x: x.sum(0), lambda x: x / (x.abs().sum() + 1)]
    check_program(Many(functions), (rand(3, 4),), dynamic_shapes={"inputs": ({0: n},)}, calls=[((rand(7, 4),), None), ((rand(1, 4),), None)])


class Branches(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.real.sum() > 0, lambda x: x * 2j, lambda x: x.conj() + 1, (x,))


def test_branches(check_program):
    check_program(Branches(), (rand(3),), calls=[((-rand(3),), None)])


def test_real_programs_are_left_alone(check_program):
    checked = check_program(Many([lambda x: x.real * 2, lambda x: x.conj() + 1]), (torch.randn(3),))
    assert sorted(checked.op_types) == ["Add", "Mul"]


def test_refused(tmp_path, run):
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(Many([lambda x: torch.linalg.eigvals(x)]), (rand(3, 3),)), path)
    done = run("convert", path, "-o", tmp_path / "m.onnx")
    assert done.code and "aten::linalg_eigvals: no form for complex numbers" in done.err and "view_as_real" in done.err
