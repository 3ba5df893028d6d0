"""Bad files and bad use: one clear message, the right exit code, nothing left behind, an older output untouched."""
import json
import os
import subprocess
import zipfile

import pytest
import torch

COMMANDS = ["convert", "functionalize", "decompose"]


def refuse(run, pt2, folder, code=1, command="convert", options=()):
    """Run the command, which must fail and change nothing in `folder`. Returns what it printed."""
    output = folder / "out.onnx"
    output.write_text("an older output")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = run(command, pt2, "-o", output, *options)
    assert done.code == code, done
    assert len(done.errors) == 1, done.err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    output.unlink()
    assert run(command, pt2, "-o", output, *options).code == code
    assert {path for path in folder.rglob("*") if path.is_file()} == set(before) - {output}
    return done


def repacked(source, target, change):
    """A copy of the archive with its entries changed: change(name, data) gives the new data, or None to leave the entry out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for entry in old.infolist():
            data = change(entry.filename, old.read(entry))
            if data is not None:
                new.writestr(entry.filename, data)
    return target


@pytest.mark.parametrize("command", COMMANDS)
def test_missing_file(run, tmp_path, command):
    assert "no_such.pt2" in refuse(run, tmp_path / "no_such.pt2", tmp_path, command=command).err


@pytest.mark.parametrize("command", COMMANDS)
def test_directory(run, tmp_path, command):
    (tmp_path / "folder.pt2").mkdir()
    assert "folder.pt2" in refuse(run, tmp_path / "folder.pt2", tmp_path, command=command).err


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"not a zip at all" * 100])
def test_not_an_archive(run, tmp_path, content):
    (tmp_path / "bad.pt2").write_bytes(content)
    refuse(run, tmp_path / "bad.pt2", tmp_path)


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.99, 0.9999])
def test_truncated(run, tmp_path, demo, kept):
    data = demo.read_bytes()
    (tmp_path / "cut.pt2").write_bytes(data[:int(len(data) * kept)])
    refuse(run, tmp_path / "cut.pt2", tmp_path)


def test_no_program(run, tmp_path, demo):
    pt2 = repacked(demo, tmp_path / "no_program.pt2", lambda name, data: None if name.endswith("models/model.json") else data)
    assert "program" in refuse(run, pt2, tmp_path).err


def test_program_cut_short(run, tmp_path, demo):
    pt2 = repacked(demo, tmp_path / "cut_json.pt2", lambda name, data: data[:-100] if name.endswith("models/model.json") else data)
    refuse(run, pt2, tmp_path)


def test_weight_missing(run, tmp_path, demo):
    pt2 = repacked(demo, tmp_path / "no_weight.pt2", lambda name, data: None if name.endswith("weights/weight_0") else data)
    assert "conv.weight" in refuse(run, pt2, tmp_path).err


def test_weight_cut_short(run, tmp_path, demo):
    pt2 = repacked(demo, tmp_path / "cut_weight.pt2", lambda name, data: data[:-4] if name.endswith("weights/weight_0") else data)
    assert "conv.weight" in refuse(run, pt2, tmp_path).err


def unknown_op(demo, folder):
    def change(name, data):
        return data.replace(b"torch.ops.aten.conv2d.default", b"torch.ops.mylib.conv9d.default") if name.endswith("models/model.json") else data
    return repacked(demo, folder / "unknown_op.pt2", change)


def test_unknown_op(run, tmp_path, demo):
    done = refuse(run, unknown_op(demo, tmp_path), tmp_path)
    assert "mylib::conv9d" in done.err
    assert "make_demo.py:" in done.err and "self.conv(image)" in done.err, done.err
    assert "--schema" in done.err or "--custom-op" in done.err, done.err


def test_unknown_op_that_writes(run, tmp_path):
    @torch.library.custom_op("pt2onnx_test::add_one_", mutates_args=("x",))
    def add_one_(x: torch.Tensor) -> None:
        x.add_(1)

    class Module(torch.nn.Module):
        def forward(self, x):
            y = x.clone()
            torch.ops.pt2onnx_test.add_one_(y)
            return y

    pt2 = tmp_path / "writes.pt2"
    torch.export.save(torch.export.export(Module(), (torch.ones(3),)), pt2)
    assert "pt2onnx_test::add_one_" in refuse(run, pt2, tmp_path).err
    # Whoever says that it does not write is believed.
    assert run("convert", pt2, "-o", tmp_path / "out.onnx", "--schema", "pt2onnx_test::add_one_(Tensor x) -> ()").code == 0


def test_check_lists_what_has_no_form(run, tmp_path, demo):
    done = run("check", unknown_op(demo, tmp_path))
    assert done.code == 1 and "mylib::conv9d" in done.out and len(done.errors) == 1


def test_errors_as_json(run, tmp_path, demo):
    done = run("convert", unknown_op(demo, tmp_path), "-o", tmp_path / "out.onnx", "--format", "json")
    answer = json.loads(done.out)
    assert done.code == answer["exit_code"] == 1
    [problem] = [problem for problem in answer["problems"] if problem["severity"] == "error"]
    assert problem["code"].startswith("E") and problem["op"] == "mylib::conv9d" and problem["file"] == "make_demo.py"


def test_output_folder_missing(run, tmp_path, demo):
    done = run("convert", demo, "-o", tmp_path / "no" / "such" / "out.onnx")
    assert done.code == 1 and len(done.errors) == 1 and not any(tmp_path.iterdir())


def test_output_is_a_directory(run, tmp_path, demo):
    (tmp_path / "out.onnx").mkdir()
    done = run("convert", demo, "-o", tmp_path / "out.onnx")
    assert done.code == 1 and len(done.errors) == 1
    assert list(tmp_path.rglob("*")) == [tmp_path / "out.onnx"]


class Wide(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)

    def forward(self, x):
        return self.linear(x)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"can't mount a tmpfs here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("data", ["never", "always"])
def test_no_space_left(run, tmp_path, small_disk, data):
    torch.export.save(torch.export.export(Wide(), (torch.randn(2, 256),)), tmp_path / "wide.pt2")
    output = small_disk / "out.onnx"
    output.write_text("an older output")
    done = run("convert", tmp_path / "wide.pt2", "-o", output, "--external-data", data)
    assert done.code == 1 and len(done.errors) == 1 and "space" in done.err.lower(), done
    assert os.listdir(small_disk) == ["out.onnx"] and output.read_text() == "an older output"
