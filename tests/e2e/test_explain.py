"""pt2onnx explain: each write of the program, what it wrote through, and what became of it."""
import json

import torch


class Writes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(4, 3))

    def forward(self, x, flag):
        y = x * 2
        y.add_(1)
        y[0, 1:].fill_(5)
        x.clone().mul_(3)
        self.cache[1] = y[0]
        z = y.clone()
        z.zero_()
        z.copy_(x)
        with torch.no_grad():
            x.sub_(1)
        return y, z, torch.cond(flag.sum() > 0, lambda v: v.clone().add_(1), lambda v: v.cos(), (y,))


def explain(run, path):
    done = run("explain", path, "--format", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)["writes"]


def test_writes(run, tmp_path):
    torch.export.save(torch.export.export(Writes(), (torch.ones(2, 3), torch.tensor([1]))), tmp_path / "model.pt2")
    writes = {write["source"]: write for write in explain(run, tmp_path / "model.pt2")}

    def told(source):
        return next(write for text, write in writes.items() if text.startswith(source))

    assert told("y.add_(1)")["fate"] == "value" and told("y.add_(1)")["memory"] == "%mul"
    slices = told("y[0, 1:].fill_(5)")
    assert slices["fate"] == "written back" and slices["by"] == ["slice_scatter", "select_scatter"]
    assert [view.split(" = ")[1] for view in slices["through"]] == ["slice.Tensor", "select.int"]
    assert told("x.clone().mul_(3)")["fate"] == "dead"
    assert told("z.zero_()")["fate"] == "dead"
    cache = told("self.cache[1] = y[0]")
    assert cache["memory"] == "cache" and cache["outputs"] == ["cache_next"] and cache["file"] == "test_explain.py"
    assert told("x.sub_(1)")["outputs"] == ["x_next"]
    text = run("explain", tmp_path / "model.pt2").out
    assert "-> written back by slice_scatter, select_scatter" in text and "output cache_next" in text and "dead: nothing reads it" in text


def test_nothing_is_written(run, tmp_path):
    torch.export.save(torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)), tmp_path / "model.pt2")
    done = run("explain", tmp_path / "model.pt2")
    assert done.code == 0 and done.out == "0 writes\n"
