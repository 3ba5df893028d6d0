#!/usr/bin/env python3
"""Makes a failing random program of tests/e2e/random_programs.py small, and prints it with what goes wrong.

    tools/reduce.py 1234                  the program of a seed that test_random_programs.py shows failing
    tools/reduce.py --search 0 500        the failing seeds among these

Needs what tests/requirements.txt names; the converter is $PT2ONNX, or the pt2onnx beside this Python.
"""
import argparse
import functools
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "e2e"))
import harness  # noqa: E402
import random_programs  # noqa: E402


def fault(program):
    """What goes wrong, in one line; None if nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            random_programs.check(program, functools.partial(harness.check_program, folder))
        except Exception as error:  # noqa: BLE001
            lines = [line for line in str(error).splitlines() if line.strip()]
            return next((line for line in lines if ": error" in line), lines[0] if lines else repr(error))
    return None


def sort(text):
    """The kind of a fault: what may not change while the program gets smaller."""
    for kind in ("exit code", "error E", "ONNXRuntimeError"):
        if kind in text:
            return text[text.index(kind):][:12]
    return "difference"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int, nargs="?")
    parser.add_argument("--search", type=int, nargs=2, metavar=("FIRST", "END"))
    words = parser.parse_args()
    if words.search:
        for seed in range(*words.search):
            if found := fault(random_programs.generate(seed)):
                print(f"{seed}: {found}", flush=True)
        return 0
    if words.seed is None:
        parser.error("a seed, or --search")
    program = random_programs.generate(words.seed)
    found = fault(program)
    if not found:
        print(f"seed {words.seed} does not fail")
        return 0
    small = random_programs.reduce(program, lambda p: (other := fault(p)) is not None and sort(other) == sort(found))
    print(f"seed {words.seed}: {fault(small)}\n{small.text()}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
