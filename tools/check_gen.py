#!/usr/bin/env python3
"""Are the files under gen/ what the generators make of the checked-in data? Needs nothing but Python; ends with 1 if not.

Regenerates everything in memory and compares byte for byte; a file edited by hand is told apart by the checksum in its first line.
"""
import contextlib
import hashlib
import io
import pathlib
import re
import sys
import tempfile

import gen_kernels
import gen_lib
import gen_onnx
import gen_schemas


def onnx_files():
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        arguments, sys.argv = sys.argv, ["gen_onnx.py", "--out", folder]
        try:
            gen_onnx.main()
        finally:
            sys.argv = arguments
        return {f"gen/{path.name}": path.read_text(encoding="utf-8") for path in sorted(pathlib.Path(folder).iterdir())}


def problem(path, expected):
    target = gen_lib.ROOT / path
    if not target.exists():
        return "is missing"
    text = target.read_text(encoding="utf-8")
    head, _, body = text.partition("\n")
    stated = re.search(r"sha256 of what follows: ([0-9a-f]{64})", head)
    if stated and stated[1] != hashlib.sha256(body.encode()).hexdigest():
        return "was edited by hand"
    return None if text == expected else "is stale"


def main():
    generated = {**gen_schemas.generate(), **gen_kernels.generate(), **onnx_files()}
    problems = {path: problem(path, text) for path, text in generated.items()}
    for path in sorted((gen_lib.ROOT / "gen").iterdir()):
        problems.setdefault(f"gen/{path.name}", "comes from no generator")
    problems = {path: what for path, what in problems.items() if what}
    for path, what in problems.items():
        print(f"{path} {what}; run its generator under tools/")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
