"""Random ops: types and shapes as in PyTorch, numbers of the right distribution, fresh ones in every run and at every call."""
import numpy as np
import pytest
import torch
from test_reduce import Many
from torch.export import Dim

N = 20000
DRAWS = {  # function, mean, standard deviation, smallest, largest
    "rand": (lambda x: torch.rand(N), 0.5, 0.2887, 0, 1),
    "rand_like": (lambda x: torch.rand_like(x.double()), 0.5, 0.2887, 0, 1),
    "randn": (lambda x: torch.randn(N), 0, 1, -8, 8),
    "randn_like": (lambda x: torch.randn_like(x.half()), 0, 1, -8, 8),
    "randint": (lambda x: torch.randint(-2, 3, (N,)), 0, 1.4142, -2, 2),
    "randint wide": (lambda x: torch.randint(1 << 40, (N,)) / (1 << 40), 0.5, 0.2887, 0, 1),
    "randint_like": (lambda x: torch.randint_like(x, 5), 2, 1.4142, 0, 4),
    "randperm": (lambda x: torch.randperm(N), (N - 1) / 2, N * 0.2887, 0, N - 1),
    "normal": (lambda x: torch.normal(x + 3, x + 2), 3, 2, -20, 26),
    "normal numbers": (lambda x: torch.normal(3.0, 2.0, (N,)), 3, 2, -20, 26),
    "normal_": (lambda x: torch.empty(N).normal_(3, 2), 3, 2, -20, 26),
    "uniform_": (lambda x: torch.empty(N).uniform_(-1, 3), 1, 1.1547, -1, 3),
    "exponential_": (lambda x: torch.empty(N).exponential_(2), 0.5, 0.5, 0, 20),
    "geometric_": (lambda x: torch.empty(N).geometric_(0.5), 2, 1.4142, 1, 60),
    "log_normal_": (lambda x: torch.empty(N).log_normal_(0, 0.25), 1.0317, 0.2619, 0, 9),
    "random_": (lambda x: torch.empty(N).random_(5), 2, 1.4142, 0, 4),
    "bernoulli": (lambda x: torch.bernoulli(x + 0.3), 0.3, 0.4583, 0, 1),
    "bernoulli p": (lambda x: torch.empty(N).bernoulli_(0.3), 0.3, 0.4583, 0, 1),
    "multinomial": (lambda x: torch.multinomial(torch.tensor([1.0, 0, 3, 1]), N, True), 1.8, 0.9798, 0, 3),
}
LOOPED = {
    "poisson": (lambda x: torch.poisson(x + 3.5), 3.5, 1.8708, 0, 30),
    "binomial": (lambda x: torch.binomial(x + 7, torch.tensor(0.3)), 2.1, 1.2124, 0, 7),
    "gamma": (lambda x: torch._standard_gamma(x + 2.5), 2.5, 1.5811, 0, 40),
    "gamma below 1": (lambda x: torch._standard_gamma(x.double() + 0.5), 0.5, 0.7071, 0, 40),
    "dirichlet": (lambda x: torch._sample_dirichlet(x.reshape(-1, 4) + torch.tensor([1.0, 2, 3, 4]))[:, 1].expand(4, -1), 0.2, 0.1206, 0, 1),
}


@pytest.mark.parametrize("opset", [20, 22])
def test_distribution(check_program, opset):
    draws = DRAWS | LOOPED if opset < 22 else DRAWS
    x = torch.zeros(N)
    done = check_program(Many([draw[0] for draw in draws.values()]), (x,), values=False, opset=opset)
    runs = [done.session({name: x.numpy() for name in done.session.inputs}) for _ in range(2)]
    for (kind, (_, mean, deviation, low, high)), first, second in zip(draws.items(), *(run.values() for run in runs)):
        first, second = first.astype(np.float64), second.astype(np.float64)
        assert not np.array_equal(first, second), kind
        assert abs(first.mean() - mean) < 6 * deviation / N ** 0.5, kind
        assert abs(first.std() - deviation) < 0.05 * deviation, kind
        assert first.min() >= low and first.max() <= high, kind


@pytest.mark.parametrize("opset", [20, 22])
def test_draws_differ(check_program, opset):
    class M(torch.nn.Module):
        def forward(self, x):
            return torch.rand(50) - torch.rand(50), torch.randn_like(x) - torch.randn_like(x), torch.dropout(x, 0.5, True) - torch.dropout(x, 0.5, True), torch.feature_dropout(x[None], 0.5, True) - torch.feature_dropout(x[None], 0.5, True),\
                torch.alpha_dropout(x, 0.5, True) - torch.alpha_dropout(x, 0.5, True)

    done = check_program(M(), (torch.ones(50),), values=False, opset=opset)
    for name, value in done.session({name: np.ones(50, np.float32) for name in done.session.inputs}).items():
        assert (value != 0).sum() > 5, name


@pytest.mark.parametrize("opset", [20, 22])
def test_shapes(check_program, opset):
    functions = [lambda x: torch.rand(x.shape[0], 3), lambda x: torch.randn_like(x), lambda x: torch.randint(0, x.shape[0] + 1, (2, x.shape[0])), lambda x: torch.randperm(x.shape[0]), lambda x: torch.rand(()),
                 lambda x: torch.bernoulli(x.sigmoid()), lambda x: torch.multinomial(x.sigmoid(), 2), lambda x: torch.multinomial(x.sigmoid(), 9, True), lambda x: torch.randn(0, 2), lambda x: torch.randn(()),
                 lambda x: torch.empty_like(x).cauchy_(), lambda x: torch.empty_like(x).random_(), lambda x: torch.normal(x[:1], x.abs()[:, :1])]
    check_program(Many(functions), (torch.randn(4, 5),), dynamic_shapes=[({0: Dim("n", min=1, max=99)},)], calls=[((torch.randn(7, 5),), {})], values=False, opset=opset)


def test_permutation(check_program):
    done = check_program(Many([lambda x: torch.randperm(100)]), (torch.zeros(1),), values=False)
    assert sorted(next(iter(done.session({name: np.zeros(1, np.float32) for name in done.session.inputs}).values()))) == list(range(100))
