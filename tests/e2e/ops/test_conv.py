"""Convolutions and pools, over the numbers that their windows are made of."""
import pytest
import torch
from test_linalg import rand
from test_shape import Many
from torch.nn import functional as F

CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVERAGE = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
ADAPTIVE_MAX = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
ADAPTIVE_AVERAGE = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
UNPOOL = {1: F.max_unpool1d, 2: F.max_unpool2d, 3: F.max_unpool3d}
SIZES = (7, 8, 6)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64], ids=str)
def test_conv(check_program, dims, dtype):
    if dtype in (torch.float16, torch.int64) and dims > 1:
        pytest.skip("the dtype is covered in one dim")
    x, w, b = rand(2, 4, *SIZES[:dims], dtype=dtype), rand(6, 2, *(3, 2, 3)[:dims], dtype=dtype), rand(6, dtype=dtype)
    conv, transposed = CONV[dims], TRANSPOSED[dims]
    functions = [lambda x, w, b: conv(x, w, b, groups=2), lambda x, w, b: conv(x, w, None, stride=2, padding=1, groups=2), lambda x, w, b: conv(x[:, :2], w, b, padding=2, dilation=2),
                 lambda x, w, b: conv(x, w, b, padding="same", groups=2), lambda x, w, b: conv(x, w, b, padding="valid", groups=2), lambda x, w, b: conv(x[0], w, b, groups=2)]
    if dtype.is_floating_point:
        functions += [lambda x, w, b: transposed(x, w[:4], b[:4], groups=2), lambda x, w, b: transposed(x, w[:4], None, stride=2, padding=1, output_padding=1),
                      lambda x, w, b: transposed(x[0], w[:4], b[:2], stride=3, dilation=2, output_padding=1)]
    check_program(Many(functions), (x, w, b), rtol=1e-10 if dtype == torch.float64 else 1e-3)


def test_conv_tbc(check_program):
    check_program(Many([lambda x, w, b: torch.conv_tbc(x, w, b, 1)]), (rand(5, 2, 3), rand(3, 3, 4), rand(4)))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64], ids=str)
def test_pools(check_program, dims, dtype):
    if dtype == torch.float16 and dims > 1:
        pytest.skip("the dtype is covered in one dim")
    functions, pool, average = [], MAX[dims], AVERAGE[dims]
    for kernel, stride, padding, ceil in [(2, None, 0, False), (3, 2, 1, False), (3, 2, 0, True), (3, 4, 1, True), (2, 3, 1, True)]:
        functions.append(lambda x, a=(kernel, stride, padding, 1, ceil): pool(x, *a, return_indices=True))
        if dtype != torch.int64 or dims == 2:
            functions += [lambda x, a=(kernel, stride, padding, ceil, count): average(x, *a) for count in (False, True)]
    if dtype != torch.int64:
        functions += [lambda x: pool(x, 3, 1, 1, 2), lambda x: average(x[0], 2)]
    if dims > 1:
        functions += [lambda x: average(x, 2, 3, 1, True, True, 3), lambda x: pool(x[0], (2, 3, 2)[:dims], (3, 2, 1)[:dims], (1, 0, 1)[:dims])]
    if dtype == torch.int64 and dims == 3:
        functions = functions[:3]
    check_program(Many(functions), (rand(2, 3, *SIZES[:dims]).mul(100).to(dtype),))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_adaptive(check_program, dims, dtype):
    functions = []
    for out in [1, 2, 3, 5, (1, 2, 1)[:dims], (4, None, 5)[:dims]]:
        if dims > 1 or isinstance(out, int):
            functions += [lambda x, out=out: ADAPTIVE_AVERAGE[dims](x, out), lambda x, out=out: ADAPTIVE_MAX[dims](x, out, return_indices=True)]
    functions += [lambda x: ADAPTIVE_AVERAGE[dims](x[0], 3), lambda x: ADAPTIVE_MAX[dims](x[0], 3)]
    check_program(Many(functions), (rand(2, 3, *SIZES[:dims], dtype=dtype),))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpool(check_program, dims):
    def there_and_back(x, kernel, stride):
        y, indices = MAX[dims](x, kernel, stride, return_indices=True)
        return UNPOOL[dims](y, indices, kernel, stride, output_size=x.shape[-dims:])
    check_program(Many([lambda x: there_and_back(x, 2, 2), lambda x: there_and_back(x[0], 3, 3)]), (rand(2, 3, *SIZES[:dims]),))


def test_lp_and_fractional(check_program):
    samples = torch.rand(2, 3, 2)
    check_program(Many([lambda x: F.lp_pool1d(x[0], 2.0, 3, 2), lambda x: F.lp_pool2d(x, 3.0, 2, ceil_mode=True), lambda x: F.local_response_norm(x, 2), lambda x: F.interpolate(x, (3, 5), mode="area"),
                        lambda x: F.fractional_max_pool2d(x, (2, 3), (4, 5), _random_samples=samples, return_indices=True), lambda x: F.fractional_max_pool2d(x, 2, (1, 3), _random_samples=samples),
                        lambda x: F.fractional_max_pool3d(x[:, None].expand(2, 3, 3, 7, 8), 2, (1, 3, 5), _random_samples=rand(2, 3, 3) / 4 + 0.5, return_indices=True)]), (rand(2, 3, 7, 8).abs(),))


def test_dynamic(check_program):
    size = torch.export.Dim.DYNAMIC
    w, b = rand(4, 3, 3, 3), rand(4)
    functions = [lambda x: F.conv2d(x, w, b, stride=2, padding=1), lambda x: F.conv2d(x, w, b, padding="same"), lambda x: F.conv_transpose2d(x, w[:3], b[:3], stride=2), lambda x: F.max_pool2d(x, 3, 2, 1),
                 lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True, return_indices=True), lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), lambda x: F.avg_pool2d(x, 3, 2, 1, True, True, 5), lambda x: F.adaptive_avg_pool2d(x, 1),
                 lambda x: F.adaptive_avg_pool2d(x, (3, None)), lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True), lambda x: F.conv2d(x.double(), w.double()), lambda x: F.max_pool2d(x.mul(9).int().long(), 2)]
    check_program(Many(functions), (rand(2, 3, 11, 8),), dynamic_shapes={"inputs": ({0: size, 2: size, 3: size},)}, calls=[((rand(1, 3, 9, 14),), None), ((rand(3, 3, 6, 7),), None)])


def test_few_nodes(check_program):
    def nodes(function, *args):
        return check_program(Many([function]), args).op_types
    x = rand(2, 3, 8, 8)
    assert nodes(lambda x, w: F.conv2d(x, w, padding=1), x, rand(4, 3, 3, 3)) == ["Conv"]
    assert nodes(lambda x: F.max_pool2d(x, 3, 2, 1), x) == ["MaxPool"]
    assert nodes(lambda x: F.adaptive_avg_pool2d(x, 1), x) == ["GlobalAveragePool"]
    assert nodes(lambda x: F.adaptive_avg_pool2d(x, 4), x) == ["AveragePool"]
