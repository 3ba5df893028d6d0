"""Random programs that write in place, converted and compared with eager PyTorch, exactly: outputs, written inputs, buffers, all calls.

PT2ONNX_RANDOM_PROGRAMS: how many (default 25); PT2ONNX_RANDOM_SEED: the first. tools/reduce.py SEED shows a failing one made small.
"""
import os

import pytest
import random_programs

FIRST, COUNT = int(os.environ.get("PT2ONNX_RANDOM_SEED", 0)), int(os.environ.get("PT2ONNX_RANDOM_PROGRAMS", 25))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_random_program(check_program, seed):
    program = random_programs.generate(seed)
    try:
        exported = random_programs.check(program, check_program)
    except Exception as error:
        raise AssertionError(f"{error}\n\nseed {seed}; tools/reduce.py {seed} makes it small\n{program.text()}") from error
    if not exported:
        pytest.skip("PyTorch can't export it")
