"""Programs that change state: every changed name comes out, and feeding it back steps the model as PyTorch steps the module."""
import onnx
import pytest
import torch
from torch import nn


class Module(nn.Module):
    """A module made of a function and buffers: Module(f, a=tensor) calls f(self, *args)."""

    def __init__(self, function, **buffers):
        super().__init__()
        self.function = function
        for name, value in buffers.items():
            self.register_buffer(name, value)

    def forward(self, *args):
        return self.function(self, *args)


class TwoOnOneStorage(nn.Module):
    """Two buffers that are views of one tensor, and weights beside them."""

    def __init__(self):
        super().__init__()
        cache = torch.zeros(4, 6)
        self.register_buffer("cache", cache)
        self.register_buffer("first_row", cache[0])
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        self.linear = nn.Linear(6, 60)

    def forward(self, x):
        y = torch.tanh(self.linear(x)[:, :6] + self.first_row)
        self.cache[1:].add_(y.sum(0))       # seen by neither row 0 nor first_row
        self.first_row.mul_(0.5).add_(y[0])  # seen through cache
        self.step += 1
        return y + self.cache.sum(), self.cache[0] * self.step


EIGHT = [((torch.randn(n, 6, generator=torch.Generator().manual_seed(n)),), None) for n in [2, 1, 5, 3, 4, 2, 7]]


@pytest.mark.parametrize("data", ["never", "always", "in-place"])
def test_eight_steps(check_program, data):
    batch = torch.export.Dim("batch")
    done = check_program(TwoOnOneStorage(), (torch.randn(3, 6),), dynamic_shapes={"x": {0: batch}}, calls=EIGHT, options=["--external-data", data])
    assert {"cache_next", "first_row_next", "step_next"} <= set(done.session.outputs)
    assert set(done.session.state) == {"cache", "step"}
    external = [tensor.name for tensor in done.model.graph.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]
    assert ("linear.weight" in external) == (data != "never")


def test_required_inputs(check_program):
    done = check_program(TwoOnOneStorage(), (torch.randn(3, 6),), calls=[((torch.randn(3, 6),), None)] * 2, options=["--state", "inputs"])
    assert not done.session.state and {"x", "cache", "step"} == set(done.session.inputs)


def test_dropped(check_program):
    done = check_program(TwoOnOneStorage(), (torch.randn(3, 6),), options=["--state", "drop"])
    assert len(done.session.outputs) == 2 and not done.session.state and "warning" in done.run.err


def test_unchanged_state_is_not_listed(check_program):
    module = Module(lambda self, x: x + self.a + self.b.add_(1), a=torch.ones(3), b=torch.zeros(3))
    done = check_program(module, (torch.randn(3),))
    assert done.session.state == ["b"] and done.session.outputs[1:] == ["b_next"]


def test_changed_input(check_program):
    def forward(self, x, y):
        x.mul_(2)
        y[0] = x.sum()
        return x + y
    done = check_program(Module(forward), (torch.randn(3), torch.randn(2, 3)))
    assert len(done.session.outputs) == 3


def test_returned_buffer(check_program):
    def forward(self, x):
        self.n.add_(x)
        return self.n, self.n.view(3, 1)
    check_program(Module(forward, n=torch.zeros(3)), (torch.randn(3),), calls=[((torch.ones(3),), None)])


def test_write_through_two_views(check_program):
    def forward(self, x):
        flat, row = self.m.view(-1), self.m[1]
        flat[2:5] = x
        row.mul_(10)
        return flat * 1, self.m.t().contiguous()
    check_program(Module(forward, m=torch.arange(6.).view(2, 3)), (torch.randn(3),), calls=[((torch.ones(3),), None)] * 2)


def test_write_after_last_read_comes_out(check_program):
    def forward(self, x):
        y = x + self.b
        self.b.copy_(y)
        return y
    check_program(Module(forward, b=torch.ones(4)), (torch.randn(4),), calls=[((torch.randn(4),), None)] * 3)


def test_batch_norm_in_training(check_program):
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(inplace=True)).train()
    done = check_program(module, (torch.randn(4, 2, 6, 6),), calls=[((torch.randn(4, 2, 6, 6),), None)] * 3)
    assert {"1.running_mean_next", "1.running_var_next", "1.num_batches_tracked_next"} == set(done.session.outputs[1:])
    assert "training" in done.run.err


def test_kv_cache(check_program):
    class Cache(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(1, 2, 8, 4))

        def forward(self, key, position):
            self.keys.index_copy_(2, position, key)
            return self.keys.transpose(1, 2).sum(-1)
    calls = [((torch.randn(1, 2, 1, 4), torch.tensor([i])), None) for i in range(1, 5)]
    check_program(Cache(), (torch.randn(1, 2, 1, 4), torch.tensor([0])), calls=calls)
