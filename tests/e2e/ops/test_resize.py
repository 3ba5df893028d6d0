"""Interpolation, sampling by grids, folding: sizes and factors, every mode, at opsets that have other operators."""
import pytest
import torch
from test_reduce import Many
from torch.export import Dim
from torch.nn.functional import affine_grid, fold, grid_sample, interpolate, unfold

MODES = {1: ["nearest", "nearest-exact", "linear", "area"], 2: ["nearest", "nearest-exact", "bilinear", "bicubic", "area"], 3: ["nearest", "nearest-exact", "trilinear", "area"]}
CORNERS = ("linear", "bilinear", "bicubic", "trilinear")


def resized(mode, **how):
    return lambda x: interpolate(x, mode=mode, **how)


def sample(rank):
    return torch.randn(2, 3, *[5, 6, 4][:rank])


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("dtype, opset", [(torch.float32, 20), (torch.float64, 18)])
def test_interpolate(check_program, rank, dtype, opset):
    hows = [dict(size=[7, 9, 5][:rank]), dict(size=[3, 2, 4][:rank]), dict(size=[1, 12, 3][:rank]), dict(scale_factor=2.0), dict(scale_factor=1.7), dict(scale_factor=0.6), dict(scale_factor=1.7, recompute_scale_factor=True),
            dict(size=[5, 6, 4][:rank])]
    functions = [resized(mode, **how) for mode in MODES[rank] for how in hows if mode != "area" or "size" in how]
    functions += [resized(mode, align_corners=True, **how) for mode in MODES[rank] if mode in CORNERS for how in hows]
    if rank == 2:
        functions += [resized(mode, antialias=True, align_corners=corners, **how) for mode in ("bilinear", "bicubic") for corners in (False, True) for how in hows]
    check_program(Many(functions), (sample(rank).to(dtype),), opset=opset)


def test_neighbours_are_exact(check_program):
    # ONNX Runtime's Resize takes another neighbour in some of these.
    functions = [resized("nearest", size=size) for size in (4, 8, 12, 20, 24, 32, 36, 40, 48)] + [resized("nearest-exact", size=size) for size in (4, 12, 25, 45)]
    for size in (21, 30, 36, 39):
        check_program(Many(functions), (torch.arange(size).float().reshape(1, 1, size),))


def test_small_types(check_program):
    functions = [resized("nearest", size=(7, 9)), resized("nearest-exact", scale_factor=0.6)]
    check_program(Many(functions), ((sample(2) * 50 + 128).to(torch.uint8),))
    check_program(Many(functions + [resized("bilinear", size=(7, 9)), resized("bicubic", size=(3, 4))]), (sample(2).half(),))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sizes_vary(check_program, dtype):
    class M(torch.nn.Module):
        def forward(self, x, y):
            modes = ["nearest", "nearest-exact", "bilinear", "bicubic"]
            return [*[interpolate(x, scale_factor=2.0, mode=mode) for mode in modes], *[interpolate(x, scale_factor=1.5, mode=mode) for mode in modes], *[interpolate(x, size=y.shape[2:], mode=mode) for mode in modes],
                    interpolate(x, size=(x.shape[2] * 2 + 1, 7), mode="bilinear", align_corners=True), interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True)]

    h, w = Dim("h", min=4, max=64), Dim("w", min=4, max=64)
    shapes = dict(x={2: h, 3: w}, y={2: Dim("i", min=2, max=64), 3: Dim("j", min=2, max=64)})
    x, y = sample(2).to(dtype), torch.zeros(2, 3, 9, 11, dtype=dtype)
    check_program(M(), (x, y), dynamic_shapes=shapes, calls=[((torch.randn(2, 3, 8, 4, dtype=dtype), torch.zeros(2, 3, 4, 7, dtype=dtype)), {})])


def test_one_node(check_program):
    class M(torch.nn.Module):
        def forward(self, x):
            return interpolate(x, scale_factor=2), interpolate(x, size=(7, 9), mode="bilinear")

    assert check_program(M(), (sample(2),)).op_types == ["Resize", "Resize"]


@pytest.mark.parametrize("opset", [18, 20, 22])
def test_grid_sample(check_program, opset):
    hows = [(mode, padding, corners) for mode in ("bilinear", "nearest", "bicubic") for padding in ("zeros", "border", "reflection") for corners in (False, True)]
    functions = [lambda x, grid, how=how: grid_sample(x, grid, *how) for how in hows]
    check_program(Many(functions), (sample(2), torch.rand(2, 4, 7, 2) * 3 - 1.5), opset=opset)
    if opset >= 20:
        check_program(Many(functions), (sample(2).double(), torch.rand(2, 4, 7, 2).double() * 3 - 1.5), opset=opset)
        volumes = [lambda x, grid, how=how: grid_sample(x, grid, *how) for how in hows if how[0] != "bicubic"]
        check_program(Many(volumes), (sample(3), torch.rand(2, 3, 4, 7, 3) * 3 - 1.5), opset=opset)


@pytest.mark.parametrize("opset", [18, 20])
def test_affine_grid(check_program, opset):
    functions = [lambda a, v, size=size, corners=corners: affine_grid(v if len(size) == 5 else a, size, align_corners=corners)
                 for size in ((2, 3, 4, 5), (2, 3, 1, 5), (2, 3, 4, 5, 6)) for corners in (False, True)]
    check_program(Many(functions), (torch.randn(2, 2, 3), torch.randn(2, 3, 4)), opset=opset)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fold(check_program, dtype):
    hows = [((2, 3), (1, 1), (0, 0), (1, 1)), ((3, 2), (2, 1), (1, 1), (2, 1)), (2, 1, 1, 2)]
    functions = [lambda x, how=how: unfold(x, *how) for how in hows] + [lambda x, how=how: fold(unfold(x, *how), (8, 7), *how) for how in hows]
    functions += [lambda x: unfold(x[0], 2), lambda x: fold(unfold(x[0], 2), (8, 7), 2)]
    check_program(Many(functions), (torch.randn(2, 3, 8, 7).to(dtype),))
    batch = Dim("n", min=1, max=9)
    check_program(Many(functions[:6]), (torch.randn(2, 3, 8, 7).to(dtype),), dynamic_shapes=[({0: batch},)], calls=[((torch.randn(3, 3, 8, 7).to(dtype),), {})])
