"""Recurrent layers and cells."""
import itertools

import pytest
import torch
from test_linalg import rand
from torch import nn


class Layers(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, *states):
        return self.layer(x, (states if len(states) > 1 else states[0]) if states else None)


KINDS = {"lstm": (nn.LSTM, {}), "gru": (nn.GRU, {}), "tanh": (nn.RNN, {}), "relu": (nn.RNN, {"nonlinearity": "relu"}), "projected": (nn.LSTM, {"proj_size": 3})}


def states_of(layer, batch):
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    out = [rand(count, batch, layer.proj_size or layer.hidden_size)]
    return out + [rand(count, batch, layer.hidden_size) / 2] if isinstance(layer, nn.LSTM) else out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers, both, first, bias", [(1, False, False, True), (2, True, True, True), (2, False, True, False)])
def test_layers(check_program, kind, layers, both, first, bias):
    make, options = KINDS[kind]
    layer = make(4, 5, layers, bias=bias, batch_first=first, bidirectional=both, **options).eval()
    x = rand(*((2, 6) if first else (6, 2)), 4)
    check_program(Layers(layer), (x, *states_of(layer, 2)))
    batch = {0 if first else 1: torch.export.Dim.DYNAMIC}
    check_program(Layers(layer), (x,), dynamic_shapes={"x": batch}, calls=[((torch.cat([x, x + 1], 0 if first else 1),), None)])


@pytest.mark.parametrize("kind", ["lstm", "gru", "tanh"])
def test_float64_and_unbatched(check_program, kind):
    make, options = KINDS[kind]
    layer = make(4, 5, 1, bidirectional=True, **options).double().eval()
    check_program(Layers(layer), (rand(3, 2, 4).double(), *(s.double() for s in states_of(layer, 2))), rtol=1e-6)
    layer = make(4, 5, 2, **options).eval()
    check_program(Layers(layer), (rand(3, 4), *(s[:, 0] for s in states_of(layer, 1))))


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.ModuleList([*(make(4, 5, bias=bias) for make, bias in itertools.product([nn.GRUCell, nn.RNNCell], [True, False])), nn.RNNCell(4, 5, nonlinearity="relu")])
        self.lstm = nn.ModuleList([nn.LSTMCell(4, 5), nn.LSTMCell(4, 5, bias=False)])

    def forward(self, x, h, c):
        return [cell(x, h) for cell in self.cells], [cell(x[0]) for cell in self.cells], [cell(x, (h, c)) for cell in self.lstm]


def test_cells(check_program):
    check_program(Cells(), (rand(2, 4), rand(2, 5), rand(2, 5) / 2))


def test_few_nodes(check_program):
    layer = nn.LSTM(4, 5).eval()
    got = check_program(Layers(layer), (rand(6, 2, 4), *states_of(layer, 2))).op_types
    assert got.count("LSTM") == 1 and "Scan" not in got
