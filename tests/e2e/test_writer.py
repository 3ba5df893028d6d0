"""Models that the C++ tests write (tests/unit/onnx/models_test.cc) pass onnx's checker and answer in ONNX Runtime what is written beside them."""
import json
import os
import pathlib
import subprocess

import numpy
import onnx
import onnxruntime
import pytest

ROOT = pathlib.Path(__file__).parents[2]
NAMES = [f"expressions_{opset}" for opset in (18, 20, 23)] + [f"control_{opset}" for opset in (18, 21, 25)] + [
    f"weights_{place}" for place in ("inline", "auto", "beside", "in_place")] + [
    f"narrow_{dtype}" for dtype in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "bool", "f16", "f64")]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    built = sorted(ROOT.glob("build/*/unit_tests"), key=lambda path: path.stat().st_mtime)
    program = os.environ.get("PT2ONNX_UNIT_TESTS") or (built[-1] if built else None)
    if not program:
        pytest.skip("unit_tests is not built")
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([program, "--gtest_filter=OnnxModels.*"], env={**os.environ, "PT2ONNX_MODELS": str(folder)}, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_model(models, name):
    path = models / f"{name}.onnx"
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    facts = json.loads((models / f"{name}.json").read_text())
    for case in facts["cases"]:
        feeds = {key: numpy.ones([case["sizes"].get(dim, dim) for dim in shape], numpy.float32) for key, shape in facts["inputs"].items()}
        answers = dict(zip(outputs, session.run(None, feeds)))
        for output, expected in case["expect"].items():
            if expected != "skip":
                numpy.testing.assert_allclose(numpy.asarray(answers[output], numpy.float64), expected, rtol=1e-6, atol=1e-9, err_msg=f"{output} at {case['sizes']}")
