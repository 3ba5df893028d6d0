"""Views, slices, joins and padding as values: each case is a function of a few tensors, run at its own sizes and, where given, at others."""
import pytest
import torch
from torch.nn import functional as F


class Many(torch.nn.Module):
    """Several small programs in one, so that each costs no conversion of its own."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *inputs):
        return [function(*inputs) for function in self.functions]


def numbers(*shape, dtype=torch.float32):
    return (torch.arange(torch.Size(shape).numel()).reshape(shape) % 97 - 20).to(dtype)


X = numbers(4, 5, 6)

STATIC = {
    "view": [X, lambda x: x.view(20, -1), lambda x: x.reshape(4, 5, 2, 3), lambda x: x.flatten(1), lambda x: x.flatten(-2, -1), lambda x: x.ravel(),
             lambda x: x.unflatten(-1, (2, -1)), lambda x: x.view_as(x.reshape(5, 4, 6)), lambda x: x.reshape_as(x.view(-1)), lambda x: x[0, 0, 0].reshape(1, 1),
             lambda x: torch.ops.aten.view_copy(x, [120])],
    "squeeze": [X[:1, :, :1], lambda x: x.squeeze(), lambda x: x.squeeze(0), lambda x: x.squeeze(1), lambda x: x.squeeze((0, -1)), lambda x: x.unsqueeze(-1),
                lambda x: x.unsqueeze(0).squeeze(-1), lambda x: x[0, 0, 0].squeeze(0), lambda x: x[0, 0, 0].unsqueeze(-1)],
    "expand": [X[:1], lambda x: x.expand(3, -1, -1), lambda x: x.expand(2, 3, 5, 6), lambda x: x.expand_as(x.new_zeros(2, 5, 6)), lambda x: x.broadcast_to(4, 5, 6),
               lambda x: torch.broadcast_tensors(x, x[0, :, :1]), lambda x: x[0, 0, 0].expand(2, 2), lambda x: x[:, :0].expand(4, 0, 6)],
    "permute": [X, lambda x: x.permute(2, 0, 1), lambda x: x.permute(-1, -3, -2), lambda x: x.transpose(0, -1), lambda x: x.mT, lambda x: x.mH, lambda x: x.adjoint(),
                lambda x: x[0].t(), lambda x: x[0, 0].t(), lambda x: x[0].T, lambda x: x.swapaxes(0, 1), lambda x: x.movedim(0, -1), lambda x: x.moveaxis((0, 1), (2, 0)),
                lambda x: torch.ops.aten.permute_copy(x, [1, 0, 2]), lambda x: torch.ops.aten.transpose_copy(x, 0, 1)],
    "atleast": [X, lambda x: torch.atleast_1d(x[0, 0, 0]), lambda x: torch.atleast_2d(x[0, 0]), lambda x: torch.atleast_3d(x[0], x[0, 0], x[0, 0, 0])],
    "select": [X, lambda x: x[1], lambda x: x[..., -1], lambda x: x.select(1, -2), lambda x: x.unbind(1), lambda x: torch.unbind_copy(x, -1)],
    "slice": [X, lambda x: x[1:3], lambda x: x[-2:], lambda x: x[:, :-1], lambda x: x[:, 1:99:2], lambda x: x[-99:2], lambda x: x[3:1], lambda x: x[..., ::4],
              lambda x: x[0:4], lambda x: x.narrow(1, -3, 2), lambda x: x.narrow(-1, 6, 0), lambda x: torch.narrow_copy(x, 0, 1, 2)],
    "split": [X, lambda x: x.split(2), lambda x: x.split([1, 0, 4], 1), lambda x: x.chunk(4, -1), lambda x: x.chunk(9, 0), lambda x: x.tensor_split(3, 1),
              lambda x: x.tensor_split((1, 1, 7), 2), lambda x: x.hsplit(5), lambda x: x.vsplit([1, 3]), lambda x: x.dsplit(2), lambda x: x[0, 0].hsplit(2),
              lambda x: torch.split_with_sizes_copy(x, [1, 3])],
    "diagonal": [X, lambda x: x.diagonal(), lambda x: x.diagonal(1, 0, 2), lambda x: x.diagonal(-2, -1, 1), lambda x: x.diagonal(9), lambda x: torch.linalg.diagonal(x),
                 lambda x: torch.diagonal_copy(x, -1)],
    "windows": [X, lambda x: x.unfold(1, 3, 1), lambda x: x.unfold(-1, 2, 3), lambda x: x.unfold(0, 2, 2), lambda x: x.unfold(0, 4, 9), lambda x: x[0, 0, 0].unfold(0, 1, 1),
                lambda x: torch.as_strided(x, (3, 2), (1, 7), 2), lambda x: torch.as_strided_copy(x, (2, 3), (3, 1), 4), lambda x: torch.as_strided_copy(x, (), (), 3)],
    "scatter": [X, lambda x: x.slice_scatter(x[:2] * 2, 0, 1, 3), lambda x: x.slice_scatter(x[:, :2] * 2, 1, -2), lambda x: x.slice_scatter(-x),
                lambda x: x.slice_scatter(x[:, :, :2] * 2, 2, 1, 5, 3), lambda x: x.slice_scatter(x[:0], 0, 3, 1), lambda x: x.slice_scatter(x[:3] * 2, 0, -99, 3),
                lambda x: x.select_scatter(x[0] * 2, 0, 2), lambda x: x.select_scatter(x[:, 0] * 2, 1, -1), lambda x: x.select_scatter(x[:, :, 0] * 2, -1, 0),
                lambda x: x.diagonal_scatter(x.diagonal() * 2), lambda x: x.diagonal_scatter(x.diagonal(-1, 2, 0) * 2, -1, 2, 0),
                lambda x: torch.as_strided_scatter(x, x[0, :2, :2] * 2, (2, 2), (1, 9), 3)],
    "cat": [X, lambda x: torch.cat([x, x[:1]]), lambda x: torch.cat([x, x.int(), x > 0], -1), lambda x: torch.cat([x.new_zeros(0), x]), lambda x: torch.cat([x[:0], x, x[:0]]),
            lambda x: torch.stack([x, -x], -1), lambda x: torch.nn.utils.rnn.pad_sequence([x[:2], x[1:], x[:0]], True, -1), lambda x: torch.nn.utils.rnn.pad_sequence([x[0, 0], x[0, 1, :2]], padding_side="left"), lambda x: torch.stack([x[0, 0, 0], x[0, 0, 1]]), lambda x: torch.hstack([x[0, 0], x[0, 1]]), lambda x: torch.hstack([x, x]),
            lambda x: torch.vstack([x[0, 0], x[0]]), lambda x: torch.dstack([x[0], x[0]]), lambda x: torch.dstack([x[0, 0], x[0, 1]]), lambda x: torch.dstack([x[0, 0, 0]]),
            lambda x: torch.column_stack([x[0], x[0, :, 0]]), lambda x: torch.column_stack([x[0, 0, 0], x[0, 0, 1]]), lambda x: torch.block_diag(x[0], x[0, 0], x[0, 0, 0]),
            lambda x: torch._chunk_cat([x, x[:3]], 0, 3)],
    "repeat": [X, lambda x: x.repeat(2, 1, 3), lambda x: x.repeat(2, 1, 1, 1), lambda x: x[0, 0, 0].repeat(3), lambda x: x.repeat(1, 0, 1), lambda x: torch.tile(x, (2,)),
               lambda x: x.repeat_interleave(3), lambda x: x.repeat_interleave(2, -1), lambda x: x[:, :1].repeat_interleave(3, 1), lambda x: x[:, :1].repeat(1, 3, 1)],
    "turn": [X, lambda x: x.roll(1), lambda x: x.roll((-2, 8), (0, 2)), lambda x: x.roll(0, 1), lambda x: x.flip(0, -1), lambda x: x.fliplr(), lambda x: x.flipud(),
             lambda x: x.rot90(), lambda x: x.rot90(2, (1, 2)), lambda x: x.rot90(-1, (0, 2)), lambda x: x[0, 0, 0].roll(1), lambda x: x[0, 0, 0].flip(0)],
    "diag": [X, lambda x: x[0].diag(), lambda x: x[0].diag(-1), lambda x: x[0, 0].diag(2), lambda x: x[0].diag_embed(), lambda x: x.diag_embed(-2, 0, 2),
             lambda x: x[0].diag_embed(1, -1, 0), lambda x: x[0].diagflat(1), lambda x: x.tril(), lambda x: x.triu(2), lambda x: x.tril(-1),
             lambda x: x.int().to(torch.int8).triu(-1), lambda x: (x > 0).tril(1)],
    "grid": [X, lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], indexing="ij"), lambda x: torch.meshgrid(x[0, 0], x[0, :, 0], x[:, 0, 0], indexing="xy"),
             lambda x: torch.cartesian_prod(x[0, 0], x[0, :, 0]), lambda x: torch.cartesian_prod(x[0, 0]),
             lambda x: torch.combinations(x[0, 0], 1), lambda x: torch.combinations(x[0, 0], 0),
             lambda x: torch.vander(x[0, 0, :3], 4), lambda x: torch.linalg.vander(x[0, :, :3], N=3), lambda x: torch.vander(x[0, 0, :3].int(), increasing=True)],
    "difference": [X, lambda x: x.diff(), lambda x: x.diff(2, 0), lambda x: x.diff(9, 0), lambda x: (x > 0).diff(), lambda x: x.diff(1, 1, x[:, :1], x[:, :2]),
                   lambda x: torch.trapezoid(x), lambda x: torch.trapezoid(x, dx=0.5, dim=0), lambda x: torch.trapezoid(x, x[0, 0]), lambda x: torch.trapezoid(x.int(), dim=1),
                   lambda x: torch.trapezoid(x, x * x, dim=1), lambda x: torch.cumulative_trapezoid(x), lambda x: torch.cumulative_trapezoid(x, x[0, :, 0], dim=1)],
    "shuffle": [numbers(2, 12, 4, 6), lambda x: F.pixel_shuffle(x, 2), lambda x: F.pixel_unshuffle(x, 2), lambda x: F.pixel_shuffle(x[0], 2), lambda x: F.channel_shuffle(x, 3),
                lambda x: F.pixel_shuffle(x.int(), 2), lambda x: F.pixel_unshuffle(x[0], 2)],
    "bits": [numbers(3, 8, dtype=torch.int32), lambda x: x.view(torch.uint8), lambda x: x.view(torch.int64), lambda x: x.view(torch.uint8).view(torch.int8).view(torch.int16),
             lambda x: x.view(torch.int16)],
    "pad": [X, lambda x: F.pad(x, (1, 2)), lambda x: F.pad(x, (1, 0, -1, 2), value=3.5), lambda x: F.pad(x, (-1, -2, 0, 0, 1, 1)), lambda x: F.pad(x > 0, (1, 1), value=True),
            lambda x: F.pad(x.int(), (0, 1, 2, 0), value=7), lambda x: F.pad(x, (2, 1), "reflect"), lambda x: F.pad(x, (-2, 3), "reflect"), lambda x: F.pad(x, (2, 1, 1, 0), "reflect"),
            lambda x: F.pad(x, (7, 1), "replicate"), lambda x: F.pad(x, (-2, 3), "replicate"), lambda x: F.pad(x, (2, 1), "circular"), lambda x: F.pad(x, (-2, 3), "circular"),
            lambda x: F.pad(x[None], (1, 2, 3, 4), "circular"), lambda x: F.pad(x, (0, 0)), lambda x: F.pad(x[:0], (0, 0, 0, 0, 1, 0))],
}


@pytest.mark.parametrize("name", STATIC)
def test_static(check_program, name):
    first, *functions = STATIC[name]
    check_program(Many(functions), (first,))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.int8, torch.float16, torch.float64], ids=str)
def test_dtypes(check_program, dtype):
    check_program(Many([lambda x: x.reshape(20, 6)[1:-2:3], lambda x: torch.cat([x, x], 1), lambda x: x.roll(2, 1), lambda x: x.flip(2), lambda x: F.pad(x, (1, 1)),
                        lambda x: x.repeat(1, 2, 1), lambda x: x.repeat_interleave(2, 0), lambda x: x.slice_scatter(x[:2], 0, 2), lambda x: x.diagonal_scatter(x.diagonal(0, 1, 2), 0, 1, 2),
                        lambda x: x.diag_embed(), lambda x: x.unfold(2, 2, 3), lambda x: x.tril(), lambda x: x[:, :, None].expand(4, 5, 2, 6)]),
                  (numbers(4, 5, 6, dtype=dtype),))


DYNAMIC = {
    "view": [lambda x: x.view(-1, 6), lambda x: x.flatten(), lambda x: x.flatten(1), lambda x: x.reshape(x.shape[0], x.shape[1], 2, 3), lambda x: x.unsqueeze(1).expand(-1, 2, -1, -1),
             lambda x: x.permute(2, 1, 0).reshape(6, -1), lambda x: x[:, None].expand(x.shape[0], 3, x.shape[1], 6)],
    "slice": [lambda x: x[:-1], lambda x: x[-2:], lambda x: x[:, : x.shape[0]], lambda x: x[x.shape[0] // 2:], lambda x: x[:, ::2], lambda x: x[x.shape[0] - 1], lambda x: x[:3, :3],
              lambda x: x[:, -3:-1]],
    "write": [lambda x: x.select_scatter(x[0] * 2, 0, -1), lambda x: x.slice_scatter(x[:1] * 2, 0, x.shape[0] - 1), lambda x: x.slice_scatter(x[-1:] * 2, 0, -1),
              lambda x: x.slice_scatter(x[:, ::2] * 2, 1, 0, None, 2), lambda x: x.select_scatter(x[:, 0] * 2, 1, x.shape[1] - 1)],
    "join": [lambda x: torch.cat([x, x[1:]]), lambda x: torch.stack([x, -x], 1), lambda x: x.repeat(2, 1, 1), lambda x: x.repeat_interleave(2, 1), lambda x: x.roll(1, 0),
             lambda x: x.roll((-1, 2), (1, 0)), lambda x: x.flip(0, 1), lambda x: x.roll(3)],
    "triangle": [lambda x: x.permute(2, 0, 1).tril(), lambda x: x.permute(2, 0, 1).triu(1), lambda x: x.permute(2, 0, 1).diagonal(0, 1, 2), lambda x: x[:, 0, 0].diag_embed(),
                 lambda x: x[:, 0, 0].diag_embed(1), lambda x: x.tril(x.shape[0] - 2)],
    "pad": [lambda x: F.pad(x, (1, 1, 2, 0, 0, 3)), lambda x: F.pad(x, (0, 0, 0, 8 - x.shape[1])), lambda x: F.pad(x, (0, 0, -1, 0)), lambda x: F.pad(x, (1, 2), "reflect"),
            lambda x: F.pad(x, (1, 2), "replicate"), lambda x: F.pad(x, (1, 2), "circular")],
    "windows": [lambda x: x.unfold(2, 3, 2), lambda x: x.diff(1, 0), lambda x: torch.trapezoid(x, dim=1), lambda x: torch.meshgrid(x[:, 0, 0], x[0, :, 0], indexing="ij")],
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic(check_program, name):
    sizes = torch.export.Dim.DYNAMIC
    calls = [((numbers(a, b, 6),), None) for a, b in [(3, 3), (4, 3), (7, 6)]]
    check_program(Many(DYNAMIC[name]), (numbers(5, 4, 6),), dynamic_shapes={"inputs": ({0: sizes, 1: sizes},)}, calls=calls)


@pytest.mark.parametrize("opset", [18, 28])
def test_opsets(check_program, opset):
    check_program(Many([*STATIC["pad"][1:], *STATIC["slice"][1:]]), (X,), opset=opset)


def test_few_nodes(check_program):
    def nodes(function, *args):
        return check_program(Many([function]), args).op_types
    assert nodes(lambda x: x.slice_scatter(x[:, :2] * 2, 1, 0, 2), X).count("Slice") == 2
    assert nodes(lambda x: x.select_scatter(x[:, 0] * 2, 1, 4), X) == ["Slice", "Gather", "Mul", "Unsqueeze", "Concat"]
    assert nodes(lambda x: x.roll(1, 0), X) == ["Gather"]
    assert nodes(lambda x: x.unbind(0), X) == ["Gather"] * 4
    assert nodes(lambda x: x[:, 0:5] + x.narrow(0, 0, 4), X) == ["Add"]
