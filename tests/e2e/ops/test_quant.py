"""Fake quantization: ranges of 8 bits, which become QuantizeLinear and DequantizeLinear, and others."""
import torch
from test_linalg import rand
from test_shape import Many

X, SCALES, ZEROS = rand(3, 4, 2), torch.tensor([0.011, 0.023, 0.0171, 0.3]), torch.tensor([0, 3, 2, 100], dtype=torch.int32)

# torch.export can't trace channels unless somebody tells the shapes of the results.
LIBRARY = torch.library.Library("aten", "IMPL", "Meta")
LIBRARY.impl("fake_quantize_per_channel_affine_cachemask", lambda x, *args: (torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)))


def test_fake_quantize(check_program):
    tensor, channel = torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine
    check_program(Many([lambda x, s, z: tensor(x, 0.013, 3, 0, 255), lambda x, s, z: tensor(x, 0.013, -3, -128, 127), lambda x, s, z: tensor(x, 0.013, 0, -127, 127), lambda x, s, z: tensor(x, 0.113, 5, 0, 15), lambda x, s, z: tensor(x, 0.0013, 7, -4096, 4095),
                        lambda x, s, z: tensor(x, s[0], z[1], 0, 255), lambda x, s, z: channel(x, s, z, 1, -128, 127), lambda x, s, z: channel(x.mT, s, z, 2, 0, 127), lambda x, s, z: channel(x, s, z.float() + 0.25, 1, -128, 127), lambda x, s, z: tensor(x.double(), 0.013, 3, 0, 255),
                        lambda x, s, z: torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(x, 0.005, 3, 0, 255)]), (X, SCALES, ZEROS))


def test_few_nodes(check_program):
    assert check_program(Many([lambda x: torch.fake_quantize_per_tensor_affine(x, 0.013, 3, 0, 255)]), (X,)).op_types == ["QuantizeLinear", "DequantizeLinear"]
