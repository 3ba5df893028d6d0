"""Ops that alias without saying so, that change a tensor's geometry, and out= of every kind: what a later write reaches."""
import pytest
import torch

X = torch.arange(12.0).reshape(3, 4) - 3


class Program(torch.nn.Module):
    def __init__(self, body, **buffers):
        super().__init__()
        self.body = body
        for name, value in buffers.items():
            self.register_buffer(name, value.clone())

    def forward(self, *args):
        return self.body(self, *args)


def einsum_permutes(self, x):
    y = x.clone()
    z = torch.einsum("ij->ji", y)
    z.mul_(2)
    return y, z


def einsum_sums(self, x):
    y = x.clone()
    z = torch.einsum("ij->i", y)
    z.mul_(2)
    return y, z


def cartesian_prod_of_one(self, x):
    y = x[0].clone()
    z = torch.cartesian_prod(y)
    z.add_(1)
    return y, z


def meshgrids(self, x):
    y, z = x[0].clone(), x[:, 0].clone()
    a, b = torch.meshgrid(y, z, indexing="xy")
    y.add_(1)
    z.mul_(2)
    return a + b


def broadcasts(self, x):
    y = x[0].clone()
    a, b = torch.broadcast_tensors(y, x)
    y.zero_()
    return a + b


def at_least(self, x):
    y = x.sum()
    a, b = torch.atleast_1d(y), torch.atleast_3d(y)
    a.add_(1)
    b.mul_(3)
    return y, a, b


def unsafe_split(self, x):
    y = x.clone()
    a, b = torch.unsafe_chunk(y, 2, 1)
    a.zero_()
    return y, b


def geometry(self, x):
    y = x.clone()
    v = y[0]
    y.t_()
    y.unsqueeze_(0)
    y.squeeze_(0)
    y.swapaxes_(0, 1)
    y.add_(1)
    y.transpose_(0, 1).mul_(2)
    return y, v


def set_source(self, x):
    y, z = x.clone(), x * 2
    y.set_(z)
    y.add_(1)
    return y, z


def set_slice_of_a_source(self, x):
    y, z = x.clone(), x * 2
    y.set_(z, 1, (2, 3), (4, 1))
    y.add_(1)
    return y, z


def resize_smaller(self, x):
    y = x.clone()
    v = y[0]
    y.resize_(2, 3)
    y.mul_(2)
    return y, v


def resize_same(self, x):
    y = x.clone().t()
    y.resize_(4, 3)
    y.add_(1)
    return y


def resize_as(self, x):
    y = x.clone()
    y.resize_as_(x[:2, :2])
    return y + 1


def out_fits(self, x):
    y = torch.empty_like(x)
    v = y[1]
    torch.add(x, 1, out=y)
    return y, v


def out_into_a_view(self, x):
    y = x.clone()
    torch.add(x[0], x[1], out=y[2])
    return y


def out_of_another_size(self, x):
    y = torch.empty(0)
    torch.matmul(x, x.t(), out=y)
    return y


def out_two(self, x):
    values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.max(x, 1, out=(values, places))
    return values, places


def out_casts(self, x):
    y = torch.empty(3, 4, dtype=torch.float64)
    torch.add(x, x, out=y)
    return y


def foreach(self, x):
    a, b = x.clone(), x[0].clone()
    torch._foreach_mul_([a, b], 2)
    torch._foreach_add_([a, b], [x, x[1]], alpha=3)
    torch._foreach_addcmul_([a, b], [x, x[0]], [x, x[1]], [1.0, 2.0])
    torch._foreach_sqrt_([a.abs_(), b.abs_()])
    torch._foreach_copy_([self.state], [a])
    return a, b


def foreach_on_views(self, x):
    y = x.clone()
    torch._foreach_add_(list(y.unbind(0)), [1.0, 2.0, 3.0])
    return y


def expand_fill(self, x):
    y = x[0].clone()
    y.expand(3, 4)[1].fill_(5)
    y.expand(3, 4)[:, 1].zero_()
    return y


def embedding_renorm(self, x):
    return torch.nn.functional.embedding(torch.tensor([0, 2, 2]), self.state, max_norm=2.0)


def batch_norm_statistics_are_views(self, x):
    mean, var = self.stats[0], self.stats[1]
    return torch.nn.functional.batch_norm(x, mean, var, training=True)


def running_instance_norm(self, x):
    return torch.nn.functional.instance_norm(x.reshape(1, 3, 4) * 2, self.stats[0, :3], self.stats[1, :3], use_input_stats=True)


def rrelu_in_place(self, x):
    y = x.clone()
    torch.nn.functional.rrelu(y, training=False, inplace=True)
    return y


STATES = dict(state=X * 0 + 2, stats=torch.stack([torch.zeros(4), torch.ones(4)]))
PROGRAMS = [einsum_permutes, einsum_sums, cartesian_prod_of_one, meshgrids, broadcasts, at_least, unsafe_split, geometry, set_source, set_slice_of_a_source, resize_smaller,
            resize_same, resize_as, out_fits, out_into_a_view, out_of_another_size, out_two, out_casts, foreach, foreach_on_views, expand_fill, embedding_renorm,
            batch_norm_statistics_are_views, running_instance_norm, rrelu_in_place]


@pytest.mark.parametrize("body", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore")
def test_program(check_program, body):
    check_program(Program(body, **STATES), (X,), calls=[((X * -0.5,), None)])


@pytest.mark.filterwarnings("ignore")
def test_a_buffer_that_changes_its_shape_is_refused_unless_dropped(tmp_path, run):
    def body(self, x):
        torch.add(x, 1, out=self.small)
        return self.small * 2
    torch.export.save(torch.export.export(Program(body, small=torch.zeros(2)), (X,)), tmp_path / "m.pt2")
    done = run("convert", tmp_path / "m.pt2", "-o", tmp_path / "m.onnx")
    assert done.code == 1 and "E0208" in done.err
    assert run("convert", tmp_path / "m.pt2", "-o", tmp_path / "m.onnx", "--state", "drop").code == 0
