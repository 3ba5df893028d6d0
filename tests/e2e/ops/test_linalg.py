"""Matrix products and distances: each case is a function of a few tensors."""
import pytest
import torch
from test_shape import Many
from torch.nn import functional as F

ops = torch.ops.aten


def rand(*shape, dtype=torch.float32):
    """Numbers from -2 to 2 without a pattern; the same wherever it is called, also while a program is captured."""
    n = torch.Size(shape).numel()
    return torch.arange(n).mul(1.7).add(len(shape)).sin().mul(2).reshape(shape).to(dtype)


NAN = torch.tensor(float("nan"))
A, B, V, W = rand(3, 4), rand(4, 5), rand(4), rand(3)
BATCH, BATCH2 = rand(2, 3, 4), rand(2, 4, 5)

CASES = {
    "linear": [(A, rand(5, 4), rand(5)), lambda x, w, b: F.linear(x, w, b), lambda x, w, b: F.linear(x, w), lambda x, w, b: F.linear(x[0], w, b), lambda x, w, b: F.linear(x[None, None], w, b),
               lambda x, w, b: F.linear(x, w[0]), lambda x, w, b: F.linear(x.long(), w.long(), b.long()), lambda x, w, b: F.linear(x.double(), w.double(), b.double()), lambda x, w, b: F.linear(x[:0], w, b)],
    "matmul": [(A, B, V), lambda x, y, v: x @ y, lambda x, y, v: x @ v, lambda x, y, v: v @ y, lambda x, y, v: v @ v, lambda x, y, v: x.expand(2, 6, 3, 4) @ y.expand(6, 4, 5),
               lambda x, y, v: x.expand(2, 3, 4) @ v, lambda x, y, v: v @ y.expand(2, 4, 5), lambda x, y, v: torch.linalg.matmul(x, y), lambda x, y, v: x[:, :0] @ y[:0],
               lambda x, y, v: torch.dot(v, v), lambda x, y, v: torch.vdot(v, v), lambda x, y, v: torch.mv(x, v), lambda x, y, v: torch.mm(x, y)],
    "scaled": [(A, B, V, W, rand(3, 5)), lambda x, y, v, w, c: torch.addmm(c, x, y), lambda x, y, v, w, c: torch.addmm(c[0], x, y, alpha=2, beta=0.5), lambda x, y, v, w, c: torch.addmm(c[0, 0], x, y, alpha=-1),
               lambda x, y, v, w, c: torch.addmm(c[:, :1] * NAN, x, y, beta=0), lambda x, y, v, w, c: torch.addmm(c.double(), x.double(), y.double(), alpha=0.1, beta=0.3),
               lambda x, y, v, w, c: torch.addmv(w, x, v, alpha=2, beta=3), lambda x, y, v, w, c: torch.addmv(w * NAN, x, v, beta=0), lambda x, y, v, w, c: torch.addr(x, w, v, alpha=2, beta=0.5),
               lambda x, y, v, w, c: torch.addr(x > 0, w > 0, v > 0), lambda x, y, v, w, c: torch.addbmm(c, x.expand(2, 3, 4), y.expand(2, 4, 5), alpha=0.5),
               lambda x, y, v, w, c: torch.baddbmm(c, x.expand(2, 3, 4), y.expand(2, 4, 5), beta=2), lambda x, y, v, w, c: torch.baddbmm(c * NAN, x.expand(2, 3, 4), y.expand(2, 4, 5), beta=0, alpha=3),
               lambda x, y, v, w, c: torch.addmm(c.long(), x.long(), y.long(), alpha=2, beta=3), lambda x, y, v, w, c: ops._addmm_activation(c[0], x, y, use_gelu=True)],
    "outer": [(A, B, V, W), lambda x, y, v, w: torch.outer(v, w), lambda x, y, v, w: torch.ger(v, w), lambda x, y, v, w: torch.kron(x, y), lambda x, y, v, w: torch.kron(v, y), lambda x, y, v, w: torch.kron(x, v.long()),
              lambda x, y, v, w: torch.inner(x, v), lambda x, y, v, w: torch.inner(x, x), lambda x, y, v, w: torch.inner(x, x.expand(2, 3, 4)), lambda x, y, v, w: torch.inner(x, v[0]),
              lambda x, y, v, w: torch.tensordot(x.expand(2, 3, 4), y, 1), lambda x, y, v, w: torch.tensordot(x.expand(4, 3, 4), y.expand(3, 4, 5), ([0, 1], [1, 0])),
              lambda x, y, v, w: torch.tensordot(x, y, 0), lambda x, y, v, w: torch.tensordot(x, y[:1], 1), lambda x, y, v, w: torch.linalg.vecdot(x, v), lambda x, y, v, w: torch.linalg.vecdot(x, w[:, None], dim=0)],
    "cross": [(A[:, :3], BATCH[..., :3]), lambda x, y: torch.linalg.cross(x[None], y), lambda x, y: torch.linalg.cross(y, x[None], dim=1), lambda x, y: torch.cross(x, x + 1), lambda x, y: torch.linalg.cross(x.long(), x.long() + 1),
              lambda x, y: torch.linalg.cross(x[:1], x)],
    "chain": [(A, B, V, W), lambda x, y, v, w: torch.linalg.multi_dot([x, y, rand(5, 2)]), lambda x, y, v, w: torch.linalg.multi_dot([w, x, y]), lambda x, y, v, w: torch.linalg.multi_dot([w, x, v]),
              lambda x, y, v, w: torch.chain_matmul(x, y, rand(5, 2)), lambda x, y, v, w: torch.linalg.matrix_power(x[:, :3], 5), lambda x, y, v, w: torch.matrix_power(x[:, :3].expand(2, 3, 3), 0),
              lambda x, y, v, w: F.bilinear(x, x, rand(2, 4, 4), rand(2)), lambda x, y, v, w: F.bilinear(v, v, rand(2, 4, 4)), lambda x, y, v, w: F.bilinear(x.expand(2, 3, 4), x.expand(2, 3, 4), rand(1, 4, 4))],
    "einsum": [(A, B, BATCH, BATCH2), lambda x, y, p, q: torch.einsum("ij,jk->ik", x, y), lambda x, y, p, q: torch.einsum("ij , jk", x, y), lambda x, y, p, q: torch.einsum("bij,bjk->bik", p, q),
               lambda x, y, p, q: torch.einsum("...ij,...jk->...ik", p, y), lambda x, y, p, q: torch.einsum("...ij,...jk", p, q), lambda x, y, p, q: torch.einsum("ij->", x), lambda x, y, p, q: torch.einsum("ij->j", x),
               lambda x, y, p, q: torch.einsum("ii->i", x[:, :3]), lambda x, y, p, q: torch.einsum("ii", x[:, :3]), lambda x, y, p, q: torch.einsum("i,j->ij", x[0], y[0]), lambda x, y, p, q: torch.einsum("ij,kj->ik", x, x[:, :1]),
               lambda x, y, p, q: torch.einsum("bij,bjk,kl->bil", p, q, rand(5, 2)), lambda x, y, p, q: torch.einsum("Zba,Zcb", q, p), lambda x, y, p, q: torch.einsum("b...->...b", p),
               lambda x, y, p, q: torch.einsum("ij,jk->ik", x.long(), y.long()), lambda x, y, p, q: torch.einsum(p, [0, 1, 2], q, [0, 2, 3], [0, 3, 1])],
    "distance": [(A, BATCH, BATCH2.mT), lambda x, p, q: torch.cdist(p, q), *[lambda x, p, q, o=o: torch.cdist(p, q, p=o) for o in (0.0, 1.0, 3.5, float("inf"))], lambda x, p, q: torch.cdist(rand(30, 4), x),
                 lambda x, p, q: torch.cdist(x, p, compute_mode="use_mm_for_euclid_dist"), lambda x, p, q: F.pdist(x), lambda x, p, q: F.pdist(x, p=1), lambda x, p, q: F.pairwise_distance(x, x + 1, p=3, keepdim=True),
                 lambda x, p, q: F.pairwise_distance(p, x), lambda x, p, q: F.pairwise_distance(x.long(), x.long() + 2), lambda x, p, q: F.cosine_similarity(p, x, dim=-1), lambda x, p, q: F.cosine_similarity(p, x[None, :1], dim=1), lambda x, p, q: F.cosine_similarity(x * 0, x, dim=0),
                 lambda x, p, q: F.normalize(p), lambda x, p, q: F.normalize(x, p=1, dim=0), lambda x, p, q: torch.renorm(x, 2, 0, 1.5), lambda x, p, q: torch.renorm(p, 1, -1, 2)],
}


@pytest.mark.parametrize("name", CASES)
def test_linalg(check_program, name):
    inputs, *functions = CASES[name]
    check_program(Many(functions), inputs)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.float16, torch.float64], ids=str)
def test_dtypes(check_program, dtype):
    x, y = rand(3, 4, dtype=dtype), rand(4, 5, dtype=dtype)
    check_program(Many([lambda x, y: x @ y, lambda x, y: x @ y[:, 0], lambda x, y: torch.addmm(x[:, :1], x, y), lambda x, y: torch.einsum("ij,jk->ki", x, y), lambda x, y: torch.tensordot(x, y, 1),
                        lambda x, y: torch.outer(x[0], y[0]), lambda x, y: F.linear(x, y.mT)]), (x, y))


def test_dynamic(check_program):
    size = torch.export.Dim.DYNAMIC
    functions = [lambda x, y: F.linear(x, y), lambda x, y: x @ y.mT, lambda x, y: torch.einsum("bij,kj->bki", x, y), lambda x, y: torch.tensordot(x, y.mT, 1), lambda x, y: torch.inner(x, y),
                 lambda x, y: torch.cdist(x, y), lambda x, y: F.cosine_similarity(x[:, :1], y, dim=-1), lambda x, y: F.pairwise_distance(x[:, 0], y[:1]), lambda x, y: torch.baddbmm(x[:, :1, :1], x, x.mT)]
    check_program(Many(functions), (rand(3, 5, 4), rand(6, 4)), dynamic_shapes={"inputs": ({0: size, 1: size}, {0: size})}, calls=[((rand(2, 7, 4), rand(3, 4)), None)])


def test_few_nodes(check_program):
    def nodes(function, *args):
        return check_program(Many([function]), args).op_types
    assert nodes(lambda x, w, b: F.linear(x, w, b), A, rand(5, 4), rand(5)) == ["Gemm"]
    assert nodes(lambda x, w, b: F.linear(x, w, b), BATCH, rand(5, 4), rand(5)) == ["Reshape", "Gemm", "Reshape"]
    assert nodes(lambda x, w: F.linear(x, w), BATCH, rand(5, 4)) == ["Transpose", "MatMul"]
    assert nodes(lambda x, y, c: torch.addmm(c, x, y, alpha=2), A, B, rand(5)) == ["Gemm"]
    assert nodes(lambda x, y: torch.einsum("...ij,jk->...ik", x, y), BATCH, B) == ["Einsum"]
