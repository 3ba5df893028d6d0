"""Names: of dimensions, inputs, outputs and state; which of two that clash gives way; how structures are flattened."""
import collections
import dataclasses
import json

import onnx
import pytest
import torch
from torch.export import Dim
from torch.utils import _pytree as pytree


class Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, y):
        return self.function(x, y)


@pytest.fixture
def saved(tmp_path):
    """saved(module, args, dynamic_shapes): path of the program."""
    def save(module, args, dynamic_shapes=None, kwargs=None):
        exported = torch.export.export(module, args, kwargs, dynamic_shapes=dynamic_shapes)
        torch.export.save(exported, tmp_path / "m.pt2")
        return tmp_path / "m.pt2"
    return save


def shapes(path):
    graph = onnx.load(path).graph
    return {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*graph.input, *graph.output]}


MATMUL = Call(lambda x, y: (x @ y, torch.cat([x, x])))
PAIR = (torch.randn(3, 4), torch.randn(4, 5))
DYNAMIC = {"x": {0: Dim("rows"), 1: Dim("inner")}, "y": {0: Dim("inner")}}


def test_dims_have_readable_names(run, saved, tmp_path):
    assert run("convert", saved(MATMUL, PAIR, DYNAMIC), "-o", tmp_path / "m.onnx").code == 0
    found = shapes(tmp_path / "m.onnx")
    assert found == {"x": ["x_dim0", "x_dim1"], "y": ["x_dim1", 5], "matmul": ["x_dim0", 5], "cat": ["2*x_dim0", "x_dim1"]}


@pytest.mark.parametrize("words", [["--dim-name", "x:0=batch"], ["--dim-name", "x:-2=batch"], ["--dim-name", "s77=batch"], ["--dim-name", "x:0=batch", "--dim-name", "s77=batch"]])
def test_dim_names(run, saved, tmp_path, words):
    assert run("convert", saved(MATMUL, PAIR, DYNAMIC), "-o", tmp_path / "m.onnx", *words, "--dim-name", "y:0=width").code == 0
    assert shapes(tmp_path / "m.onnx") == {"x": ["batch", "width"], "y": ["width", 5], "matmul": ["batch", 5], "cat": ["2*batch", "width"]}


def test_a_derived_dim_has_a_name(run, saved, tmp_path):
    batch = Dim("batch")
    path = saved(Call(lambda x, y: x + y.reshape(2, -1).sum(0)), (torch.randn(4), torch.randn(8)), {"x": {0: batch}, "y": {0: 2 * batch}})
    assert run("convert", path, "-o", tmp_path / "m.onnx", "--dim-name", "y:0=twice", "--dim-name", "x:0=once").code == 0
    assert shapes(tmp_path / "m.onnx") == {"x": ["once"], "y": ["twice"], "add": ["once"]}


@pytest.mark.parametrize("words, message", [
    (["--dim-name", "s999=batch"], "s999"), (["--dim-name", "z:0=batch"], "no input is called z"), (["--dim-name", "x:2=batch"], "2 dims"),
    (["--dim-name", "y:1=batch"], "not dynamic"), (["--dim-name", "x:0=a", "--dim-name", "x:1=a"], "different sizes"),
    (["--dim-name", "x:0=a", "--dim-name", "s77=b"], "both"), (["--input-names", "a,b,c"], "3 names for 2 inputs"),
    (["--input-names", "a,a"], "called a"), (["--input-names", "a,"], "empty"), (["--output-names", "p,q,r"], "3 names for 2 outputs"),
    (["--input-name", "a", "--output-name", "a"], "called a"),
])
def test_wrong_names(run, saved, tmp_path, words, message):
    done = run("convert", saved(MATMUL, PAIR, DYNAMIC), "-o", tmp_path / "m.onnx", *words)
    assert done.code == 2 and message in done.err and not (tmp_path / "m.onnx").exists(), done.err


def test_asked_for_names_win(run, saved, tmp_path):
    """Inner values, weights and what the program itself calls so give way."""
    class Linear(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.register_buffer("steps", torch.zeros(()))

        def forward(self, x, y):
            self.steps += 1
            return self.linear(x) + y, x * 2
    path = saved(Linear(), (torch.randn(3, 4), torch.randn(3, 4)))
    words = ["--input-names", "y,linear.weight", "--output-names", "mul,steps"]
    assert run("convert", path, "-o", tmp_path / "m.onnx", *words).code == 0
    model = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [v.name for v in model.graph.input] == ["y", "linear.weight", "steps_1"]
    assert [v.name for v in model.graph.output] == ["mul", "steps", "steps_next"]
    meta = {p.key: p.value for p in model.metadata_props}
    assert meta["pt2onnx.state.steps"] == "steps_next -> steps_1"
    assert json.loads(meta["pt2onnx.inputs"]) == {"y": "x", "linear.weight": "y"}


class Odd(torch.nn.Module):
    """Buffers called like inputs, outputs and inner values; names with dots, slashes and letters of other alphabets."""

    def __init__(self):
        super().__init__()
        inner = torch.nn.Module()
        inner.register_buffer("größe", torch.ones(3))
        inner.register_parameter("weight_1", torch.nn.Parameter(torch.ones(3)))
        self.inner = inner
        for name in ("x", "mul", "a/b c", "x_next", "output", "1", "重み"):
            self.register_buffer(name, torch.full((3,), 2.0))

    def forward(self, X, mul_1):
        self.x.add_(X)
        self._buffers["a/b c"].mul_(2)
        self._buffers["1"].sub_(mul_1)
        y = X * mul_1
        for name in ("mul", "x_next", "output", "重み"):
            y = y * self._buffers[name]
        return y * self.inner.größe * self.inner.weight_1, self.x * 1


@pytest.mark.parametrize("options", [[], ["--state", "inputs"], ["--state", "drop"], ["--input-names", "x,1", "--output-names", "a/b c,größe"]], ids=str)
def test_odd_names(check_program, options):
    module = Odd()
    if "--input-names" in options:                  # state is fed by the names in the metadata then, which the check does not read
        options = [*options, "--state", "drop"]
    again = [] if "drop" in options else [((torch.randn(3), torch.randn(3)), None)]
    checked = check_program(module, (torch.randn(3), torch.randn(3)), calls=again, options=options)
    names = [v.name for v in [*checked.model.graph.input, *checked.model.graph.output]]
    assert len(names) == len(set(names))
    if not options:
        assert names == ["X", "mul_1", "x", "a/b c", "1", "mul_7", "mul_8", "x_next", "a/b c_next", "1_next"]


Point = collections.namedtuple("Point", "left right")


@dataclasses.dataclass
class State:
    hidden: torch.Tensor
    cell: torch.Tensor


def test_structures(check_program):
    """Leaves in the order of torch's pytree: sequences by index, dicts as they were filled, data classes by field."""
    if State not in pytree.SUPPORTED_SERIALIZED_TYPES:
        torch.export.register_dataclass(State, serialized_type_name="test_names.State")
        pytree._register_namedtuple(Point, serialized_type_name="test_names.Point")

    class Nested(torch.nn.Module):
        def forward(self, x, opts, *, state, flag=True):
            total = x + opts["b"][0] + opts["a"]["deep"][1].left
            return {"z": total, "a": [state.hidden * 2, None, (state.cell,)], "p": Point(x, total * 2), "s": State(total + 1, x - 1)}
    one = torch.randn(2)
    opts = {"b": (one,), "a": {"deep": [one * 2, Point(one * 3, one * 4)]}}
    checked = check_program(Nested(), (one, opts), {"state": State(one * 5, one * 6)})
    inputs = json.loads(checked.metadata["pt2onnx.inputs"])
    assert list(inputs) == [v.name for v in checked.model.graph.input]
    assert list(inputs.values()) == ["x", "opts['b'][0]", "opts['a']['deep'][0]", "opts['a']['deep'][1].left", "opts['a']['deep'][1].right", "state.hidden", "state.cell"]
    outputs = json.loads(checked.metadata["pt2onnx.outputs"])
    assert list(outputs) == [v.name for v in checked.model.graph.output]
    assert list(outputs.values()) == ["['z']", "['a'][0]", "['a'][2][0]", "['p'].left", "['p'].right", "['s'].hidden", "['s'].cell"]


def test_the_same_tensor_twice(check_program):
    checked = check_program(Call(lambda x, y: (x, x, y + 1, {"again": x}, x)), (torch.randn(2), torch.randn(2)))
    assert len(set(checked.session.outputs)) == 5


# ---- From Python: Dim's names are in no file, but in the call that made the program.

def test_names_of_dims(tmp_path):
    pt2onnx = pytest.importorskip("pt2onnx")
    exported = torch.export.export(MATMUL, PAIR, dynamic_shapes=DYNAMIC)
    pt2onnx.convert(exported, tmp_path / "m.onnx", dynamic_shapes=DYNAMIC)
    assert shapes(tmp_path / "m.onnx") == {"x": ["rows", "inner"], "y": ["inner", 5], "matmul": ["rows", 5], "cat": ["2*rows", "inner"]}
    pt2onnx.convert(exported, tmp_path / "n.onnx", dynamic_shapes=[{0: Dim("n")}, None], dim_names={"y:0": "k"}, input_names=["a", "b"], opset=23)
    assert shapes(tmp_path / "n.onnx")["a"] == ["n", "k"]
    with pytest.raises(TypeError, match="ExportedProgram"):
        pt2onnx.convert(tmp_path / "m.pt2", tmp_path / "m.onnx", dynamic_shapes=DYNAMIC)


def test_export(tmp_path):
    pt2onnx = pytest.importorskip("pt2onnx")
    batch = Dim("batch")

    class Nested(torch.nn.Module):
        def forward(self, x, opts):
            return x.reshape(2, -1).sum(0) + opts["a"][0]
    nested = {"x": {0: 2 * batch}, "opts": {"a": [{0: batch}]}}
    pt2onnx.export(Nested(), (torch.randn(6), {"a": [torch.randn(3)]}), tmp_path / "m.onnx", dynamic_shapes=nested, opset_version=21, output_names=["y"])
    assert shapes(tmp_path / "m.onnx") == {"x": ["2*batch"], "opts_a_0": ["batch"], "y": ["batch"]}
    pt2onnx.export(lambda *xs: sum(xs), (torch.randn(3), torch.randn(3)), tmp_path / "f.onnx", dynamic_shapes={"xs": ({0: batch}, {0: batch})})
    assert set(map(tuple, shapes(tmp_path / "f.onnx").values())) == {("batch",)}
