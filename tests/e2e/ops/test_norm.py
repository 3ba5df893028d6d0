"""Normalizations, losses and dropouts: each case is a function of a few tensors."""
import itertools

import pytest
import torch
from test_linalg import rand
from test_shape import Many
from torch.nn import functional as F

ops = torch.ops.aten
X, W, B = rand(2, 4, 5, 3), rand(4) + 3, rand(4)
MEAN, VAR = rand(4), rand(4).abs() + 0.5

NORMS = {
    "layer": [(X, rand(3), rand(5, 3)), lambda x, v, m: F.layer_norm(x, (3,), v, v), lambda x, v, m: F.layer_norm(x, (5, 3), m), lambda x, v, m: F.layer_norm(x, (5, 3), None, m, 0.1), lambda x, v, m: F.layer_norm(x, (3,)),
              lambda x, v, m: ops.native_layer_norm(x, [5, 3], m, m, 1e-5), lambda x, v, m: F.layer_norm(x[0, 0, 0], (3,), v), lambda x, v, m: F.layer_norm(x.half(), (3,), v.half())],
    "rms": [(X, rand(3), rand(5, 3)), lambda x, v, m: F.rms_norm(x, (3,), v), lambda x, v, m: F.rms_norm(x, (5, 3), m, 0.1), lambda x, v, m: F.rms_norm(x, (3,)), lambda x, v, m: F.rms_norm(x.half(), (3,), v.half()),
            lambda x, v, m: ops._fused_rms_norm(x, [3], v, 1e-5)],
    "batch": [(X, W, B, MEAN, VAR), lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b), lambda x, w, b, m, v: F.batch_norm(x, m, v), lambda x, w, b, m, v: F.batch_norm(x[..., 0], m, v, None, b, eps=0.1),
              lambda x, w, b, m, v: F.batch_norm(x[:, :, 0, 0], m, v, w, b), lambda x, w, b, m, v: F.batch_norm(x, None, None, w, b, training=True), lambda x, w, b, m, v: F.batch_norm(x.half(), m.half(), v.half(), w.half()),
              lambda x, w, b, m, v: ops.native_batch_norm(x, w, b, m, v, False, 0.1, 1e-5)[0], lambda x, w, b, m, v: ops._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5),
              lambda x, w, b, m, v: ops._native_batch_norm_legit_functional(x, w, b, m, v, True, 0.3, 1e-5), lambda x, w, b, m, v: ops._native_batch_norm_legit_no_training(x, w, b, m, v, 0.3, 1e-5)],
    "group": [(X, W, B), lambda x, w, b: F.group_norm(x, 2, w, b), lambda x, w, b: F.group_norm(x, 4), lambda x, w, b: F.group_norm(x, 1, w, None, 0.1), lambda x, w, b: F.group_norm(x[:, :, 0, 0], 2, w, b),
              lambda x, w, b: ops.native_group_norm(x, w, b, 2, 4, 15, 2, 1e-5), lambda x, w, b: F.group_norm(x.half(), 2, w.half(), b.half())],
    "instance": [(X, W, B, MEAN, VAR), lambda x, w, b, m, v: F.instance_norm(x, None, None, w, b), lambda x, w, b, m, v: F.instance_norm(x[..., 0], eps=0.1), lambda x, w, b, m, v: F.instance_norm(x, m, v, w, b, use_input_stats=False)],
    "weight": [(rand(4, 3, 2), rand(4, 1, 1), rand(1, 1, 2)), lambda v, g, h: torch._weight_norm(v, g, 0), lambda v, g, h: torch._weight_norm(v, h, 2), lambda v, g, h: torch._weight_norm(v, g[0], -1),
               lambda v, g, h: torch._weight_norm_interface(v, g, 0), lambda v, g, h: torch.norm_except_dim(v, 2, 1)],
}


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("opset", [18, 23])
def test_norms(check_program, name, opset):
    inputs, *functions = NORMS[name]
    check_program(Many(functions), inputs, opset=opset)


def test_float64(check_program):
    functions = [lambda x, w: F.layer_norm(x, (3,)), lambda x, w: F.group_norm(x, 2, w, w), lambda x, w: F.instance_norm(x, weight=w), lambda x, w: F.batch_norm(x, w, w.abs() + 1, w), lambda x, w: F.rms_norm(x, (3,)),
                 lambda x, w: F.batch_norm(x, None, None, w, training=True)]
    check_program(Many(functions), (X.double(), W.double()), rtol=1e-6)


class Trained(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.batch = torch.nn.BatchNorm2d(4, momentum=0.3)
        self.instance = torch.nn.InstanceNorm2d(4, affine=True, track_running_stats=True)

    def forward(self, x):
        return self.batch(x) + self.instance(x)


def test_training(check_program):
    check_program(Trained().train(), (X,), calls=[((X * 2 + 1,), None)])


def test_dynamic_norms(check_program):
    size = torch.export.Dim.DYNAMIC
    functions = [lambda x: F.layer_norm(x, (3,)), lambda x: F.group_norm(x, 2, W, B), lambda x: F.instance_norm(x, weight=W), lambda x: F.batch_norm(x, None, None, W, B, training=True), lambda x: F.rms_norm(x, (3,)),
                 lambda x: ops._native_batch_norm_legit_functional(x, W, B, MEAN, VAR, True, 0.3, 1e-5)]
    check_program(Many(functions), (X,), dynamic_shapes={"inputs": ({0: size, 2: size},)}, calls=[((rand(3, 4, 2, 3),), None)])


P, Q = torch.sigmoid(X[:, :, 0]), torch.sigmoid(X[:, :, 1] * 2)
LABELS = torch.tensor([2, 0])
PLANES = torch.tensor([[[0, 3, -100], [1, 2, 2]], [[3, 3, 0], [1, -100, 1]]])
REDUCTIONS = ("none", "mean", "sum")


def with_reductions(function):
    return [lambda *args, how=how: function(*args, how) for how in REDUCTIONS]


LOSSES = {
    "pointwise": [(P, Q), *itertools.chain.from_iterable(map(with_reductions, [
        lambda p, q, r: F.mse_loss(p, q, reduction=r), lambda p, q, r: F.l1_loss(p, q, reduction=r), lambda p, q, r: F.smooth_l1_loss(p, q, reduction=r, beta=0.3), lambda p, q, r: F.smooth_l1_loss(p, q, reduction=r, beta=0.0),
        lambda p, q, r: F.huber_loss(p, q, reduction=r, delta=0.2), lambda p, q, r: F.binary_cross_entropy(p, q, W[:, None], reduction=r), lambda p, q, r: F.binary_cross_entropy(p.round(), q, reduction=r),
        lambda p, q, r: F.binary_cross_entropy_with_logits(p * 90 - 45, q, reduction=r), lambda p, q, r: F.binary_cross_entropy_with_logits(p, q, q, reduction=r, pos_weight=W[:, None]),
        lambda p, q, r: F.kl_div(p.log(), q, reduction=r), lambda p, q, r: F.kl_div(p.log(), q.log(), reduction=r, log_target=True), lambda p, q, r: F.kl_div(p.log(), q.round(), reduction=r),
        lambda p, q, r: F.poisson_nll_loss(p, q * 5, reduction=r, full=True), lambda p, q, r: F.poisson_nll_loss(p, q, log_input=False, reduction=r)])),
        lambda p, q: F.kl_div(p.log(), q, reduction="batchmean"), lambda p, q: F.mse_loss(p, q[:1]), lambda p, q: F.l1_loss(p.mul(9).int(), q.mul(9).long(), reduction="sum")],
    "margin": [(P[:, :, 0], Q[:, :, 0], torch.tensor([1.0, -1.0])), *itertools.chain.from_iterable(map(with_reductions, [
        lambda p, q, t, r: F.soft_margin_loss(p, t[:, None].expand(2, 4), reduction=r), lambda p, q, t, r: F.margin_ranking_loss(p, q, t[:, None], 0.1, reduction=r), lambda p, q, t, r: F.hinge_embedding_loss(p, t[:, None].expand(2, 4), 0.7, reduction=r),
        lambda p, q, t, r: F.cosine_embedding_loss(p, q, t, 0.2, reduction=r), lambda p, q, t, r: F.triplet_margin_loss(p, q, q.flip(0), 0.5, 1.0, swap=True, reduction=r),
        lambda p, q, t, r: F.multi_margin_loss(p, LABELS, 2, 0.5, W, reduction=r), lambda p, q, t, r: F.multilabel_margin_loss(p, torch.tensor([[3, 0, -1, 1], [-1, 1, 2, 3]]), reduction=r),
        lambda p, q, t, r: F.multilabel_soft_margin_loss(p, q.round(), W, reduction=r)])),
        lambda p, q, t: F.multi_margin_loss(p[0], LABELS[0]), lambda p, q, t: F.multilabel_margin_loss(p[0], torch.tensor([1, 2, -1, -1]))],
    "class": [(X[:, :, 0], X[:, :, :2]), *itertools.chain.from_iterable(map(with_reductions, [
        lambda x, y, r: F.cross_entropy(x[..., 0], LABELS, reduction=r), lambda x, y, r: F.cross_entropy(x[..., 0], LABELS, W, ignore_index=2, reduction=r, label_smoothing=0.1), lambda x, y, r: F.cross_entropy(x[0, :, 0], LABELS[0], reduction=r),
        lambda x, y, r: F.cross_entropy(y, PLANES, W, reduction=r), lambda x, y, r: F.cross_entropy(y, y.softmax(1), W, reduction=r, label_smoothing=0.2), lambda x, y, r: F.cross_entropy(x[0, :, 0], x[1, :, 0], reduction=r),
        lambda x, y, r: F.nll_loss(x[..., 0], LABELS, W, reduction=r), lambda x, y, r: F.nll_loss(y, PLANES, reduction=r), lambda x, y, r: F.nll_loss(y, PLANES * 0 - 100, W, reduction=r), lambda x, y, r: F.nll_loss(x[0, :, 0], LABELS[0], reduction=r)])),
        *[lambda x, y, r=r: ops.nll_loss_forward(x[..., 0], LABELS, W, r, 2) for r in range(3)], lambda x, y: ops.nll_loss2d_forward(y, PLANES, W, 1, -100)],
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(check_program, name):
    inputs, *functions = LOSSES[name]
    check_program(Many(functions), inputs)


def test_dropouts(check_program):
    functions = [lambda x: F.dropout(x, 0.3), lambda x: F.dropout(x, 1.0), lambda x: F.dropout2d(x, 0.3), lambda x: F.dropout3d(x[None], 0.2), lambda x: F.alpha_dropout(x, 0.2, True), lambda x: F.feature_alpha_dropout(x, 0.2, True),
                 lambda x: ops.native_dropout(x, 0.5, True)]
    check_program(Many(functions), (X,), values=False)
    check_program(Many([lambda x: F.dropout(x, 0.3, False), lambda x: F.dropout(x, 0.0, True), lambda x: F.dropout(x, 1.0, True), lambda x: F.alpha_dropout(x, 0.2, False), lambda x: ops.native_dropout(x, 0.5, False)]), (X,))
