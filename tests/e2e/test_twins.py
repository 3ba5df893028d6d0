"""A program whose writes nobody observes converts to the model of its out-of-place twin, node for node: in-place code costs nothing."""
import hashlib

import onnx
import pytest
import torch
import torch.nn.functional as F

X = torch.arange(12.0).reshape(3, 4) / 4 - 1
Y = torch.arange(12.0).reshape(3, 4) % 5
TWINS = {}


def twin(other):
    """Decorates the out-of-place program; `other` is the in-place one."""
    def add(f):
        TWINS[f.__name__] = (other, f)
        return f
    return add


def _(x, y):
    z = x + y
    z.mul_(2)
    return z.relu_()


@twin(_)
def chain(x, y):
    return torch.relu((x + y) * 2)


def _(x, y):
    z = x * 2
    z += y
    z -= 1
    z /= 3
    return z


@twin(_)
def operators(x, y):
    return (x * 2 + y - 1) / 3


@twin(lambda x, y: F.relu(x + y, inplace=True))
def inplace_flag(x, y):
    return F.relu(x + y)


@twin(lambda x, y: F.hardtanh(F.silu(F.elu(x + y, inplace=True), inplace=True), 0.0, 6.0, inplace=True))
def activations(x, y):
    return F.hardtanh(F.silu(F.elu(x + y)), 0.0, 6.0)


@twin(lambda x, y: F.dropout(x * y, 0.5, training=False, inplace=True) + 1)
def dropout_in_eval(x, y):
    return x * y + 1


def _(x, y):
    scores = x @ y.t()
    scores.masked_fill_(scores > 0, float("-inf"))
    return scores.softmax(-1)


@twin(_)
def masked_scores(x, y):
    scores = x @ y.t()
    return scores.masked_fill(scores > 0, float("-inf")).softmax(-1)


@twin(lambda x, y: (x + 1).add_(y, alpha=3).clamp_(0, 2))
def alpha(x, y):
    return torch.add(x + 1, y, alpha=3).clamp(0, 2)


@twin(lambda x, y: (x + 1).addcmul_(x, y, value=2).lerp_(y, 0.5))
def ternary(x, y):
    return torch.addcmul(x + 1, x, y, value=2).lerp(y, 0.5)


def _(x, y):
    z = torch.empty_like(x)
    z.copy_(x + y)
    return z * 2


@twin(_)
def copied_whole(x, y):
    return (x + y) * 2


def _(x, y):
    z = torch.zeros(3, 4)
    torch.add(x, y, out=z)
    return z * 2


@twin(_)
def out(x, y):
    return (x + y) * 2


def _(x, y):
    z = torch.empty(3, 4)
    z[0] = x[0]
    z[1] = y[1]
    z[2] = x[2] * 2
    return z


@twin(_)
def rows(x, y):
    return torch.cat([x[0].unsqueeze(0), y[1].unsqueeze(0), (x[2] * 2).unsqueeze(0)], 0)


def _(x, y):
    z = torch.empty(3, 8)
    z[:, :4] = x
    z[:, 4:] = y
    return z


@twin(_)
def halves(x, y):
    return torch.cat([x, y], 1)


def _(x, y):
    z = x.clone()
    z[1:3].add_(1)
    z[0:1].mul_(2)
    return z


@twin(_)
def slices_in_turn(x, y):
    return torch.cat([x[0:1] * 2, x[1:3] + 1], 0)


def _(x, y):
    z = x.clone()
    a, b = z.chunk(2, 1)
    a.mul_(2)
    b.add_(1)
    return z


@twin(_)
def chunks(x, y):
    a, b = x.chunk(2, 1)
    return torch.cat([a * 2, b + 1], 1)


def _(x, y):
    a, b = (x + y).chunk(2, 1)
    a.sigmoid_()
    return a * b


@twin(_)
def gate(x, y):
    a, b = (x + y).chunk(2, 1)
    return torch.sigmoid(a) * b


def _(x, y):
    z = x + y
    v = z.view(-1)
    v.mul_(2)
    v.add_(1)
    return v


@twin(_)
def only_the_view_is_read(x, y):
    return (x + y).view(-1) * 2 + 1


def _(x, y):
    z = x + y
    z[0].fill_(7)
    return x * 2


@twin(_)
def dead_write(x, y):
    return x * 2


def _(x, y):
    z = x + y
    kept = z[0] * 2
    z.zero_()
    return kept


@twin(_)
def read_before(x, y):
    return (x + y)[0] * 2


def _(x, y):
    z = (x + y).t()
    z.neg_()
    z.abs_()
    return z


@twin(_)
def transposed(x, y):
    return (x + y).t().neg().abs()


def _(x, y):
    z = x + y
    z.t_()
    z.unsqueeze_(0)
    return z * 2


@twin(_)
def geometry(x, y):
    return (x + y).t().unsqueeze(0) * 2


def _(x, y):
    total = torch.zeros(4)
    for row in x.unbind(0):
        total += row
    return total * y


@twin(_)
def accumulate(x, y):
    a, b, c = x.unbind(0)
    return (torch.zeros(4) + a + b + c) * y


def _(x, y):
    hidden, steps = y[0], torch.empty(3, 4)
    for i in range(3):
        hidden = torch.tanh(hidden + x[i])
        steps[i] = hidden
    return steps


@twin(_)
def unrolled_recurrence(x, y):
    hidden, steps = y[0], []
    for i in range(3):
        hidden = torch.tanh(hidden + x[i])
        steps.append(hidden.unsqueeze(0))
    return torch.cat(steps, 0)


@twin(lambda x, y: (x + 1).index_put_((torch.tensor([0, 2]),), y[:2]))
def index_put(x, y):
    return (x + 1).index_put((torch.tensor([0, 2]),), y[:2])


@twin(lambda x, y: (x + 1).scatter_(0, torch.tensor([[0, 1, 2, 0]]), y))
def scatter(x, y):
    return (x + 1).scatter(0, torch.tensor([[0, 1, 2, 0]]), y)


@twin(lambda x, y: (x + 1).index_add_(0, torch.tensor([0, 0, 2]), y))
def index_add(x, y):
    return (x + 1).index_add(0, torch.tensor([0, 0, 2]), y)


@twin(lambda x, y: (x + 1).cumsum_(0).tril_())
def scans(x, y):
    return (x + 1).cumsum(0).tril()


@twin(lambda x, y: torch.zeros(3, 4).bernoulli_(0.5).mul_(0) + x)
def draws_that_are_read(x, y):
    return torch.bernoulli(torch.zeros(3, 4), p=0.5) * 0 + x


def _(x, y):
    with torch.no_grad():
        z = x + y
        z.mul_(2)
    return z + 1


@twin(_)
def no_grad(x, y):
    return (x + y) * 2 + 1


def _(x, y):
    a, b = x + 1, y + 1
    torch._foreach_mul_([a, b], 2)
    return a - b


@twin(_)
def foreach(x, y):
    return (x + 1) * 2 - (y + 1) * 2


def _(x, y):
    z = x + y
    d = z.detach()
    d.add_(1)
    return d


@twin(_)
def detached(x, y):
    return x + y + 1


def _(x, y):
    z = x.clone()
    z += y
    w = z.contiguous()
    w *= 2
    return w


@twin(_)
def contiguous_is_itself(x, y):
    return (x + y) * 2


def _(x, y):
    residual = x
    h = (x @ y.t()) @ y
    h.add_(residual)
    return F.layer_norm(h, (4,)).mul_(2)


@twin(_)
def residual(x, y):
    return F.layer_norm((x @ y.t()) @ y + x, (4,)) * 2


def shape_of(path):
    """The model without names: each output as a hash of what it is computed from, and how many nodes there are."""
    graph = onnx.load(path).graph
    digest = {value.name: f"input {i}" for i, value in enumerate(graph.input)}
    digest |= {t.name: f"{t.data_type} {list(t.dims)} {onnx.numpy_helper.to_array(t).tobytes()!r}" for t in graph.initializer}
    for node in graph.node:
        for attribute in node.attribute:
            attribute.t.name = ""
        attributes = sorted(a.SerializeToString() for a in node.attribute)
        text = repr((node.op_type, attributes, [digest.get(name, "") for name in node.input]))
        for i, name in enumerate(node.output):
            digest[name] = hashlib.sha256(f"{i} {text}".encode()).hexdigest()
    return [digest[value.name] for value in graph.output], len(graph.node), [node.op_type for node in graph.node]


@pytest.mark.parametrize("name", TWINS)
def test_twin(tmp_path, run, name):
    models = []
    for kind, f in zip(("in", "out"), TWINS[name]):
        module = type("M", (torch.nn.Module,), {"forward": lambda self, x, y, f=f: f(x, y)})()
        torch.export.save(torch.export.export(module, (X, Y)), tmp_path / f"{kind}.pt2")
        done = run("convert", tmp_path / f"{kind}.pt2", "-o", tmp_path / f"{kind}.onnx")
        assert done.code == 0, done.err
        models.append(shape_of(tmp_path / f"{kind}.onnx"))
    assert models[0][2] == models[1][2]
    assert models[0] == models[1]


def test_there_are_thirty():
    assert len(TWINS) >= 30
