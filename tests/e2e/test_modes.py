"""--mode: what was captured, or training turned off or on, for every kind of layer that has a mode; random operators by their distribution."""
import copy

import numpy as np
import pytest
import torch
from harness import Session, check_program as check, to_numpy
from torch import nn

X = torch.linspace(-2, 3, 2 * 4 * 6).reshape(2, 4, 6).sin() * 3
IMAGES = torch.linspace(-1, 1, 2 * 4 * 5 * 5).reshape(2, 4, 5, 5).cos()


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, dropout=0.4, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class SDPAttention(nn.Module):
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5 if self.training else 0.0)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rnn = kind(6, 5, num_layers=2, dropout=0.5, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]


class NoGrad(nn.Module):
    """Layers in a region of another gradient mode."""
    def __init__(self):
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(4), nn.Dropout(0.5)

    def forward(self, x):
        with torch.no_grad():
            y = self.drop(self.norm(x))
        return y + 1


class Frozen(nn.Module):
    """A training net with one layer in evaluation."""
    def __init__(self):
        super().__init__()
        self.trained, self.frozen = nn.BatchNorm1d(4), nn.BatchNorm1d(4)

    def forward(self, x):
        return self.frozen(self.trained(x))

    def train(self, mode=True):
        super().train(mode)
        self.frozen.eval()
        return self


class Twice(nn.Module):
    """Two calls see each other's statistics."""
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.norm(x) * 2)


DETERMINISTIC = {
    "batch_norm": lambda: nn.BatchNorm1d(4), "batch_norm_momentum": lambda: nn.BatchNorm1d(4, momentum=0.7), "batch_norm_no_affine": lambda: nn.BatchNorm1d(4, affine=False),
    "batch_norm_no_statistics": lambda: nn.BatchNorm1d(4, track_running_stats=False), "batch_norm_2d": lambda: nn.BatchNorm2d(4),
    "instance_norm": lambda: nn.InstanceNorm1d(4), "instance_norm_statistics": lambda: nn.InstanceNorm1d(4, affine=True, track_running_stats=True),
    "frozen": Frozen, "twice": Twice,
}
RANDOM = {
    "dropout": lambda: nn.Dropout(0.3), "dropout_in_place": lambda: nn.Sequential(nn.Conv1d(4, 4, 1), nn.Dropout(0.3, inplace=True)), "dropout1d": lambda: nn.Dropout1d(0.5), "dropout2d": lambda: nn.Dropout2d(0.5),
    "alpha_dropout": lambda: nn.AlphaDropout(0.2), "feature_alpha_dropout": lambda: nn.FeatureAlphaDropout(0.2), "rrelu": lambda: nn.RReLU(), "rrelu_in_place": lambda: nn.Sequential(nn.Conv1d(4, 4, 1), nn.RReLU(inplace=True)),
    "attention": Attention, "lstm": lambda: Recurrent(nn.LSTM), "gru": lambda: Recurrent(nn.GRU), "rnn": lambda: Recurrent(nn.RNN),
    "encoder_layer": lambda: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.5, batch_first=True), "no_grad": NoGrad,
}


def example(name):
    return IMAGES if "2d" in name else X


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_preserve(check_program, name):
    module, x = DETERMINISTIC[name]().train(), example(name)
    checked = check_program(module, (x,), calls=[((x * 2 + 1,), None), ((x - 3,), None)])
    assert ("W0101" in checked.run.err) == (name not in ("batch_norm_no_statistics", "instance_norm"))


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_preserve_evaluation(check_program, name):
    checked = check_program(DETERMINISTIC[name]().eval(), (example(name),))
    assert not checked.run.err and len(checked.session.outputs) == 1


def export_in(mode):
    def export(module, args, kwargs, dynamic_shapes=None):
        return torch.export.export(copy.deepcopy(module).train(mode), args, kwargs, dynamic_shapes=dynamic_shapes)
    return export


@pytest.mark.parametrize("name", [*DETERMINISTIC, *RANDOM])
def test_eval(check_program, name):
    """Captured while training; answers as in evaluation, and changes nothing."""
    module = {**DETERMINISTIC, **RANDOM}[name]().eval()
    checked = check_program(module, (example(name),), options=["--mode", "eval"], export=export_in(True))
    assert len(checked.session.outputs) == 1 and not checked.run.err


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_train(check_program, name):
    """Captured in evaluation; trains as the module does, besides the counter, which was not captured."""
    module = DETERMINISTIC[name]()
    if name == "frozen":
        pytest.skip("a flag that the module set itself is not known any more")
    for child in module.modules():
        if hasattr(child, "num_batches_tracked"):
            child.num_batches_tracked = None
    check_program(module.train(), (example(name),), calls=[((example(name) * 2,), None)], options=["--mode", "train"], export=export_in(False))


@pytest.mark.parametrize("name", RANDOM)
def test_training_draws(tmp_path, name):
    """Preserved training runs, gives the shapes that PyTorch gives, and draws anew each time."""
    module, x = RANDOM[name]().train(), example(name)
    checked = check(tmp_path, module, (x,), values=False)
    first, second = (checked.session({checked.session.inputs[0]: to_numpy(x)}) for _ in range(2))
    assert any(not np.array_equal(first[key], second[key]) for key in first)


def test_what_no_flag_decides_is_reported(tmp_path):
    class ByHand(nn.Module):
        def forward(self, x):
            return nn.functional.dropout(x, 0.5, training=True)
    checked = check(tmp_path, ByHand(), (X,), options=["--mode", "eval"], values=False)
    assert "W0102" in checked.run.err


def test_power_iteration_is_reported(tmp_path):
    module = nn.utils.parametrizations.spectral_norm(nn.Linear(6, 3)).train()
    checked = check(tmp_path, module, (X,), options=["--mode", "eval"])
    assert "W0103" in checked.run.err


N = 40_000


def draws(tmp_path, body, *args, options=()):
    """What the model draws, twice."""
    module = type("M", (nn.Module,), {"forward": lambda self, *args: body(*args)})()
    torch.export.save(torch.export.export(module, args or (torch.ones(N),)), tmp_path / "m.pt2")
    from harness import run
    done = run("convert", tmp_path / "m.pt2", "-o", tmp_path / "m.onnx", *options)
    assert done.code == 0, done.err
    session = Session(tmp_path / "m.onnx")
    feeds = dict(zip(session.inputs, map(to_numpy, args or (torch.ones(N),))))
    return session(feeds)[session.outputs[0]], session(feeds)[session.outputs[0]]


@pytest.mark.parametrize(("body", "mean", "deviation"), [
    (lambda x: torch.rand_like(x), 0.5, 12**-0.5), (lambda x: torch.randn_like(x) * 2 + 1, 1, 2), (lambda x: x.clone().normal_(3, 0.5), 3, 0.5),
    (lambda x: x.clone().uniform_(-1, 3), 1, 4 / 12**0.5), (lambda x: x.clone().bernoulli_(0.2), 0.2, 0.4), (lambda x: torch.bernoulli(x * 0.7), 0.7, 0.21**0.5),
    (lambda x: x.clone().exponential_(2.0), 0.5, 0.5), (lambda x: x.clone().log_normal_(0.0, 0.25), 1.0317, 0.262), (lambda x: x.clone().geometric_(0.5), 2, 2**0.5),
    (lambda x: torch.randint_like(x, 10), 4.5, 8.25**0.5), (lambda x: torch.nn.functional.dropout(x, 0.25, True), 1, (1 / 0.75 - 1)**0.5),
    (lambda x: torch.nn.functional.rrelu(-x, 0.1, 0.5, True), -0.3, 0.4 / 12**0.5), (lambda x: torch.nn.functional.alpha_dropout(x * 0, 0.5, True), 0, 0.7792),
    (lambda x: torch.multinomial(torch.tensor([1.0, 3.0]), N, True).float() + 0 * x, 0.75, 0.1875**0.5),
], ids=["rand", "randn", "normal_", "uniform_", "bernoulli_", "bernoulli", "exponential_", "log_normal_", "geometric_", "randint", "dropout", "rrelu", "alpha_dropout", "multinomial"])
def test_distribution(tmp_path, body, mean, deviation):
    first, second = draws(tmp_path, body)
    assert not np.array_equal(first, second)
    assert abs(first.mean() - mean) < 6 * deviation / N**0.5 + 1e-3
    assert abs(first.std() - deviation) < 0.03 * max(deviation, 0.1)


def test_seed(tmp_path):
    def body(x):
        return torch.rand_like(x) + 2 * torch.rand_like(x)
    one, again, other = (draws(tmp_path, body, options=["--seed", seed])[0] for seed in (7, 7, 8))
    assert np.array_equal(one, again) and not np.array_equal(one, other)
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 0.05
