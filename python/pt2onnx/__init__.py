"""PyTorch exported programs (.pt2) to ONNX.

    import pt2onnx
    pt2onnx.convert("model.pt2", "model.onnx", opset=21, dim_names={"s77": "batch"})

Options are those of the command line (`pt2onnx convert --help`), with lists for what may be repeated and dicts for pairs.
"""
from __future__ import annotations

import os
import tempfile
import warnings

from . import _pt2onnx
from ._pt2onnx import Report

__all__ = ["ConversionError", "ConversionWarning", "Report", "check", "convert", "decompose", "explain", "export", "functionalize", "inspect"]
__version__ = _pt2onnx.version


class ConversionError(Exception):
    """The program can't be converted, or a file is bad. The text lists every problem; `report` has them as data."""

    def __init__(self, report: Report):
        super().__init__(str(report))
        self.report = report


class ConversionWarning(UserWarning):
    """The conversion is done, and something about it should be known."""


def _answer(report: Report) -> Report:
    if report.exit_code == 2:
        raise ValueError(str(report))
    if report.exit_code:
        raise ConversionError(report)
    if text := str(report):
        warnings.warn(text, ConversionWarning, stacklevel=3)
    return report


def convert(program, out: str | os.PathLike, *, dynamic_shapes=None, **options) -> Report:
    """Write a program as an ONNX model to `out`.

    program: the path of a .pt2 file, or a torch.export.ExportedProgram.
    dynamic_shapes: what torch.export.export was given; the names of its Dim(...) become those of the model's dimensions.
    decompositions: {"my::op": path or ExportedProgram}, what a custom operator does.
    """
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(program, (str, os.PathLike)):
            if dynamic_shapes is not None:
                raise TypeError("dynamic_shapes needs an ExportedProgram; name the dimensions of a file with dim_names")
        else:
            from . import _exported
            options["dim_names"] = _exported.dim_names(program, dynamic_shapes) | dict(options.get("dim_names") or {})
        if given := options.get("decompositions"):
            options["decompositions"] = {op: _path(what, folder, f"implementation{i}.pt2") for i, (op, what) in enumerate(given.items())}
        return _answer(_pt2onnx.convert(_path(program, folder, "program.pt2"), os.fspath(out), options))


def _path(program, folder: str, name: str) -> str:
    """Where a program lies; an ExportedProgram is saved to `folder` first."""
    if isinstance(program, (str, os.PathLike)):
        return os.fspath(program)
    import torch
    path = os.path.join(folder, name)
    torch.export.save(program, path)
    return path


def export(model, args=(), f: str | os.PathLike = "model.onnx", *, kwargs=None, dynamic_shapes=None, opset_version=None, strict=False, **options):
    """Capture a module (or a function) with torch.export.export and convert it. Returns the ExportedProgram. Called as torch.onnx.export is.

        batch = torch.export.Dim("batch")
        pt2onnx.export(module, (x,), "model.onnx", dynamic_shapes={"x": {0: batch}}, input_names=["image"])
    """
    from . import _exported
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    program = _exported.export(model, args, kwargs, dynamic_shapes, strict)
    if opset_version is not None:
        options["opset"] = opset_version
    convert(program, f, dynamic_shapes=dynamic_shapes, **options)
    return program


def functionalize(path: str | os.PathLike, out: str | os.PathLike, **options) -> Report:
    """Write a .pt2 in which every write has become a value."""
    return _answer(_pt2onnx.functionalize(os.fspath(path), os.fspath(out), options))


def decompose(path: str | os.PathLike, out: str | os.PathLike, **options) -> Report:
    """As functionalize, with Core ATen operators only."""
    return _answer(_pt2onnx.decompose(os.fspath(path), os.fspath(out), options))


def inspect(path: str | os.PathLike, **options) -> str:
    """The program as text, after the stage asked for: stage="training", "functional", "core" or "onnx"."""
    return _answer(_pt2onnx.inspect(os.fspath(path), options)).output


def check(path: str | os.PathLike, **options) -> Report:
    """What of the program has no ONNX form, without converting. Never raises for that: see `exit_code` and `output`."""
    return _pt2onnx.check(os.fspath(path), options)


def explain(path: str | os.PathLike, **options) -> str:
    """What became of each write of the program."""
    return _answer(_pt2onnx.explain(os.fspath(path), options)).output
