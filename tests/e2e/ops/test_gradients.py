"""Gradients of activations and views as operators of their own, and torch.gradient."""
import pytest
import torch
from test_linalg import rand
from test_shape import Many

ops = torch.ops.aten
G, X, Y = rand(3, 4), torch.tensor([-20.0, -3, -1, -0.5, -0.0, 0.3, 0.5, 1, 3, 6.5, 25, float("nan")]).reshape(3, 4), rand(3, 4).sigmoid()
BY_INPUT = [ops.silu_backward, ops.mish_backward, ops.gelu_backward, lambda g, x: ops.gelu_backward(g, x, approximate="tanh"), lambda g, x: ops.elu_backward(g, 1.2, 1.5, 0.7, False, x), lambda g, x: ops.elu_backward(g, 1, 1, 1, True, x),
            lambda g, x: ops.leaky_relu_backward(g, x, 0.1, False), lambda g, x: ops.hardtanh_backward(g, x, -0.5, 0.5), ops.hardsigmoid_backward, ops.hardswish_backward, lambda g, x: ops.hardshrink_backward(g, x, 0.5),
            lambda g, x: ops.softshrink_backward(g, x, 0.5), lambda g, x: ops.softplus_backward(g, x, 2, 20), lambda g, x: ops.threshold_backward(g, x, 0.5), lambda g, x: ops.glu_backward(g[:, :2], x, -1), lambda g, x: ops.logit_backward(g, x),
            lambda g, x: ops.logit_backward(g, x, 0.3), lambda g, x: ops.log_sigmoid_backward(g, x, (-x.abs()).exp()), lambda g, x: ops.rrelu_with_noise_backward(g, x, x * 2, 0.1, 0.3, True, False), lambda g, x: ops.rrelu_with_noise_backward(g, x, x * 2, 0.1, 0.3, False, False)]
BY_RESULT = [ops.sigmoid_backward, ops.tanh_backward, lambda g, y: ops._softmax_backward_data(g, y, 1, torch.float32), lambda g, y: ops._softmax_backward_data(g, y, -2, torch.float32), lambda g, y: ops._log_softmax_backward_data(g, y.log(), 0, torch.float32),
             lambda g, y: ops._softmax_backward_data(g[0, 0], y[0, 0], 0, torch.float32), lambda g, y: ops._softmax_backward_data(g[:0], y[:0], 0, torch.float32)]
VIEWS = [lambda g: ops.select_backward(g, [3, 5, 4], 1, 2), lambda g: ops.select_backward(g, [3, 4, 5], -1, -1), lambda g: ops.slice_backward(g, [3, 11], 1, 2, 9, 2), lambda g: ops.slice_backward(g, [9, 4], 0, -5, 9, 2), lambda g: ops.trace_backward(g[0, 0], [3, 4]),
         lambda g: ops.index_select_backward(g, [5, 4], 0, torch.tensor([1, 4, 1])), lambda g: ops.value_selecting_reduction_backward(g, 1, torch.tensor([[0, 1, 1, 0]] * 3), [3, 2, 4], False),
         lambda g: ops.value_selecting_reduction_backward(g[:, :1], 1, torch.tensor([[0], [3], [1]]), [3, 4], True)]


def test_activations(check_program):
    check_program(Many(BY_INPUT), (G, X))
    check_program(Many(BY_RESULT), (G, Y))
    check_program(Many(BY_INPUT[:-2]), (G.half(), X.half()))


def test_views(check_program):
    check_program(Many(VIEWS), (G,))


TIMES = torch.tensor([0.0, 1, 3, 4.5])
DIFFERENCES = [lambda x: torch.gradient(x), lambda x: torch.gradient(x, edge_order=2), lambda x: torch.gradient(x, spacing=0.5, dim=1), lambda x: torch.gradient(x, spacing=(0.5, 2.0)), lambda x: torch.gradient(x, spacing=2.0, dim=(1, 0), edge_order=2),
               lambda x: torch.gradient(x, spacing=(TIMES[:3], TIMES), edge_order=2), lambda x: torch.gradient(x, spacing=(TIMES,), dim=1), lambda x: torch.gradient(x.long()), lambda x: torch.gradient(x.double()[:, :2], dim=-1), lambda x: torch.gradient(x[0]),
               lambda x: torch.gradient(x, dim=(-1,))]


def test_gradient(check_program):
    check_program(Many(DIFFERENCES), (G,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], ids=str)
def test_angle(check_program, dtype):
    check_program(Many([torch.angle]), (torch.tensor([-2.0, 0, 3, float("inf"), float("nan")] if dtype == torch.float32 else [-2, 0, 3]).to(dtype),))
