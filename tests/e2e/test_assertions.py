"""--assertions: what the program checks is dropped and told in the metadata, or checked by the model."""
import numpy as np
import pytest
import torch
from torch import nn


class Checked(nn.Module):
    def forward(self, x, n):
        k = n.item()
        torch._check(k >= 1)
        torch._check(k <= 3)
        torch._assert_async((x.sum() > 0).reshape(1), "the sum is positive")
        return x[:k].sum(0), x * 2


def test_dropped_by_default(check_program):
    checked = check_program(Checked(), (torch.ones(5, 2), torch.tensor(2)))
    assert "the sum is positive" in checked.metadata["pt2onnx.assertions.dropped"]


@pytest.mark.parametrize("opset", [18, 23])
def test_kept(check_program, opset):
    checked = check_program(Checked(), (torch.ones(5, 2), torch.tensor(2)), calls=[((torch.ones(5, 2), torch.tensor(3)), {})], options=("--assertions", "keep"), opset=opset)
    assert "the sum is positive" in checked.metadata["pt2onnx.assertions.kept"]
    with pytest.raises(Exception, match="assertion: the sum is positive"):
        checked.session({"x": -np.ones((5, 2), np.float32), "n": np.array(2)})
    for wrong in (0, 4):
        with pytest.raises(Exception, match="assertion: .*u0"):
            checked.session({"x": np.ones((5, 2), np.float32), "n": np.array(wrong)})


class Scalar(nn.Module):
    def forward(self, x):
        torch._assert_async(x.min() > -5, "not so small")
        return x.sum(), x > 0


def test_an_output_without_dims(check_program):
    checked = check_program(Scalar(), (torch.randn(4),), options=("--assertions", "keep"))
    with pytest.raises(Exception, match="assertion: not so small"):
        checked.session({"x": np.full(4, -9, np.float32)})


class InBranch(nn.Module):
    def forward(self, p, x):
        def checked(x):
            torch._assert_async(x.sum() > 0, "positive")
            return x + 1
        return torch.cond(p, checked, lambda x: x - 1, (x,))


def test_in_a_branch_it_is_refused(run, tmp_path):
    try:
        program = torch.export.export(InBranch(), (torch.tensor(True), torch.ones(2)))
    except Exception as error:  # noqa: BLE001
        pytest.skip(f"torch does not capture it: {type(error).__name__}")
    torch.export.save(program, tmp_path / "m.pt2")
    assert run("convert", tmp_path / "m.pt2", "-o", tmp_path / "m.onnx").code == 0
    done = run("convert", tmp_path / "m.pt2", "-o", tmp_path / "k.onnx", "--assertions", "keep")
    assert done.code == 1 and "E0306" in done.err and "--assertions drop" in done.err
