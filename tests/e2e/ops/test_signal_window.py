"""Windows of signal processing: every overload, odd and even lengths, and the lengths 0 and 1."""
import pytest
import torch
from test_shape import Many

ops = torch.ops.aten


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 256])
def test_windows(check_program, n, dtype):
    k = {"dtype": dtype}
    windows = [lambda x: ops.hann_window(n, **k), lambda x: ops.hann_window(n, False, **k),
               lambda x: ops.hamming_window(n, **k), lambda x: ops.hamming_window(n, False, **k), lambda x: ops.hamming_window(n, True, 0.6, **k),
               lambda x: ops.hamming_window(n, False, 0.6, 0.3, **k), lambda x: ops.blackman_window(n, **k), lambda x: ops.blackman_window(n, False, **k),
               lambda x: ops.bartlett_window(n, **k), lambda x: ops.bartlett_window(n, False, **k),
               lambda x: ops.kaiser_window(n, **k), lambda x: ops.kaiser_window(n, False, **k), lambda x: ops.kaiser_window(n, True, 5.0, **k)]
    check_program(Many(windows), (torch.ones(1),), rtol=1e-5 if dtype.itemsize > 2 else 1e-2, atol=1e-6)
