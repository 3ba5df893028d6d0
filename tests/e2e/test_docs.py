"""The documents are true: every option and every code is explained, and the guide's code runs."""
import pathlib
import re

import numpy
import onnxruntime  # noqa: F401
import torch

ROOT = pathlib.Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guide.md").read_text()


def test_every_option_is_in_the_guide(run):
    options = set(re.findall(r"--[a-z][a-z-]+", run("convert", "--help").out)) - {"--help", "--output"}
    assert len(options) > 15
    assert not {option for option in options if not re.search(re.escape(option) + r"(?![a-z-])", GUIDE)}


def test_the_guide_names_no_other_option(run):
    known = set(re.findall(r"--[a-z][a-z-]+", "".join(run(command, "--help").out for command in ["convert", "inspect"])))
    assert set(re.findall(r"--[a-z][a-z-]+", GUIDE)) <= known | {"--help"}


def test_every_code_is_explained():
    used = {code for path in (ROOT / "src").rglob("*.cc") for code in re.findall(r'"([EW]0\d{3})"', path.read_text())}
    explained = re.findall(r"^\| ([EW]0\d{3}) \|", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)
    assert len(used) > 30 and len(explained) == len(set(explained))
    assert used <= set(explained), sorted(used - set(explained))


def test_links_lead_somewhere():
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)# ]+)\)", path.read_text()):
            assert target.startswith("http") or (path.parent / target).exists(), (path.name, target)


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(3))
        self.register_buffer("tail", self.sum[1:])

    def forward(self, x):
        self.sum += x
        self.tail *= 2
        return self.sum * 1


def test_stepping_as_in_the_guide(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    batches = [numpy.full(3, n, numpy.float32) for n in [1, 2, 3]]
    module = Counter()
    torch.export.save(torch.export.export(Counter(), (torch.ones(3),)), "model.pt2")
    assert run("convert", "model.pt2", "-o", "model.onnx", cwd=tmp_path).code == 0
    [example] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    names = {"batches": batches}
    exec(example, names)
    want = [module(torch.from_numpy(x)) for x in batches][-1]
    assert (names["answer"][names["outputs"][0]] == want.numpy()).all() and names["state"].keys() == {"sum"}
