"""functionalize and decompose: what they write loads in PyTorch, holds no write, and answers as the program does in eager mode.

PT2ONNX_REWRITTEN_PROGRAMS: how many random programs (default 8).
"""
import copy
import os

import numpy as np
import pytest
import random_programs
import rewriting
import torch
from harness import clone, difference, named_state, to_numpy
from test_state import TwoOnOneStorage
from torch.utils import _pytree as pytree

COMMANDS = ["functionalize", "decompose"]
Dim = torch.export.Dim


def check_rewrite(run, folder, command, module, args, *, calls=(), dynamic_shapes=None, rtol=1e-3, atol=1e-5, export=torch.export.export, **_):
    """Runs the written program and eager mode side by side, call after call: outputs, changed inputs, changed state."""
    source, target = folder / "model.pt2", folder / f"{command}.pt2"
    torch.export.save(export(copy.deepcopy(module), clone(args), dynamic_shapes=dynamic_shapes), source)
    done = run(command, source, "-o", target)
    assert done.code == 0, done.err
    program = rewriting.load(target)
    assert not rewriting.writing_ops(program)
    rewritten, eager = program.module(), copy.deepcopy(module)
    for call, _ in [(args, {}), (args, {}), *calls]:
        rewritten_args, eager_args = clone(call), clone(call)
        with torch.no_grad():
            got, want = rewritten(*rewritten_args), eager(*eager_args)
        pairs = list(zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True)) + list(zip(rewritten_args, eager_args))
        state = named_state(rewritten)
        pairs += [(state[name], value) for name, value in named_state(eager).items()]
        for number, (a, b) in enumerate(pairs):
            wrong = difference(to_numpy(a), to_numpy(b), rtol, atol)
            assert not wrong, f"value {number}: {wrong}"
    return program


@pytest.mark.parametrize("command", COMMANDS)
def test_state(run, tmp_path, command):
    program = check_rewrite(run, tmp_path, command, TwoOnOneStorage(), (torch.randn(3, 6),))
    assert set(program.graph_signature.buffers_to_mutate.values()) <= set(program.graph_signature.buffers)


@pytest.mark.parametrize("command", COMMANDS)
def test_training_batch_norm(run, tmp_path, command):
    module = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU(inplace=True)).train()
    check_rewrite(run, tmp_path, command, module, (torch.randn(4, 2, 6, 6),))


class Written(torch.nn.Module):
    """Inputs written and returned, one copied into another, state swapped, and a buffer that no other covers."""

    def __init__(self):
        super().__init__()
        whole = torch.arange(8.0)
        self.register_buffer("head", whole[:5])
        self.register_buffer("tail", whole[3:])
        self.register_buffer("hidden", torch.zeros(2, 3), persistent=False)
        self.weight = torch.nn.Parameter(torch.randn(3, 2).t())

    def forward(self, input, other):  # noqa: A002
        old = self.hidden.clone()
        self.hidden.copy_(input)
        input.add_(1)
        other.copy_(input.view(-1)[:2])
        self.head[1:4].mul_(2)
        view = input.t()
        view[0] = 7
        return old, input, self.tail + 0, view.reshape(-1), self.weight.view(2, 3) @ view


class Sizes(torch.nn.Module):
    """Sizes as arguments: computed, derived, read out of a tensor."""

    def forward(self, x, n):
        rows = x.shape[0]
        y = x.new_zeros(rows * 2 + 1, 3)
        y[1:rows + 1] = x
        y[rows // 2:].add_(n)
        found = torch.nonzero(x[:, 0] > 0).squeeze(1)
        return y, y.view(-1)[: max(rows, 4)], x[found], torch.arange(rows * 2).view(2, rows)


class Branches(torch.nn.Module):
    def forward(self, x, flag):
        y = x.clone()
        y[0].add_(1)

        def loop(i, z):
            z = z.clone()
            z[1] = z[1] * 2
            return i + 1, z
        z = torch.cond(flag.sum() > 0, lambda v: v.sin().clone().mul_(2), lambda v: v.cos(), (y,))
        return torch._higher_order_ops.while_loop(lambda i, z: i < 3, loop, (torch.tensor(0), z))


class Numbers(torch.nn.Module):
    def forward(self, x):
        return x * 2, x.sum().item() * 2.0


PROGRAMS = {
    "numbers": (Numbers(), (torch.randn(3),), None),
    "written": (Written(), (torch.randn(2, 3), torch.randn(2)), None),
    "sizes": (Sizes(), (torch.randn(4, 3), 5), {"x": {0: Dim.AUTO}, "n": Dim.DYNAMIC}),
    "branches": (Branches(), (torch.randn(3, 4), torch.tensor([1])), None),
    "lstm": (torch.nn.LSTM(3, 4), (torch.randn(5, 2, 3),), None),
    "linear": (torch.nn.Linear(2, 2), (torch.randn(3, 2),), ({0: Dim("batch")},)),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(run, tmp_path, command, name):
    module, args, dynamic = PROGRAMS[name]
    check_rewrite(run, tmp_path, command, module, args, dynamic_shapes=dynamic)


@pytest.mark.parametrize("seed", range(int(os.environ.get("PT2ONNX_REWRITTEN_PROGRAMS", 8))))
def test_random_program(run, tmp_path, seed):
    def check(module, args, **keywords):
        for command in COMMANDS:
            check_rewrite(run, tmp_path, command, module, args, **keywords)
    program = random_programs.generate(seed)
    if not random_programs.check(program, check):
        pytest.skip("PyTorch can't export it")


def test_facts_are_kept(run, tmp_path):
    """Sample inputs, extra files, ranges, guards and names go over; weights are the same bytes at multiples of 64."""
    module = torch.nn.Linear(3, 2)
    exported = torch.export.export(module, (torch.randn(4, 3),), dynamic_shapes=({0: Dim("batch", min=3, max=9)},))
    torch.export.save(exported, tmp_path / "model.pt2", extra_files={"notes.txt": "kept"})
    assert run("functionalize", tmp_path / "model.pt2", "-o", tmp_path / "out.pt2").code == 0
    extra = {"notes.txt": ""}
    program = torch.export.load(tmp_path / "out.pt2", extra_files=extra)
    assert extra["notes.txt"] == "kept"
    assert str(program.range_constraints) == str(exported.range_constraints)
    assert np.array_equal(program.example_inputs[0][0].numpy(), exported.example_inputs[0][0].numpy())
    assert program.call_spec == exported.call_spec and program.dialect == "ATEN"
    data = (tmp_path / "out.pt2").read_bytes()
    assert data.find(module.weight.detach().numpy().tobytes()) % 64 == 0
    assert run("functionalize", tmp_path / "model.pt2", "-o", tmp_path / "again" / "out.pt2").code == 1
    (tmp_path / "again").mkdir()
    assert run("functionalize", tmp_path / "model.pt2", "-o", tmp_path / "again" / "out.pt2").code == 0
    assert (tmp_path / "again" / "out.pt2").read_bytes() == data


class Reshaped(torch.nn.Module):
    def forward(self, x):
        x.t_()
        return x + 1


def test_refusals(run, tmp_path):
    torch.export.save(torch.export.export(Reshaped(), (torch.randn(2, 3),)), tmp_path / "model.pt2")
    done = run("functionalize", tmp_path / "model.pt2", "-o", tmp_path / "out.pt2")
    assert done.code == 1 and "E0211" in done.err and not (tmp_path / "out.pt2").exists()


class Composite(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding="same"), torch.nn.BatchNorm2d(4), torch.nn.SiLU(), torch.nn.MaxPool2d(2, ceil_mode=True))
        self.up = torch.nn.ConvTranspose2d(4, 2, 2, stride=2)
        self.norm = torch.nn.GroupNorm(2, 4)

    def forward(self, x):
        y = self.norm(self.conv(x))
        a, b = y.chunk(2, dim=1)
        z = torch.stack([a.transpose(2, 3).flatten(1), b.movedim(1, -1).flatten(1)]).roll(1, 1)
        scores = torch.nn.functional.scaled_dot_product_attention(z[None], z[None], z[None], is_causal=True)
        return self.up(y), scores.masked_fill(scores > 1, 0).tril(), torch.lerp(z[0], z[1], 0.7), torch.einsum("ab,cb->ac", z[0], z[1])


def test_decompose_leaves_core_aten(run, tmp_path):
    program = check_rewrite(run, tmp_path, "decompose", Composite().eval(), (torch.randn(2, 3, 5, 5),), dynamic_shapes=({0: Dim("batch", min=2)},))
    assert not rewriting.composite_ops(program)


@pytest.mark.parametrize("equation, shapes", [
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("...ij,kj->k...i", [(2, 3, 4), (5, 4)]), ("ab,b,cb", [(2, 3), (3,), (4, 3)]), ("ij->ji", [(2, 3)]),
    ("bhqd,bhkd->bhqk", [(2, 1, 3, 4), (2, 2, 5, 4)]), ("i,j->ij", [(2,), (3,)]), ("...,...->...", [(2, 3), (3,)]), ("bij,kl->bl", [(2, 3, 4), (2, 3)]),
])
def test_decompose_einsum(run, tmp_path, equation, shapes):
    class Einsum(torch.nn.Module):
        def forward(self, *tensors):
            return torch.einsum(equation, *tensors)
    program = check_rewrite(run, tmp_path, "decompose", Einsum(), tuple(torch.randn(shape) for shape in shapes))
    assert not rewriting.composite_ops(program)


class Losses(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.gru = torch.nn.LSTM(3, 4, 2, bidirectional=True), torch.nn.GRU(8, 4, batch_first=True)
        self.register_buffer("weight", torch.tensor([1.0, 2, 3, 4]))

    def forward(self, x, t):
        y, (h, c) = self.rnn(x)
        z, _ = self.gru(y)
        f = torch.nn.functional
        return (h, c, f.cross_entropy(z[0], t, self.weight, label_smoothing=0.1, ignore_index=2), f.nll_loss(z[0], t), f.cross_entropy(z[0], z[1].softmax(-1)),
                f.kl_div(z, z.softmax(-1), reduction="batchmean"))


def test_decompose_unrolls_recurrent_layers(run, tmp_path):
    program = check_rewrite(run, tmp_path, "decompose", Losses().eval(), (torch.randn(5, 2, 3), torch.tensor([1, 2])))
    assert not rewriting.composite_ops(program)


def test_decompose_tells_what_it_leaves(run, tmp_path):
    module = torch.nn.PoissonNLLLoss()
    torch.export.save(torch.export.export(module, (torch.randn(2, 3), torch.randn(2, 3))), tmp_path / "model.pt2")
    done = run("decompose", tmp_path / "model.pt2", "-o", tmp_path / "core.pt2")
    assert done.code == 0 and "W0203" in done.err and "aten::poisson_nll_loss" in done.err


def test_decompose_reaches_core(run, tmp_path):
    program = check_rewrite(run, tmp_path, "decompose", torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (torch.randn(2, 5, 8),))
    assert not rewriting.composite_ops(program)
