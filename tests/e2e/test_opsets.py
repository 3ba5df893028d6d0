"""Each family of models at the oldest opset, the default, and newer ones: the form differs, the numbers do not."""
import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

N = Dim.DYNAMIC


def rand(*shape):
    return torch.randn(*shape)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=4), nn.GroupNorm(2, 8), nn.SiLU(), nn.MaxPool2d(2, ceil_mode=True), nn.Hardswish(),
                                  nn.ConvTranspose2d(8, 4, 2, 2), nn.GELU(), nn.AvgPool2d(3, 1, 1), nn.Mish(), nn.InstanceNorm2d(4), nn.PReLU(), nn.Upsample(scale_factor=2, mode="bilinear"))
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        x = self.body(x)
        grid = F.affine_grid(torch.eye(2, 3)[None].repeat(x.shape[0], 1, 1), [x.shape[0], 4, 6, 6], align_corners=False)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)).log_softmax(-1), F.grid_sample(F.pad(x, (1, 2, 0, 1), mode="reflect"), grid, align_corners=False), F.pixel_shuffle(x, 2)


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.rms = nn.Embedding(20, 8), nn.LayerNorm(8), nn.RMSNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, ids):
        x = self.embed(ids)
        n = ids.shape[1]
        mask = torch.arange(n)[None] > torch.arange(n)[:, None]
        h = self.norm(x)
        x = x + self.attention(h, h, h, attn_mask=mask, need_weights=False)[0]
        x = x + self.down(F.gelu(self.up(self.rms(x)), approximate="tanh"))
        q = x.unflatten(-1, (2, 4)).transpose(1, 2)
        return F.scaled_dot_product_attention(q, q, q, is_causal=True), F.silu(x), (x @ self.embed.weight.T).topk(3)[1]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), nn.GRU(4, 5), nn.RNN(4, 5)

    def forward(self, x):
        return self.lstm(x), self.gru(x), self.rnn(x)


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("cache", torch.zeros(6, 4))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x, at):
        self.cache.index_copy_(0, at, self.norm(x))
        self.cache[:, 1] += 1
        self.seen += x.shape[0]
        return self.cache.cumsum(0), self.seen * 2


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def control(x, y):
    a = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))
    i, b = torch.while_loop(lambda i, t: i < 3, lambda i, t: (i + 1, t * y), (torch.zeros((), dtype=torch.int64), x))
    return a, b, i


def elementwise(x, y):
    return [f(x) for f in (torch.erf, torch.round, torch.sign, torch.isnan, torch.isinf, F.elu, F.selu, F.celu, F.softplus, F.hardsigmoid, F.relu6, torch.atan, torch.trunc, torch.expm1, torch.logit)] + [
        torch.maximum(x, y), torch.fmod(x, y), torch.remainder(x, y), torch.pow(x.abs(), y), torch.atan2(x, y), x.clamp(-0.5, 0.5), x.floor_divide(y), torch.where(x > y, x, y), x.half() + 1, (x * 9).int() // 4,
        (x * 9).to(torch.int8).bitwise_and(3), x.double().exp()]


def reductions(x, y):
    return [x.sum(), x.mean(0), x.amax(1), x.amin((0, 1)), x.std(1), x.var(0, unbiased=False), x.prod(1), x.logsumexp(1), x.norm(dim=1), x.norm(p=1), x.argmax(1), x.argmin(), x.all(), (x > 0).any(1), x.cumsum(1), x.median(1)[0],
            x.softmax(0), x.max(1)[0], x.kthvalue(2)[0], (x * 3).int().sum(1), (x > 0).sum()]


def indices(x, y):
    i = torch.tensor([2, 0, 1])
    return [x[i], x[:, i], x[i, i], x[x > 0], x.gather(1, i[None].expand(3, -1)), x.scatter(1, i[:, None], y[:, :1]), x.scatter_add(0, i[None], y[:1, :3]), x.index_put((i,), y, accumulate=True), x.take_along_dim(i[:, None], 1), x.nonzero(),
            x.unfold(1, 2, 1), x.flip(0), x.roll(1, 1), torch.cat([x, y]), torch.stack([x, y]).split([1, 1]), x.tril(), x.diagonal(), x.repeat(2, 1), x.sort(1)[0], x.unique(), F.one_hot(i, 4), x.masked_fill(x > 0, 0.5), torch.cdist(x, y),
            torch.searchsorted(x[0].sort()[0], y), F.pad(x, (1, 1), value=2), F.pad(x[None], (1, 1), mode="replicate"), F.pad(x[None], (1, 1), mode="circular")]


def products(x, y):
    return [x @ y.T, torch.einsum("ij,kj->ik", x, y), x.outer(y[0]) if x.dim() == 1 else x[0].outer(y[0]), torch.bmm(x[None], y.T[None]), torch.addmm(x[:, :3], x, y.T, beta=0.5, alpha=2), F.linear(x, y, y[0, :3]), torch.baddbmm(x[None, :, :3], x[None], y.T[None]), x.half() @ y.T.half(),
            F.cosine_similarity(x, y), F.normalize(x), x[0].dot(y[0])]


PAIR = (rand(3, 4), rand(3, 4))
PROGRAMS = {
    "convolutions": (Convolutions, (rand(2, 3, 16, 16),), ({0: N},), [((rand(1, 3, 16, 16),), None)]),
    "transformer": (Transformer, (torch.randint(0, 20, (2, 5)),), ({0: N, 1: N},), [((torch.randint(0, 20, (1, 7)),), None)]),
    "recurrent": (Recurrent, (rand(3, 5, 4),), None, [((rand(3, 5, 4),), None)]),
    "state": (State, (rand(2, 4), torch.tensor([1, 4])), None, [((rand(2, 4), torch.tensor([k, 5])), None) for k in (0, 2)]),
    "control": (lambda: Call(control), (rand(3, 4), rand(4)), None, [((-rand(3, 4).abs(), rand(4)), None)]),
    "elementwise": (lambda: Call(elementwise), PAIR, {"inputs": ({0: N}, {0: N})}, [((rand(1, 4), rand(1, 4)), None)]),
    "reductions": (lambda: Call(reductions), PAIR, {"inputs": ({0: N}, {0: N})}, [((rand(2, 4), rand(2, 4)), None)]),
    "indices": (lambda: Call(indices), PAIR, None, [((rand(3, 4), rand(3, 4)), None)]),
    "products": (lambda: Call(products), PAIR, None, []),
}


@pytest.mark.parametrize("opset", [18, 20, 23, 28])
@pytest.mark.parametrize("name", PROGRAMS)
def test_opset(check_program, name, opset):
    module, inputs, shapes, calls = PROGRAMS[name]
    check_program(module().eval() if name != "state" else module().train(), inputs, dynamic_shapes=shapes, calls=calls, opset=opset)
