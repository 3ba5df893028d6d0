"""--functions: one local function for each module class, shared by the modules that do the same; the same numbers."""
import onnx.inliner
import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.up, self.down, self.activation = nn.Linear(8, 16), nn.Linear(16, 8), activation

    def forward(self, x):
        return self.down(self.activation(self.up(x)))


class Block(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.norm, self.mlp = nn.LayerNorm(8), Mlp(activation)
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        self.steps.add_(1)
        return x + self.mlp(self.norm(x)) * self.steps


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(nn.GELU()), Block(nn.GELU()), Block(nn.ReLU())])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.sum(-1), x


def bodies(model):
    return {function.name: [node.op_type for node in function.node if node.op_type != "Constant"] for function in model.functions}


def test_modules_of_a_class_share_a_function(check_program):
    checked = check_program(Net(), (torch.randn(3, 8),), dynamic_shapes=({0: torch.export.Dim("n")},), calls=[((torch.randn(1, 8),), {})], options=("--functions",))
    assert bodies(checked.model) == {"Mlp": ["Gemm", "Gelu", "Gemm"], "Block": ["LayerNormalization", "Mlp", "Add", "Mul", "Add"],
                                     "Mlp_2": ["Gemm", "Relu", "Gemm"], "Block_2": ["LayerNormalization", "Mlp_2", "Add", "Mul", "Add"]}
    calls = [node for node in checked.model.graph.node if node.domain == "pt2onnx"]
    assert [node.op_type for node in calls] == ["Block", "Block", "Block_2"]
    assert calls[1].name == "blocks.1/Block" and "blocks.1.mlp.up.weight" in calls[1].input
    [block] = [function for function in checked.model.functions if function.name == "Block"]
    assert "mlp.up.weight" in block.input


class Branching(nn.Module):
    def forward(self, p, x):
        return torch.cond(p, lambda x: x.sin() + 1, lambda x: x.cos() - 1, (x,)) * 2


class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.branching = Branching()

    def forward(self, p, x):
        return self.branching(p, x) + 1


def test_control_flow_stays_in_the_graph(check_program):
    checked = check_program(Around(), (torch.tensor(True), torch.randn(3)), calls=[((torch.tensor(False), torch.randn(3)), {})], options=("--functions",))
    assert "If" in checked.op_types and not checked.model.functions


class Paused(nn.Module):
    """Half of its work before what needs it and is needed by the other half."""

    def forward(self, x, between):
        y = (x + 1).relu()
        return between(y) * y.exp()


class Pausing(nn.Module):
    def __init__(self):
        super().__init__()
        self.paused = Paused()

    def forward(self, x):
        return self.paused(x, lambda y: y.sin())


def test_inlined_it_is_the_model_without_functions(check_program):
    checked = check_program(Net(), (torch.randn(3, 8),), options=("--functions",))
    inlined = onnx.inliner.inline_local_functions(checked.model)
    plain = check_program(Net(), (torch.randn(3, 8),))
    assert sorted(node.op_type for node in inlined.graph.node if node.op_type != "Constant") == sorted(plain.op_types)


def test_small_functions_and_opsets(check_program):
    for opset in (18, 23):
        check_program(Pausing(), (torch.randn(3),), options=("--functions",), opset=opset)
