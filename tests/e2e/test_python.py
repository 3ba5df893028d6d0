"""The Python module."""
import onnx
import pt2onnx
import pytest
import torch


def test_convert(demo, tmp_path):
    report = pt2onnx.convert(demo, tmp_path / "demo.onnx", opset=21, fuse="none", dim_names={"picture:0": "n"}, input_names=["picture"])
    assert report.exit_code == 0 and report.timings
    model = onnx.load(tmp_path / "demo.onnx")
    assert model.opset_import[0].version == 21 and model.graph.input[0].name == "picture"
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


def test_same_bytes_as_the_program(demo, tmp_path, run):
    pt2onnx.convert(demo, tmp_path / "a.onnx")
    run("convert", demo, "-o", tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_bad_file_raises(tmp_path):
    (tmp_path / "bad.pt2").write_bytes(b"no archive")
    with pytest.raises(pt2onnx.ConversionError, match=r"bad\.pt2: error\[E\d+\]"):
        pt2onnx.convert(tmp_path / "bad.pt2", tmp_path / "bad.onnx")
    assert not (tmp_path / "bad.onnx").exists()


@pytest.mark.parametrize("options, kind", [({"opsets": 20}, TypeError), ({"opset": True}, TypeError), ({"verbose": "yes"}, TypeError),
                                           ({"opset": 99}, ValueError), ({"mode": "test"}, ValueError), ({"dim_names": ["s77"]}, ValueError)])
def test_wrong_options(demo, tmp_path, options, kind):
    with pytest.raises(kind, match=next(iter(options))):
        pt2onnx.convert(demo, tmp_path / "demo.onnx", **options)


def test_warning(tmp_path):
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(3)).train()
    torch.export.save(torch.export.export(module, (torch.randn(4, 3),)), tmp_path / "train.pt2")
    with pytest.warns(pt2onnx.ConversionWarning, match="training"):
        pt2onnx.convert(tmp_path / "train.pt2", tmp_path / "train.onnx")


def test_readers(demo):
    assert "aten::conv2d" in pt2onnx.inspect(demo)
    assert pt2onnx.check(demo).exit_code == 0


def test_explain(demo):
    assert "counter" in pt2onnx.explain(demo)
