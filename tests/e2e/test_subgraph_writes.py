"""Bodies of cond, loops, scan and map that write to what they were given.

torch.export refuses to capture such programs, but loads and runs them. So they are captured out of place, with `sub` where the eager module
subtracts in place, and then every `sub` of a sub-graph becomes `sub_`; its result is used, since capture drops what is not.
"""
import pytest
import torch
from torch._higher_order_ops.map import map as hop_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

X = torch.arange(6.0).reshape(2, 3) - 2
YES, NO = torch.tensor(True), torch.tensor(False)


def export_with_writes(capture):
    """An `export` for check_program: captures `capture` in place of the eager module, with its weights."""
    def export(module, args, kwargs, dynamic_shapes=None):
        class Captured(type(module)):
            forward = capture
        twin = Captured()
        twin.load_state_dict(module.state_dict())
        exported = torch.export.export(twin, args, kwargs, dynamic_shapes=dynamic_shapes)
        changed = 0
        for inner in exported.graph_module.modules():
            if inner is exported.graph_module or not isinstance(inner, torch.fx.GraphModule):
                continue
            for node in inner.graph.nodes:
                if node.target is torch.ops.aten.sub.Tensor:
                    node.target = torch.ops.aten.sub_.Tensor
                    changed += 1
            inner.recompile()
        assert changed
        graph = exported.graph_module.graph
        for node in list(graph.nodes):                  # operands on one memory are refused too: captured as clones of views
            if node.target is torch.ops.aten.clone.default and node.args[0].target is torch.ops.aten.select.int:
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
        return exported
    return export


class Buffer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.tensor([1.0, 2.0, 3.0]))


class WritesABuffer(Buffer):
    def forward(self, x, p):
        return (x + self.b.sub_(x[0]) if p else x * self.b), self.b * 2

    def captured(self, x, p):
        y = torch.cond(p, lambda x, b: x + b.sub(x[0]), lambda x, b: x * b, (x, self.b))
        return y, self.b * 2


class WritesAView(Buffer):
    def forward(self, x, p):
        y = x.clone()
        row, column = y[1], y[:, 1]
        if p:
            row.sub_(self.b)
            return row * 2, column + 0, y
        return row * 3, column + 0, y

    def captured(self, x, p):
        y = x.clone()
        row, column = y[1], y[:, 1]
        z = torch.cond(p, lambda r, b: r.sub(b) * 2, lambda r, b: r * 3, (row, self.b))
        return z, column + 0, y


class OperandsOnOneMemory(Buffer):
    def forward(self, x, p):
        y = x.clone()
        row, column = y[1], y[:, 1]
        if p:
            row.sub_(self.b)
            return column * 2, y
        return column * 3, y

    def captured(self, x, p):
        y = x.clone()
        def written(r, c, b):
            used = r.sub(b)
            return c * 2 + used[0] * 0
        z = torch.cond(p, written, lambda r, c, b: c * 3, (y[1], y[:, 1].clone(), self.b))
        return z, y


class Nested(Buffer):
    def forward(self, x, p):
        if p:
            return x + self.b.sub_(x[0]) if x.sum() > 0 else x - 1.0
        return x * 2

    def captured(self, x, p):
        def inner(x, b):
            return torch.cond(x.sum() > 0, lambda x, b: x + b.sub(x[0]), lambda x, b: x + -1.0, (x, b))
        return torch.cond(p, inner, lambda x, b: x * 2, (x, self.b))


@pytest.mark.parametrize("module", [WritesABuffer(), WritesAView(), OperandsOnOneMemory(), Nested()], ids=lambda m: type(m).__name__)
def test_cond(check_program, module):
    calls = [((x, p), None) for x in (X, X + 5) for p in (NO, YES)]
    check_program(module, (X, YES), calls=calls, export=export_with_writes(type(module).captured))


class LoopOverABuffer(Buffer):
    def forward(self, n, x):
        while n < 4:
            self.b.sub_(x[0])
            n = n + 1
        return n, self.b + 1


def test_while_loop(check_program):
    module = LoopOverABuffer()

    def capture(self, n, x):
        from torch._higher_order_ops.while_loop import while_loop_op

        def body(n, b, r):
            return (n + 1 + (b.sub(r)[0] * 0).long(),)
        return while_loop_op(lambda n, b, r: n < 4, body, (n,), (self.b, x[0]))[0], self.b + 1
    calls = [((torch.tensor(3), X), None), ((torch.tensor(9), X), None)]
    check_program(module, (torch.tensor(0), X), calls=calls, export=export_with_writes(capture))


class ScanWithACounter(Buffer):
    def forward(self, x):
        total, out = torch.zeros(3), []
        for row in x:
            self.b.sub_(row)
            total = total + row * self.b
            out.append(total * 2)
        return total, torch.stack(out)

    def captured(self, x):
        b = self.b

        def step(total, row):
            total = total + row * b.sub(row)
            return total, total * 2
        return scan(step, torch.zeros(3), x)


class MapWithACounter(Buffer):
    def forward(self, x):
        return torch.stack([row * self.b.sub_(row) for row in x])

    def captured(self, x):
        return hop_map(lambda row, b: row * b.sub(row), x, self.b)


@pytest.mark.parametrize("module", [ScanWithACounter(), MapWithACounter()], ids=lambda m: type(m).__name__)
def test_scan_and_map(check_program, module):
    check_program(module, (X,), calls=[((X * 2,), None)], export=export_with_writes(type(module).captured))


class NoGradForItsEffect(Buffer):
    def forward(self, x):
        with torch.no_grad():
            self.b.copy_(x[0])
        return x + self.b


class NoGradWritesALocal(Buffer):
    def forward(self, x):
        y = x.clone()
        row = y[0]
        with torch.no_grad():
            row.mul_(self.b)
            z = y[:, 1]
        return z + 1, y


class AutocastWrites(Buffer):
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            self.b.add_((x @ x.t())[0, 0])
            y = self.b * 2
        return y.float() + self.b


@pytest.mark.parametrize("module", [NoGradForItsEffect(), NoGradWritesALocal(), AutocastWrites()], ids=lambda m: type(m).__name__)
def test_mode_regions(check_program, module):
    options = ["--compute", "bfloat16=float32"] if isinstance(module, AutocastWrites) else []
    check_program(module, (X,), calls=[((X + 1,), None)], options=options, rtol=2e-2)


def test_a_loop_that_replaces_what_it_wrote_is_refused(tmp_path, run):
    class Replaces(torch.nn.Module):
        def forward(self, n, x):
            def body(n, x):
                return n + 1, x.sub(1.0) * 2
            return while_loop(lambda n, x: n < 4, body, (n, x))
    exported = export_with_writes(Replaces.forward)(Replaces(), (torch.tensor(0), X), {})
    torch.export.save(exported, tmp_path / "m.pt2")
    done = run("convert", tmp_path / "m.pt2", "-o", tmp_path / "m.onnx")
    assert done.code == 1 and "E0204" in done.err
