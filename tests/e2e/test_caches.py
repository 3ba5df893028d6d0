"""Caches of decoders, fed back for eight steps: static ones as state, growing ones as inputs and outputs; an encoder beside them."""
import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F


def rand(*shape):
    return torch.randn(*shape)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))

    def heads(self, x):
        return x.view(x.shape[0], -1, 2, 4).transpose(1, 2)

    def merged(self, y):
        return self.o(y.transpose(1, 2).reshape(y.shape[0], -1, 8))


class Static(Attention):
    """Written by index_copy_ and by assignment, one of them in no checkpoint."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, 2, 16, 4))
        self.register_buffer("values", torch.zeros(1, 2, 16, 4), persistent=False)

    def forward(self, x, at):
        self.keys.index_copy_(2, at, self.heads(self.k(x)))
        self.values[:, :, at] = self.heads(self.v(x))
        seen = torch.arange(16)[None] <= at[:, None]
        return self.merged(F.scaled_dot_product_attention(self.heads(self.q(x)), self.keys, self.values, attn_mask=seen))


class Counting(Static):
    """The place is state too."""

    def __init__(self):
        super().__init__()
        self.register_buffer("at", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        place = self.at.item()
        torch._check(place >= 0)
        torch._check(place < 15)
        self.keys[:, :, place:place + 1] = self.heads(self.k(x))
        self.values.narrow(2, place, 1).copy_(self.heads(self.v(x)))
        seen = torch.arange(16) <= self.at
        self.at += 1
        return self.merged(F.scaled_dot_product_attention(self.heads(self.q(x)), self.keys, self.values, attn_mask=seen[None]))


class Rolling(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.zeros(1, 4, 3))
        self.register_buffer("rolled", torch.zeros(1, 4, 3))

    def forward(self, x):
        self.window.copy_(torch.cat([self.window[:, x.shape[1]:], x], 1))
        self.rolled = torch.roll(self.rolled, -1, 1)
        self.rolled[:, -1] = x[:, 0]
        return self.window.mean(1), self.rolled.sum(1)


def steps(x, n=8):
    return [((rand(*x), torch.tensor([i])), None) for i in range(1, n)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_static(check_program, dtype):
    calls = [((x.to(dtype), at), None) for (x, at), _ in steps((1, 1, 8))]
    checked = check_program(Static().to(dtype), (rand(1, 1, 8).to(dtype), torch.tensor([0])), calls=calls)
    assert checked.session.state == ["keys", "values"] and checked.session.outputs[1:] == ["keys_next", "values_next"]


def test_static_after_a_prompt(check_program):
    check_program(Static(), (rand(1, 3, 8), torch.tensor([0, 1, 2])), dynamic_shapes=({1: Dim("n")}, {0: Dim("n")}), calls=steps((1, 1, 8))[2:])


@pytest.mark.parametrize("options", [[], ["--state", "inputs"]], ids=str)
def test_counting(check_program, options):
    check_program(Counting(), (rand(1, 1, 8),), calls=[((rand(1, 1, 8),), None)] * 7, options=options)


def test_rolling(check_program):
    check_program(Rolling(), (rand(1, 1, 3),), calls=[((rand(1, 1, 3),), None) for _ in range(7)])


class Growing(Attention):
    """Encoder and decoder: the cache of the past, and keys of the encoder's answer."""

    def __init__(self):
        super().__init__()
        self.encoder, self.cross = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, source, x, keys, values):
        keys, values = torch.cat([keys, self.heads(self.k(x))], 2), torch.cat([values, self.heads(self.v(x))], 2)
        y = self.merged(F.scaled_dot_product_attention(self.heads(self.q(x)), keys, values))
        encoded = self.encoder(source)
        return self.cross(y, encoded, encoded, need_weights=False)[0], keys, values


def test_growing(check_program):
    """The model's own answers are its next inputs."""
    module = Growing().eval()
    batch, past, length = Dim("batch"), Dim("past"), Dim("length")
    checked = check_program(module, (rand(2, 5, 8), rand(2, 1, 8), rand(2, 2, 3, 4), rand(2, 2, 3, 4)), dynamic_shapes=({0: batch, 1: length}, {0: batch}, {0: batch, 2: past}, {0: batch, 2: past}),
                            calls=[((rand(1, 7, 8), rand(1, 1, 8), rand(1, 2, 0, 4), rand(1, 2, 0, 4)), None)])
    source, keys, values = rand(1, 3, 8), torch.zeros(1, 2, 0, 4), torch.zeros(1, 2, 0, 4)
    fed = {"keys": keys.numpy(), "values": values.numpy()}
    for _ in range(8):
        x = rand(1, 1, 8)
        answer = list(checked.session({"source": source.numpy(), "x": x.numpy(), **fed}).values())
        with torch.no_grad():
            want, keys, values = module(source, x, keys, values)
        for got, expected in zip(answer, (want, keys, values)):
            torch.testing.assert_close(torch.from_numpy(got), expected, rtol=1e-3, atol=1e-5)
        fed = {"keys": answer[1], "values": answer[2]}
