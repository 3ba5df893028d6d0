"""The contract for inputs, outputs and dynamic sizes (what a converted model promises), on small programs."""
import pytest
import torch
from test_state import Module
from torch.export import Dim


def test_inputs_have_the_names_of_forward(check_program):
    class Named(torch.nn.Module):
        def forward(self, Image, scale, *, extra=None):
            return Image * scale + extra
    done = check_program(Named(), (torch.randn(2, 3), torch.randn(3)), {"extra": torch.randn(3)})
    assert done.session.inputs == ["Image", "scale", "extra"]


def test_unused_inputs_stay(check_program):
    done = check_program(Module(lambda self, x, y: x + 1), (torch.randn(2), torch.randn(3)))
    assert len(done.session.inputs) == 2


def test_nested_inputs_and_outputs(check_program):
    def forward(self, pair, table):
        a, b = pair
        return {"sum": a + b, "rest": [table["c"] * 2, (a - b,)]}
    check_program(Module(forward), ((torch.randn(2), torch.randn(2)), {"c": torch.randn(3)}))


def test_constant_outputs(check_program):
    check_program(Module(lambda self, x: (x + 1, 3, None, 2.5, True, "text", x.shape[0])), (torch.randn(2, 3),))


def test_output_twice_input_and_weight(check_program):
    def forward(self, x):
        y = x * 2
        return y, y, x, self.w
    done = check_program(Module(forward, w=torch.randn(2)), (torch.randn(3),))
    assert len(set(done.session.outputs)) == 4


def test_python_numbers_stay_dynamic(check_program):
    def forward(self, x, n):
        return x[:n] * n
    done = check_program(Module(forward), (torch.randn(6, 2), 3), dynamic_shapes={"args": ({}, Dim.DYNAMIC)}, calls=[((torch.randn(6, 2), 5), None)])
    assert len(done.session.inputs) == 2


def test_dynamic_batch(check_program):
    calls = [((torch.randn(n, 4),), None) for n in [1, 2, 7]]
    done = check_program(Module(lambda self, x: x.view(-1, 2).sum(1) + x.shape[0]), (torch.randn(3, 4),), dynamic_shapes={"args": ({0: Dim("batch")},)}, calls=calls)
    assert done.model.graph.input[0].type.tensor_type.shape.dim[0].dim_param


def test_sizes_zero_and_one(check_program):
    def forward(self, x, y):
        return (x + y).cumsum(0), torch.cat([x, y])
    calls = [((torch.randn(n, 2), torch.randn(n, 2)), None) for n in [1, 0]]
    check_program(Module(forward), (torch.randn(3, 2), torch.randn(3, 2)), dynamic_shapes={"args": ({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC})}, calls=calls)


def test_derived_dimension(check_program):
    batch = Dim("batch", min=1, max=64)
    calls = [((torch.randn(n, 2), torch.randn(2 * n, 2)), None) for n in [1, 5]]
    check_program(Module(lambda self, x, y: torch.cat([x, x]) + y), (torch.randn(3, 2), torch.randn(6, 2)),
                  dynamic_shapes={"args": ({0: batch}, {0: 2 * batch})}, calls=calls)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.int64, torch.uint8, torch.bool])
def test_dtypes(check_program, dtype):
    x = torch.tensor([0, 1, 1, 3, 2]).to(dtype)
    check_program(Module(lambda self, x: (x + x, x == x.flip(0), x.to(torch.float32) / 2, x.sum())), (x,))


def test_slice_assignment(check_program):
    def forward(self, x, v):
        y = x.clone()
        y[1:, ::2] = v
        y[0].zero_()
        y.t()[2] += 1
        return y
    check_program(Module(forward), (torch.randn(4, 5), torch.randn(3, 3)))


def test_branches(check_program):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))
    check_program(Module(forward), (torch.ones(3),), calls=[((-torch.ones(3),), None)])
