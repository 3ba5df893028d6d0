"""PyTorch's own operator database: each operator's samples, exported, converted, run, compared with eager PyTorch.

Everyday runs take one float32 sample of each operator (another one for each operator, always the same); the slow ones take the first samples of every dtype.
What has no form is listed with its reason in op_db_expected.txt: `operator dtype reason`, with * for every dtype; a listed one that passes is an error.
"""
import itertools
import pathlib
import zlib

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import harness

EXPECTED = pathlib.Path(__file__).parent / "op_db_expected.txt"
DTYPES = [torch.float32, torch.float64, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64]
SAMPLES, MOST = 6, 40
# Their values are whatever memory holds.
UNINITIALIZED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}


def name_of(op):
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def expected_failures():
    rows = {}
    for line in EXPECTED.read_text().splitlines():
        if line and not line.startswith("#"):
            operator, dtype, reason = line.split(maxsplit=2)
            rows[operator, dtype] = reason
    return rows


class Sample(torch.nn.Module):
    """One call of an operator: tensors are inputs, all else is part of the program."""

    def __init__(self, op, leaves, spec):
        super().__init__()
        self.op, self.leaves, self.spec = op, leaves, spec

    def forward(self, *tensors):
        rest = iter(tensors)
        leaves = [next(rest) if leaf is Ellipsis else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return [leaf for leaf in pytree.tree_leaves(self.op(*args, **kwargs)) if isinstance(leaf, torch.Tensor)]

    def __deepcopy__(self, memo):
        return Sample(self.op, self.leaves, self.spec)


def module_of(op, sample):
    """(module, its tensor inputs) of one of op_db's samples."""
    leaves, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    tensors = tuple(leaf.detach() for leaf in leaves if isinstance(leaf, torch.Tensor))
    return Sample(op.op, [Ellipsis if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec), tensors


def is_drawn(module, tensors):
    """Whether the numbers are drawn at random. None where eager PyTorch or torch.export can't go, and where no tensor comes out: no sample then."""
    if not all(tensor.layout == torch.strided for tensor in tensors):
        return None
    try:
        if not module(*harness.clone(tensors)):
            return None
        exported = torch.export.export(module, harness.clone(tensors))
    except Exception:  # torch has many ways to say that it can't
        return None
    return any(torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) for node in exported.graph.nodes)


def check(op, dtype, folder, start, count):
    """The first problem among `count` samples from `start` on (modulo their number); skips if there are none."""
    samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=False), MOST))
    checked = 0
    for index in range(len(samples)):
        number = (start + index) % len(samples)
        module, tensors = module_of(op, samples[number])
        drawn = is_drawn(module, tensors)
        if drawn is None:
            continue
        try:
            harness.check_program(folder, module, tensors, values=not drawn and op.name not in UNINITIALIZED)
        except Exception as error:  # also ONNX Runtime's
            return f"sample {number}: {' | '.join(str(error).splitlines())[:1000]}"
        checked += 1
        if checked == count:
            break
    if not checked:
        pytest.skip("nothing that torch.export captures")
    return None


def judge(op, dtype, problem):
    name, word = name_of(op), str(dtype).removeprefix("torch.")
    rows = expected_failures()
    reason = rows.get((name, word)) or rows.get((name, "*"))
    if reason and problem:
        pytest.xfail(reason)
    assert not reason, f"{name} {word} passes now: take it off {EXPECTED.name} ({reason})"
    assert not problem, f"{name} {word}: {problem}"


FIRST = [(op, torch.float32 if op.supports_dtype(torch.float32, "cpu") else torch.int64) for op in op_db]


@pytest.mark.parametrize("op, dtype", FIRST, ids=[name_of(op) for op, _ in FIRST])
def test_one_sample(op, dtype, tmp_path):
    judge(op, dtype, check(op, dtype, tmp_path, zlib.crc32(name_of(op).encode()) % 7, 1))


EVERY = [(op, dtype) for op in op_db for dtype in DTYPES if op.supports_dtype(dtype, "cpu")]


@pytest.mark.slow
@pytest.mark.parametrize("op, dtype", EVERY, ids=[f"{name_of(op)}-{str(dtype).removeprefix('torch.')}" for op, dtype in EVERY])
def test_every_dtype(op, dtype, tmp_path):
    judge(op, dtype, check(op, dtype, tmp_path, 0, SAMPLES))
