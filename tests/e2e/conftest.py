import pathlib
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import harness  # noqa: E402

DEMO = pathlib.Path(__file__).parents[1] / "demo" / "demo.pt2"


@pytest.fixture(autouse=True)
def _same_numbers_every_time():
    torch.manual_seed(0)
    torch.set_num_threads(1)


@pytest.fixture
def check_program(tmp_path):
    """check_program(module, args, kwargs=None, dynamic_shapes=..., calls=..., options=...): see harness.py."""
    def check(module, *args, **keywords):
        return harness.check_program(tmp_path, module, *args, **keywords)
    return check


@pytest.fixture
def run():
    """run(words...): the native program; gives code, out, err, errors."""
    return harness.run


@pytest.fixture
def demo():
    return DEMO
