"""--decompose my::op=impl.pt2: what a custom operator does, given as another exported program."""
import pytest
import torch

X = torch.arange(12.0).reshape(3, 4) / 4 - 1


@torch.library.custom_op("pt2onnx_test::scaled", mutates_args=())
def scaled(x: torch.Tensor, parts: list[torch.Tensor], by: float) -> torch.Tensor:
    return x * by + sum(parts)


@scaled.register_fake
def _(x, parts, by):
    return torch.empty_like(x)


@torch.library.custom_op("pt2onnx_test::bump", mutates_args=("x",))
def bump(x: torch.Tensor) -> None:
    x.add_(1)


@torch.library.custom_op("pt2onnx_test::weighted", mutates_args=())
def weighted(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor([1.0, 2.0, 3.0, 4.0])


@weighted.register_fake
def _(x):
    return torch.empty_like(x)


class CallsScaled(torch.nn.Module):
    def forward(self, x, y):
        return scaled(x.relu(), [y, y * 2], 2.0) + 1


class Weighted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("w", torch.tensor([1.0, 2.0, 3.0, 4.0]))

    def forward(self, x):
        return x * self.w


def save(folder, module, args, name="impl.pt2", dynamic_shapes=None):
    torch.export.save(torch.export.export(module, args, dynamic_shapes=dynamic_shapes), folder / name)
    return folder / name


def module_of(f):
    return type("M", (torch.nn.Module,), {"forward": lambda self, *args: f(*args)})()


def test_lists_numbers_and_dynamic_sizes(check_program, tmp_path):
    class Impl(torch.nn.Module):
        def forward(self, x, parts, by: float):
            y = x.clone()
            y.mul_(by)
            row = y[0]
            row.add_(parts[0][0])
            row.add_(parts[1][0])
            return torch.cat([y[:1], y[1:] + parts[0][1:] + parts[1][1:]])
    any_rows = {0: torch.export.Dim.AUTO}
    impl = save(tmp_path, Impl(), (X, [X + 1, X + 2], 2.0), dynamic_shapes=(any_rows, [any_rows, any_rows], None))
    checked = check_program(CallsScaled(), (X, X + 1), calls=[((X[:2], X[1:]), None)], dynamic_shapes=({0: torch.export.Dim("n")}, {0: torch.export.Dim("n")}),
                            options=["--decompose", f"pt2onnx_test::scaled={impl}"])
    assert not any(node.domain for node in checked.model.graph.node)


def test_an_op_that_writes(check_program, tmp_path):
    def calls(x):
        y = x.clone()
        bump(y[1])
        return y
    impl = save(tmp_path, module_of(lambda x: (x.add_(1), None)[1]), (X[1],))
    check_program(module_of(calls), (X,), options=["--decompose", f"pt2onnx_test::bump={impl}"])


def test_weights_of_its_own(check_program, tmp_path):
    impl = save(tmp_path, Weighted(), (X,))
    checked = check_program(module_of(lambda x: weighted(x) + weighted(x + 1)), (X,), options=["--decompose", f"pt2onnx_test::weighted={impl}"])
    assert [t.name for t in checked.model.graph.initializer if t.dims == [4]] == ["pt2onnx_test::weighted.w"]


def test_an_op_of_pytorch(check_program, tmp_path):
    impl = save(tmp_path, module_of(lambda x: x * torch.sigmoid(1.702 * x)), (X,))
    checked = check_program(module_of(lambda x: torch.nn.functional.gelu(x)), (X,), options=["--decompose", f"aten::gelu={impl}"], rtol=0.2, atol=0.05)
    assert "Sigmoid" in checked.op_types


@pytest.mark.parametrize("fault", ["size", "dtype", "missing", "not called"])
def test_what_does_not_fit(tmp_path, run, fault):
    program = save(tmp_path, module_of(lambda x: weighted(x)), (X,), "program.pt2")
    example = {"size": X[:2], "dtype": X.double()}.get(fault, X)
    impl = save(tmp_path, module_of(lambda x: x * 2), (example,))
    op = "pt2onnx_test::nothing" if fault == "not called" else "pt2onnx_test::weighted"
    done = run("convert", program, "-o", tmp_path / "m.onnx", "--decompose", f"{op}={tmp_path / 'no.pt2' if fault == 'missing' else impl}")
    assert done.code == (2 if fault == "missing" else 1)
    assert {"missing": "E0101", "not called": "E0301"}.get(fault, "E0207") in done.err
    if fault == "not called":
        assert "W0207" in done.err
