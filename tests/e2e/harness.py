"""What the end-to-end tests share: export a module, convert it with the native program, run the model, compare with eager PyTorch."""
from __future__ import annotations

import copy
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import op_record
import torch
from torch.utils import _pytree as pytree

# Element types that numpy lacks: torch's type, numpy's through ml_dtypes, ONNX's number.
FOREIGN = [
    (torch.bfloat16, ml_dtypes.bfloat16, onnx.TensorProto.BFLOAT16),
    (torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn, onnx.TensorProto.FLOAT8E4M3FN),
    (torch.float8_e5m2, ml_dtypes.float8_e5m2, onnx.TensorProto.FLOAT8E5M2),
]


def program() -> str:
    """The native program: $PT2ONNX, or the one that pip installed beside this Python."""
    beside = pathlib.Path(sys.executable).parent / "pt2onnx"
    path = os.environ.get("PT2ONNX") or (str(beside) if beside.exists() else shutil.which("pt2onnx"))
    assert path, "no pt2onnx program: pip install . first, or set PT2ONNX"
    return path


@dataclasses.dataclass
class Run:
    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """First lines of the errors that the program printed."""
        return [line for line in self.err.splitlines() if ": error" in line]


def run(*words, cwd=None) -> Run:
    done = subprocess.run([program(), *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=300)
    return Run(done.returncode, done.stdout, done.stderr)


def to_numpy(value) -> np.ndarray:
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)
    value = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if value.is_complex():                              # in a model the last dim is the real and the imaginary part
        value = torch.view_as_real(value)
    for torch_type, numpy_type, _ in FOREIGN:
        if value.dtype == torch_type:
            bits = torch.int16 if torch_type.itemsize == 2 else torch.uint8
            return value.view(bits).numpy().copy().view(numpy_type)
    return value.numpy().copy()


def difference(got, want, rtol=1e-3, atol=1e-5, *, number=False, values=True) -> str | None:
    """None where `got` is what PyTorch answers, else what differs. number: a Python number, whose width does not count."""
    got, want = np.asarray(got), np.asarray(want)
    if number and got.dtype.kind == want.dtype.kind:
        want = want.astype(got.dtype)
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if not values or want.size == 0:
        return None
    if want.dtype.kind in "biu":
        bad = got != want
    else:
        a, b = (x if x.dtype.kind == "c" else x.astype(np.float64) for x in (got, want))
        if want.dtype.itemsize <= 2 and rtol:           # float16, bfloat16, float8
            rtol, atol = max(rtol, 1e-2 if want.dtype.itemsize == 2 else 0.13), max(atol, 1e-2)
        with np.errstate(all="ignore"):
            largest = np.abs(b[np.isfinite(b)]).max(initial=0.0)
            slack = 1e-6 * float(largest) if rtol else 0.0  # cancellation between large terms
            bad = ~((np.abs(a - b) <= atol + slack + rtol * np.abs(b)) | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not bad.any():
        return None
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} of {bad.size} elements, first at {first}: {got[first]!r}, expected {want[first]!r}"


class Session:
    """An ONNX Runtime session that also takes and gives bfloat16 and float8."""

    def __init__(self, path):
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = [value.name for value in self._session.get_inputs()]
        self.state = [value.name for value in self._session.get_overridable_initializers()]
        self.outputs = [value.name for value in self._session.get_outputs()]

    def __call__(self, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        numbers = {np.dtype(numpy_type): number for _, numpy_type, number in FOREIGN}
        values, keep = {}, []
        for name, array in feeds.items():
            array = np.ascontiguousarray(array).reshape(np.shape(array))
            if array.dtype in numbers:
                bits = array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
                keep.append(bits)
                values[name] = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, numbers[array.dtype])
            else:
                values[name] = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        results = self._session.run_with_ort_values(self.outputs, values)
        return {name: self._array(value) for name, value in zip(self.outputs, results)}

    @staticmethod
    def _array(value):
        import ctypes
        for _, numpy_type, number in FOREIGN:
            if value.element_type() == number:
                size = value.tensor_size_in_bytes()
                data = ctypes.string_at(value.data_ptr(), size) if size else b""
                return np.frombuffer(data, numpy_type).reshape(value.shape())
        return value.numpy()


def named_state(module) -> dict[str, torch.Tensor]:
    return dict(module.named_parameters(remove_duplicate=False)) | dict(module.named_buffers(remove_duplicate=False))


def clone(tree):
    """Clone each tensor; the same tensor twice stays the same tensor twice."""
    seen = {}

    def one(leaf):
        if isinstance(leaf, torch.Tensor):
            return seen.setdefault(id(leaf), leaf.detach().clone(memory_format=torch.preserve_format))
        return leaf
    return pytree.tree_map(one, tree)


@dataclasses.dataclass
class Checked:
    """A program that went through check_program."""
    exported: torch.export.ExportedProgram
    pt2: pathlib.Path
    path: pathlib.Path
    model: onnx.ModelProto
    session: Session
    run: Run

    @property
    def op_types(self) -> list[str]:
        return [node.op_type for node in self.model.graph.node]

    @property
    def metadata(self) -> dict[str, str]:
        return {entry.key: entry.value for entry in self.model.metadata_props}


def input_leaves(exported, args, kwargs):
    """The leaves of a call that are inputs of the model: tensors, and numbers that capture did not bake in."""
    leaves = exported._get_flat_args_with_check(args, kwargs)[0]
    values = {node.name: node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder"}
    symbolic = (torch.SymInt, torch.SymFloat, torch.SymBool)
    names = exported.graph_signature.user_inputs
    return [leaf for leaf, name in zip(leaves, names) if isinstance(leaf, torch.Tensor) or (isinstance(name, str) and isinstance(values.get(name), symbolic))]


def check_program(folder, module, args=(), kwargs=None, *, dynamic_shapes=None, calls=(), options=(), opset=20, rtol=1e-3, atol=1e-5,
                  values=True, export=torch.export.export) -> Checked:
    """Convert `module` and compare with eager PyTorch, call after call, with changed state fed back into the model.

    calls: further (args, kwargs) after the first; the module keeps its state between them, as it does in PyTorch.
    values=False: compare types and shapes only (random ops).
    Checked besides: onnx.checker, the opset, the same bytes from a second conversion, and that every name whose value the call changed has
    its output `<name>_next`, with the right value.
    """
    folder = pathlib.Path(folder)
    kwargs = kwargs or {}
    pt2, path = folder / "model.pt2", folder / "model.onnx"
    exported = export(copy.deepcopy(module), clone(args), clone(kwargs), dynamic_shapes=dynamic_shapes)
    torch.export.save(exported, pt2)
    command = ["convert", pt2, "-o", path, "--opset", opset, *options]
    done = run(*command)
    assert done.code == 0, f"exit code {done.code}\n{done.err}"
    again = folder / "again.onnx"
    assert run("convert", pt2, "-o", again, *command[4:]).code == 0
    if not (folder / "model.onnx.data").exists():       # else the files name different weights
        assert again.read_bytes() == path.read_bytes(), "a second conversion gives other bytes"
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(str(path), load_external_data=False)
    assert {entry.version for entry in model.opset_import if not entry.domain} == {opset}
    session = Session(path)
    checked = Checked(exported, pt2, path, model, session, done)

    eager = copy.deepcopy(module)
    carried: dict[str, np.ndarray] = {}
    for index, (call_args, call_kwargs) in enumerate([(args, kwargs), *calls]):
        call_args, call_kwargs = clone(call_args), clone(call_kwargs or {})
        inputs = input_leaves(exported, call_args, call_kwargs)
        before = {name: tensor.detach().clone() for name, tensor in named_state(eager).items()}
        inputs_before = clone(inputs)
        names = [name for name in session.inputs if name not in carried]
        assert len(names) >= len(inputs), f"inputs {names}, expected {len(inputs)}"
        feeds = dict(zip(names, map(to_numpy, inputs)))
        for name in names[len(inputs):]:                # --state inputs
            feeds[name] = to_numpy(before[name])
        got = session(feeds | carried)
        with torch.no_grad():
            answer = eager(*call_args, **call_kwargs)

        leaves = [leaf for leaf in pytree.tree_leaves(answer) if isinstance(leaf, (torch.Tensor, int, float))]
        for name, leaf in zip(session.outputs, leaves, strict=False):
            wrong = difference(got[name], to_numpy(leaf), rtol, atol, number=not isinstance(leaf, torch.Tensor), values=values)
            assert not wrong, f"call {index}, output {name}: {wrong}"
        assert len(session.outputs) >= len(leaves), f"outputs {session.outputs}, expected {len(leaves)}"

        rest = session.outputs[len(leaves):]
        if "drop" in options:
            assert not rest
            continue
        after = {name: tensor.detach() for name, tensor in named_state(eager).items()}
        after |= dict(zip(names, inputs))
        before |= dict(zip(names, inputs_before))
        for name, value in after.items():
            output = f"{name}_next"
            if output in rest:
                wrong = difference(got[output], to_numpy(value), rtol, atol, values=values)
                assert not wrong, f"call {index}, state {output}: {wrong}"
            else:
                assert difference(to_numpy(before[name]), to_numpy(value), 0, 0) is None, f"call {index}: {name} changed and the model has no {output}"
        assert set(rest) <= {f"{name}_next" for name in [*after, *session.state]}, f"outputs {rest} belong to nothing"
        fed = set(session.state) | set(session.inputs) - set(names[:len(inputs)])
        carried = {name: got[f"{name}_next"] for name in fed if f"{name}_next" in got}
    op_record.record(exported, pt2, run)
    return checked
