"""The command line: help, version, usage errors, answers as JSON, timings."""
import json

import onnx
import pytest


def test_version(run):
    done = run("--version")
    assert done.code == 0 and done.out.startswith("pt2onnx 0.")


@pytest.mark.parametrize("command", ["convert", "inspect", "check", "functionalize", "decompose", "explain"])
def test_help(run, command):
    done = run(command, "--help")
    assert done.code == 0 and command in done.out and not done.err


@pytest.mark.parametrize("words, message", [
    ([], "command"),
    (["frobnicate"], "'frobnicate' is not a command"),
    (["convert"], "required"),
    (["convert", "model.pt2"], "--output is required"),
    (["convert", "model.pt2", "-o", "model.onnx", "--opset", "17"], "from 18 to 28"),
    (["convert", "model.pt2", "-o", "model.onnx", "--opset", "x"], "integer"),
    (["convert", "model.pt2", "-o", "model.onnx", "--mode", "test"], "preserve|eval|train"),
    (["convert", "model.pt2", "-o", "model.onnx", "--dim-name", "s77"], "SYMBOL=NAME"),
    (["convert", "model.pt2", "-o", "model.onnx", "--dim-name", "s77=a", "--dim-name", "s77=b"], "twice"),
    (["convert", "model.pt2", "-o", "model.onnx", "--no-such-option"], "--no-such-option"),
])
def test_usage_errors(run, tmp_path, words, message):
    done = run(*words, cwd=tmp_path)
    assert done.code == 2 and not done.out
    assert len(done.errors) == 1 and message.lower() in done.err.lower(), done.err
    assert not any(tmp_path.iterdir())


def test_convert_is_silent(run, demo, tmp_path):
    done = run("convert", demo, "-o", tmp_path / "demo.onnx")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_convert_as_json(run, demo, tmp_path):
    done = run("convert", demo, "-o", tmp_path / "demo.onnx", "--format", "json")
    answer = json.loads(done.out)
    assert answer["exit_code"] == 0 and answer["problems"] == [] and not done.err


def test_time_and_verbose(run, demo, tmp_path):
    done = run("convert", demo, "-o", tmp_path / "demo.onnx", "--time", "--verbose")
    assert done.code == 0 and " ms  " in done.err


def test_inspect(run, demo):
    done = run("inspect", demo)
    assert done.code == 0 and "aten::add_.Tensor" in done.out and "aten::conv2d" in done.out
    functional = run("inspect", demo, "--stage", "functional")
    assert functional.code == 0 and "add_.Tensor" not in functional.out and "aten::add.Tensor" in functional.out


def test_inspect_as_json(run, demo):
    assert json.loads(run("inspect", demo, "--format", "json").out)["output"]


def test_check(run, demo):
    done = run("check", demo, "--opset", "21")
    assert done.code == 0 and "opset 21" in done.out and not done.err


def test_explain(run, demo):
    done = run("explain", demo)
    assert done.code == 0 and "y[:, :, 0] = 0" in done.out and "counter" in done.out


@pytest.mark.parametrize("opset", [18, 20, 23, 26, 28])
def test_opset(run, demo, tmp_path, opset):
    path = tmp_path / "demo.onnx"
    assert run("convert", demo, "-o", path, "--opset", opset).code == 0
    model = onnx.load(path)
    assert [entry.version for entry in model.opset_import if not entry.domain] == [opset]
    onnx.checker.check_model(model, full_check=True)


def test_names(run, demo, tmp_path):
    path = tmp_path / "demo.onnx"
    assert run("convert", demo, "-o", path, "--input-name", "picture", "--output-name", "answer").code == 0
    graph = onnx.load(path).graph
    assert [value.name for value in graph.input][0] == "picture" and graph.output[0].name == "answer"


def test_no_paths_of_this_machine_in_the_model(run, demo, tmp_path):
    path = tmp_path / "demo.onnx"
    assert run("convert", demo, "-o", path).code == 0
    assert str(tmp_path).encode() not in path.read_bytes()
