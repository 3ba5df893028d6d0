"""Factorizations and what is made of them: LU, Cholesky, QR, linear systems, determinants, exp of a matrix."""
import pytest
import torch
from test_shape import Many as Functions

L = torch.linalg


def rand(*shape):
    """Numbers from -2 to 2 without a pattern, of full rank; the same wherever it is called."""
    return torch.arange(torch.Size(shape).numel()).square().mul(0.37).add(len(shape)).sin().mul(2).reshape(shape)


def Many(functions):
    """Named tuples of torch can't be written by torch.export: plain ones."""
    return Functions([lambda *x, f=f: tuple(y) if isinstance(y := f(*x), tuple) else y for f in functions])


S, B, V = rand(5, 5) + torch.eye(5), rand(2, 3, 4, 4) + 3 * torch.eye(4), rand(5)
SINGULAR = torch.tensor([[1.0, 2, 3], [2, 4, 6], [1, 0, 1]])
ZERO_COLUMN = torch.tensor([[0.0, 1, 2], [0, 3, 1], [0, 2, 2]])


def definite(*shape):
    x = rand(*shape)
    return x @ x.mT + torch.eye(shape[-1])


P, PB = definite(5, 5), definite(2, 1, 3, 3)
TALL, WIDE = rand(2, 6, 3), rand(3, 5)

CASES = {
    "lu": [(S, B, TALL, WIDE), lambda s, b, t, w: L.lu(s), lambda s, b, t, w: L.lu(b), lambda s, b, t, w: L.lu(t), lambda s, b, t, w: L.lu(w), lambda s, b, t, w: L.lu(b.mT[0]),
           lambda s, b, t, w: L.lu_factor(t), lambda s, b, t, w: L.lu_factor_ex(w), lambda s, b, t, w: L.lu_factor_ex(ZERO_COLUMN), lambda s, b, t, w: L.lu_factor_ex(SINGULAR.expand(2, 3, 3)),
           lambda s, b, t, w: torch.lu_unpack(*L.lu_factor(t)), lambda s, b, t, w: torch.lu_unpack(*L.lu_factor(w), unpack_data=False), lambda s, b, t, w: torch.lu_unpack(*L.lu_factor(w), unpack_pivots=False),
           lambda s, b, t, w: L.lu_factor(s[:, :0]), lambda s, b, t, w: L.lu(s[:0]), lambda s, b, t, w: L.lu_factor_ex(b[:0]), lambda s, b, t, w: torch._lu_with_info(t), lambda s, b, t, w: L.lu(s[:1, :1])],
    "lu_solve": [(S, B, rand(5, 2), rand(3, 4, 2)), *[lambda s, b, y, z, k=k: L.lu_solve(*L.lu_factor(s), y if k["left"] else y.mT, **k) for k in ({"left": x, "adjoint": a} for x in (True, False) for a in (True, False))],
                 lambda s, b, y, z: L.lu_solve(*L.lu_factor(b), z), lambda s, b, y, z: L.lu_solve(*L.lu_factor(b[0, 0]), z), lambda s, b, y, z: torch.lu_solve(y, *L.lu_factor(s)), lambda s, b, y, z: L.lu_solve(*L.lu_factor(s), y[:, :0])],
    "det": [(S, B), lambda s, b: L.det(s), lambda s, b: L.det(b), lambda s, b: torch.det(b.double()), lambda s, b: L.slogdet(s), lambda s, b: torch.slogdet(-b[..., :3, :3]), lambda s, b: torch.logdet(b), lambda s, b: torch.logdet(-s),
            lambda s, b: L.det(SINGULAR), lambda s, b: L.slogdet(ZERO_COLUMN), lambda s, b: torch.logdet(ZERO_COLUMN.double()), lambda s, b: L.det(s[:0, :0]), lambda s, b: L.slogdet(b[:, :, :0, :0]), lambda s, b: L.det(b[:0]),
            lambda s, b: L.slogdet(b[:0]), lambda s, b: L.det(b[..., :1, :1])],
    "inv": [(S, B), lambda s, b: L.inv(s), lambda s, b: torch.inverse(b), lambda s, b: L.inv(b.mT.double()), lambda s, b: L.inv_ex(b), lambda s, b: L.inv_ex(ZERO_COLUMN)[1], lambda s, b: L.inv_ex(SINGULAR.mT)[1],
            lambda s, b: L.inv(s[:0, :0]), lambda s, b: L.inv(b[:0]), lambda s, b: L.matrix_power(s, -3), lambda s, b: torch.matrix_power(b, -1), lambda s, b: L.tensorinv(b[0, 0].reshape(2, 2, 4)),
            lambda s, b: L.tensorinv((rand(6, 6) + 3 * torch.eye(6)).reshape(6, 2, 3), ind=1)],
    "solve": [(S, B, V, rand(5, 2), rand(3, 4, 2)), lambda s, b, v, y, z: L.solve(s, v), lambda s, b, v, y, z: L.solve(s, y), lambda s, b, v, y, z: L.solve(b, z), lambda s, b, v, y, z: L.solve(b, b[..., 0]), lambda s, b, v, y, z: L.solve(b, v[:4]),
              lambda s, b, v, y, z: L.solve(s, y.mT, left=False), lambda s, b, v, y, z: L.solve(b, z.mT, left=False), lambda s, b, v, y, z: L.solve_ex(b, z), lambda s, b, v, y, z: L.solve_ex(ZERO_COLUMN, y[:3])[1],
              lambda s, b, v, y, z: L.solve(s.double(), y.double()), lambda s, b, v, y, z: L.solve(s[:0, :0], y[:0]), lambda s, b, v, y, z: L.solve(s, y[:, :0]), lambda s, b, v, y, z: L.solve(b[:0], z),
              lambda s, b, v, y, z: L.tensorsolve((rand(6, 6) + 3 * torch.eye(6)).reshape(2, 3, 6), rand(2, 3)), lambda s, b, v, y, z: L.tensorsolve((rand(6, 6) + 3 * torch.eye(6)).reshape(2, 6, 3), rand(6), dims=(0, 2))],
    "triangular": [(S, B, rand(5, 2), rand(3, 4, 2)), *[lambda s, b, y, z, u=u, n=n: L.solve_triangular(s, y, upper=u, unitriangular=n) for u in (True, False) for n in (True, False)],
                   *[lambda s, b, y, z, u=u: L.solve_triangular(s, y.mT, upper=u, left=False) for u in (True, False)], lambda s, b, y, z: L.solve_triangular(b, z, upper=True), lambda s, b, y, z: L.solve_triangular(s[:0, :0], y[:0], upper=True),
                   lambda s, b, y, z: torch.triangular_solve(y, s), lambda s, b, y, z: torch.triangular_solve(y, s, upper=False, transpose=True, unitriangular=True), lambda s, b, y, z: torch.triangular_solve(z, b[0, 0], transpose=True),
                   lambda s, b, y, z: L.solve_triangular(s.mT.double(), y.double(), upper=True), lambda s, b, y, z: L.solve_triangular(torch.tril(s) - torch.diag(torch.diag(s)), y, upper=False)],
    "cholesky": [(P, PB, rand(5, 2), rand(3, 3, 2)), lambda p, q, y, z: L.cholesky(p), lambda p, q, y, z: L.cholesky(q, upper=True), lambda p, q, y, z: torch.linalg.cholesky(torch.tril(p)), lambda p, q, y, z: torch.cholesky(p.double(), upper=True),
                 lambda p, q, y, z: L.cholesky_ex(q), lambda p, q, y, z: L.cholesky_ex(p - 2 * torch.eye(5) * torch.tensor([0, 0, 9.0, 0, 0]))[1], lambda p, q, y, z: L.cholesky_ex(p[:0, :0]), lambda p, q, y, z: L.cholesky(q[:0]),
                 lambda p, q, y, z: torch.cholesky_solve(y, L.cholesky(p)), lambda p, q, y, z: torch.cholesky_solve(z, L.cholesky(q, upper=True), upper=True), lambda p, q, y, z: torch.cholesky_inverse(L.cholesky(p)),
                 lambda p, q, y, z: torch.cholesky_inverse(L.cholesky(q, upper=True), upper=True)],
    "qr": [(S, B, TALL, WIDE), lambda s, b, t, w: L.qr(s), lambda s, b, t, w: L.qr(b), *[lambda s, b, t, w, m=m: L.qr(t, mode=m) for m in ("reduced", "complete", "r")], *[lambda s, b, t, w, m=m: L.qr(w, mode=m) for m in ("reduced", "complete", "r")],
           lambda s, b, t, w: torch.qr(t, some=False), lambda s, b, t, w: L.qr(t.double()), lambda s, b, t, w: L.qr(torch.triu(s)), lambda s, b, t, w: L.qr(w.mT), lambda s, b, t, w: L.qr(s[:, :0]), lambda s, b, t, w: L.qr(s[:0], mode="complete"), lambda s, b, t, w: L.qr(s[:, :1]),
           lambda s, b, t, w: torch.geqrf(t), lambda s, b, t, w: torch.geqrf(w), lambda s, b, t, w: torch.geqrf(s * 0), lambda s, b, t, w: L.householder_product(*torch.geqrf(t)), lambda s, b, t, w: torch.orgqr(torch.geqrf(t)[0], torch.geqrf(t)[1][:, :2]),
           lambda s, b, t, w: torch.ormqr(*torch.geqrf(t), t[:, :, :2]), lambda s, b, t, w: torch.ormqr(*torch.geqrf(t), t, transpose=True), lambda s, b, t, w: torch.ormqr(*torch.geqrf(t), t.mT, left=False),
           lambda s, b, t, w: torch.ormqr(*torch.geqrf(s), s, left=False, transpose=True)],
    "ldl": [(S + S.mT - 2 * torch.eye(5), B + B.mT - 6 * torch.eye(4), rand(5, 2), rand(3, 4, 2)), lambda s, b, y, z: L.ldl_factor(s), lambda s, b, y, z: L.ldl_factor(b), lambda s, b, y, z: L.ldl_factor_ex(b.double()), lambda s, b, y, z: L.ldl_factor_ex(s * 0),
            lambda s, b, y, z: L.ldl_factor(s - torch.diag(torch.diag(s))), lambda s, b, y, z: L.ldl_factor_ex(b[:0]), lambda s, b, y, z: L.ldl_factor(s[:0, :0]), lambda s, b, y, z: L.ldl_factor(s[:1, :1]), lambda s, b, y, z: L.ldl_solve(*L.ldl_factor(s), y),
            lambda s, b, y, z: L.ldl_solve(*L.ldl_factor(b), z), lambda s, b, y, z: L.ldl_solve(*L.ldl_factor(s - torch.diag(torch.diag(s))), y), lambda s, b, y, z: L.ldl_solve(*L.ldl_factor(s), y[:, :0])],
    "exp": [(S, B), lambda s, b: torch.matrix_exp(s), lambda s, b: L.matrix_exp(b), lambda s, b: torch.matrix_exp(s.double() * 4), lambda s, b: torch.matrix_exp(b * torch.tensor([0, 1e-3, 4]).reshape(3, 1, 1)), lambda s, b: torch.matrix_exp(s[:0, :0]),
            lambda s, b: torch.matrix_exp(b[:0]), lambda s, b: torch.matrix_exp(s[:1, :1]), lambda s, b: torch.matrix_exp(s.mT * -3)],
    "singular values": [(S, B, TALL, WIDE), lambda s, b, t, w: L.svdvals(s), lambda s, b, t, w: L.svdvals(b), lambda s, b, t, w: L.svdvals(t), lambda s, b, t, w: L.svdvals(w.double()), lambda s, b, t, w: L.svdvals(s * 0), lambda s, b, t, w: L.svdvals(s[:0]),
                        lambda s, b, t, w: L.svdvals(b[:0]), lambda s, b, t, w: L.svdvals(s[:, :1] * 1e25), lambda s, b, t, w: L.svd(w)[1], lambda s, b, t, w: torch.svd(w, compute_uv=False)[1], lambda s, b, t, w: L.svdvals(SINGULAR), *[lambda s, b, t, w, p=p: L.matrix_norm(t, p) for p in (2, -2, "nuc")],
                        lambda s, b, t, w: L.norm(b, 2, dim=(0, 2), keepdim=True), lambda s, b, t, w: L.norm(s, "nuc"), lambda s, b, t, w: torch.norm(s, "nuc"), lambda s, b, t, w: torch.nuclear_norm(s), lambda s, b, t, w: torch.nuclear_norm(b, dim=(2, 1), keepdim=True), lambda s, b, t, w: L.matrix_norm(b, "nuc", dim=(2, 0), keepdim=True), *[lambda s, b, t, w, p=p: L.cond(b, p) for p in (None, 2, -2, 1, -1, float("inf"), "fro", "nuc")],
                        lambda s, b, t, w: L.cond(t), lambda s, b, t, w: L.cond(ZERO_COLUMN, 1), lambda s, b, t, w: L.cond(b[:0])],
    "ranks": [(S, B, TALL, WIDE, P), lambda s, b, t, w, p: L.matrix_rank(s), lambda s, b, t, w, p: L.matrix_rank(SINGULAR), lambda s, b, t, w, p: L.matrix_rank(t @ t.mT), lambda s, b, t, w, p: L.matrix_rank(w, atol=1.5), lambda s, b, t, w, p: L.matrix_rank(b, atol=torch.tensor([1.0, 2, 3]), rtol=torch.tensor(0.5)),
              lambda s, b, t, w, p: L.matrix_rank(p, tol=2.0, hermitian=True), lambda s, b, t, w, p: L.matrix_rank(s[:0]), lambda s, b, t, w, p: L.pinv(s), lambda s, b, t, w, p: L.pinv(b), lambda s, b, t, w, p: L.pinv(t), lambda s, b, t, w, p: L.pinv(w), lambda s, b, t, w, p: L.pinv(SINGULAR, rtol=1e-5),
              lambda s, b, t, w, p: L.pinv(t @ t.mT), lambda s, b, t, w, p: L.pinv(p.double(), hermitian=True), lambda s, b, t, w, p: L.pinv(w, rtol=1.0), lambda s, b, t, w, p: L.pinv(w, atol=torch.tensor(2.0)), lambda s, b, t, w, p: torch.pinverse(w, 1e-3), lambda s, b, t, w, p: L.pinv(s * 0), lambda s, b, t, w, p: L.pinv(s[:0]),
              lambda s, b, t, w, p: L.eigvalsh(p), lambda s, b, t, w, p: L.eigvalsh(s, UPLO="U"), lambda s, b, t, w, p: L.eigvalsh(b), lambda s, b, t, w, p: L.eigh(s)[0], lambda s, b, t, w, p: L.eigvalsh(-p.double()), lambda s, b, t, w, p: L.eigvalsh(b[:0]), lambda s, b, t, w, p: L.eigvalsh(s[:0, :0]),
              lambda s, b, t, w, p: L.eigvalsh(s[:1, :1])],
}


@pytest.mark.parametrize("name", CASES)
def test_factor(check_program, name):
    inputs, *functions = CASES[name]
    check_program(Many(functions), inputs)


# Sizes of the matrix and of the batch are known when the model runs only; one matrix is empty, one batch is.
def test_dynamic(check_program):
    size = torch.export.Dim.DYNAMIC
    functions = [L.det, L.slogdet, L.inv, L.inv_ex, lambda x: L.solve(x, x[..., :1]), L.lu, L.lu_factor, lambda x: L.cholesky(x @ x.mT), L.qr, torch.matrix_exp, lambda x: L.matrix_power(x, -2),
                 lambda x: L.solve_triangular(x, x, upper=False), lambda x: L.matrix_power(x, 0), L.svdvals, L.pinv, L.matrix_rank, L.eigvalsh]
    check_program(Many(functions), (B[0],), dynamic_shapes={"inputs": ({0: size, 1: (n := torch.export.Dim("n", max=64)), 2: n},)},
                  calls=[((rand(2, 7, 7) + 4 * torch.eye(7),), None), ((rand(2, 2, 2) + 3 * torch.eye(2),), None), ((torch.zeros(0, 3, 3),), None)])
    check_program(Many([L.qr, L.lu, L.lu_factor_ex, L.svdvals, L.pinv]), (TALL[0],), dynamic_shapes={"inputs": ({0: size, 1: size},)}, calls=[((rand(3, 5),), None), ((rand(4, 4),), None), ((rand(7, 2),), None)])
