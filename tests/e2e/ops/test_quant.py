"""Quantized programs: what PT2E leaves in them, by tensor, channel, token and group; weights of 8 and 4 bits; products of integers."""
import pytest
import torch
from test_linalg import rand
from test_shape import Many
from torch.ao.quantization.fx._decomposed import quantized_decomposed_lib  # noqa: F401  (registers the operators)
from torch.export import Dim
from torch.nn import functional as F

q = torch.ops.quantized_decomposed
I8 = (-128, 127, torch.int8)
X = rand(3, 8)
ROWS = {"inputs": ({0: Dim("rows")},)}
OTHER = [((rand(1, 8),), None)]
CHANNELS, ZEROS = torch.arange(1, 9) * 0.02, torch.arange(8)


def there_and_back(x, scale, zero, low, high, dtype):
    return q.dequantize_per_tensor(q.quantize_per_tensor(x, scale, zero, low, high, dtype), scale, zero, low, high, dtype)


def dynamic(x):
    scale, zero = q.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8)
    return q.dequantize_per_tensor.tensor(q.quantize_per_tensor.tensor(x, scale, zero, *I8), scale, zero, *I8)


def by_token(choose):
    def function(x):
        scale, zero = choose(x, torch.int8)
        values = q.quantize_per_token(x, scale, zero, *I8)
        return values, q.dequantize_per_token(values, scale, zero, *I8, torch.float32)
    return function


def by_group(x):
    scale, zero = torch.full((3, 2), 0.3), torch.ones(3, 2, dtype=torch.int64)
    return q.dequantize_per_channel_group(q.quantize_per_channel_group(x, scale, zero, -8, 7, torch.int8, 4), scale, zero, -8, 7, torch.int8, 4, torch.float32)


FUNCTIONS = [
    lambda x: there_and_back(x, 0.05, 3, *I8), lambda x: there_and_back(x, 0.05, 100, 0, 127, torch.uint8), lambda x: there_and_back(x, 0.05, 0, -2**31, 2**31 - 1, torch.int32),
    lambda x: there_and_back(x, 0.0005, 0, -2**15, 2**15 - 1, torch.int16), lambda x: q.quantize_per_tensor(x, 0.05, -3, -7, 7, torch.int8),
    lambda x: q.quantize_per_tensor.tensor(x, torch.tensor(0.05), torch.tensor(3), *I8), lambda x: q.choose_qparams.tensor(x, -128, 127, 1e-5, torch.int8),
    lambda x: q.choose_qparams_symmetric.tensor(x, -127, 127, 1e-5, torch.int8), dynamic, by_token(q.choose_qparams_per_token), by_token(q.choose_qparams_per_token_asymmetric),
    lambda x: q.dequantize_per_channel(q.quantize_per_channel(x, CHANNELS, ZEROS, -1, *I8), CHANNELS, ZEROS, -1, *I8),
]


@pytest.mark.parametrize("opset", [18, 20, 23, 28])
def test_quantized(check_program, opset):
    check_program(Many(FUNCTIONS), (X,), dynamic_shapes=ROWS, calls=OTHER, opset=opset)


def test_groups(check_program):
    check_program(Many([by_group, lambda x: (torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127), torch.fake_quantize_per_channel_affine(x, CHANNELS, ZEROS.int(), 1, -128, 127))]), (X,))


class Bits8(torch.nn.Module):
    def __init__(self):
        super().__init__()
        weight = rand(16, 8)
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("weight", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype) * self.scale), F.linear(x, self.weight.to(x.dtype)) * self.scale[:, 0], torch._weight_int8pack_mm(x, self.weight, self.scale[:, 0])


class Bits4(torch.nn.Module):
    """Two numbers a byte, and groups of four columns."""

    def __init__(self):
        super().__init__()
        self.register_buffer("packed", torch.randint(0, 256, (16, 4), dtype=torch.uint8))
        self.register_buffer("plain", torch.randint(-8, 8, (16, 8), dtype=torch.int8))
        self.register_buffer("scale", rand(16, 2).abs())
        self.register_buffer("zero", torch.randint(-8, 8, (16, 2)))

    def forward(self, x):
        weight = torch.stack([self.packed & 15, self.packed >> 4], -1).reshape(16, 2, 4).to(x.dtype)
        weight = ((weight - self.zero[..., None].to(x.dtype)) * self.scale[..., None]).reshape(16, 8)
        return F.linear(x, weight), F.linear(x, q.dequantize_per_channel_group(self.plain, self.scale, self.zero, -8, 7, torch.int8, 4, torch.float32))


@pytest.mark.parametrize("module", [Bits8, Bits4])
@pytest.mark.parametrize("opset", [20, 21, 28])
def test_weights_only(check_program, module, opset):
    checked = check_program(module(), (X,), dynamic_shapes=({0: Dim("rows")},), calls=OTHER, opset=opset)
    if module is Bits4 and opset == 21:
        assert [a.i for node in checked.model.graph.node if node.op_type == "DequantizeLinear" for a in node.attribute if a.name == "block_size"] == [4]


def test_products_of_integers(check_program):
    check_program(Many([torch._int_mm]), (torch.randint(-128, 127, (20, 32), dtype=torch.int8), torch.randint(-128, 127, (32, 16), dtype=torch.int8)))
