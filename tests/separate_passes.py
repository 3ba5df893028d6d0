#!/usr/bin/env python3
"""Passes fused and one by one give the same model: converts every .pt2 below the given folders both ways and compares bytes and messages.

    tests/separate_passes.py build/dev/pt2onnx FOLDER...          [--jobs N]

Ends with 1 if a program differs. What is refused must be refused with the same text.
"""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import tempfile


def outcome(converter, pt2, folder, *words):
    """Exit code, messages, and the files written."""
    folder.mkdir()
    done = subprocess.run([converter, "convert", pt2, "-o", folder / "model.onnx", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def compare(converter, pt2):
    """Whether it converts, and what differs ("" for nothing)."""
    with tempfile.TemporaryDirectory() as temporary:
        fused, apart = (outcome(converter, pt2, pathlib.Path(temporary) / kind, *words) for kind, words in [("fused", []), ("apart", ["--separate-passes"])])
    names = ("exit code", "messages", "files")
    return fused[0] == 0, ", ".join(name for name, a, b in zip(names, fused, apart) if a != b)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("converter")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1)
    words = parser.parse_args()
    files = sorted(path for folder in words.folders for path in folder.rglob("*.pt2"))
    converted = different = 0
    with concurrent.futures.ThreadPoolExecutor(words.jobs) as pool:
        for pt2, (done, what) in zip(files, pool.map(lambda pt2: compare(words.converter, pt2), files)):
            converted += done
            if what:
                different += 1
                print(f"{pt2}: {what} differ", flush=True)
    print(f"{len(files)} programs, {converted} convert, {different} differ")
    return different > 0


if __name__ == "__main__":
    sys.exit(main())
