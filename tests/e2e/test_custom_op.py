"""--custom-op my::op=domain::Op: a call kept as an operator of the user's domain."""
import onnx
import pytest
import torch
from onnx import helper

import harness


@torch.library.custom_op("pt2onnx_kept::axpy", mutates_args=())
def axpy(x: torch.Tensor, rest: list[torch.Tensor], by: float, times: int) -> torch.Tensor:
    return x * by * times + sum(rest)


@axpy.register_fake
def _(x, rest, by, times):
    return torch.empty_like(x)


class Kept(torch.nn.Module):
    def forward(self, x, y):
        return axpy(x.relu(), [y, y + 1], 2.5, x.shape[1]) * 2


X, Y = torch.arange(6.0).reshape(2, 3) - 2, torch.ones(2, 3)


def convert(tmp_path, *words, **export):
    torch.export.save(torch.export.export(Kept(), (X, Y), **export), tmp_path / "m.pt2")
    return harness.run("convert", tmp_path / "m.pt2", "-o", tmp_path / "m.onnx", *words)


@pytest.mark.parametrize("name", ["pt2onnx_kept::axpy", "pt2onnx_kept::axpy.default"])
def test_runs_by_a_function_of_the_model(tmp_path, name):
    done = convert(tmp_path, "--custom-op", f"{name}=mine.ops::Axpy")
    assert done.code == 0, done.err
    model = onnx.load(tmp_path / "m.onnx")
    node, = [node for node in model.graph.node if node.op_type == "Axpy"]
    assert node.domain == "mine.ops" and len(node.input) == 3
    assert {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute} == {"by": 2.5, "times": 3}
    # What the operator means, as a function for ONNX Runtime to expand.
    by, times = (helper.make_node("Constant", [], [name]) for name in ("b", "t"))
    for constant, field, kind in ((by, "value_float", onnx.AttributeProto.FLOAT), (times, "value_int", onnx.AttributeProto.INT)):
        attribute = constant.attribute.add()
        attribute.name, attribute.type, attribute.ref_attr_name = field, kind, "by" if constant is by else "times"
    body = [by, times, helper.make_node("CastLike", ["t", "b"], ["tf"]), helper.make_node("Mul", ["x", "b"], ["p"]), helper.make_node("Mul", ["p", "tf"], ["q"]),
            helper.make_node("Add", ["q", "r"], ["s"]), helper.make_node("Add", ["s", "u"], ["z"])]
    model.functions.append(helper.make_function("mine.ops", "Axpy", ["x", "r", "u"], ["z"], body, [helper.make_opsetid("", 20)], ["by", "times"]))
    onnx.save(model, tmp_path / "whole.onnx")
    session = harness.Session(tmp_path / "whole.onnx")
    got = session(dict(zip(session.inputs, (X.numpy(), Y.numpy()))))[session.outputs[0]]
    assert harness.difference(got, Kept()(X, Y).numpy()) is None


def test_a_size_that_changes_is_no_attribute(tmp_path):
    size = torch.export.Dim("n", min=3)
    done = convert(tmp_path, "--custom-op", "pt2onnx_kept::axpy=mine::Axpy", dynamic_shapes=({1: size}, {1: size}))
    assert done.code == 1 and "E0301" in done.err and "'times'" in done.err and not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("target", ["Axpy", "::Axpy", "mine::", "onnx::Add"])
def test_no_operator_of_a_domain(tmp_path, target):
    done = convert(tmp_path, "--custom-op", f"pt2onnx_kept::axpy={target}")
    assert done.code == 2 and "custom-op" in done.err and not (tmp_path / "m.onnx").exists()
