"""The README's example is what really comes out."""
import contextlib
import io
import pathlib
import re

import numpy
import onnxruntime

README = pathlib.Path(__file__).parents[2] / "README.md"


def test_example(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = README.read_text().split("## Example", 1)[1].split("\n## ", 1)[0]
    program, commands, stepping, printed = re.findall(r"```(?:python)?\n(.*?)```", text, re.DOTALL)
    exec(compile(program, "block.py", "exec"), {"__name__": "example"})
    for command, expected in re.findall(r"^\$ pt2onnx (.*)\n((?:[^$].*\n)*)", commands, re.MULTILINE):
        done = run(*command.split(), cwd=tmp_path)
        assert done.code == 0 and done.out == expected
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(stepping, {"onnxruntime": onnxruntime, "numpy": numpy})
    assert out.getvalue() == printed
