"""The CTC loss: lengths as numbers and tensors, targets in rows and in one row, repeated labels, losses that are infinite."""
import torch
from test_linalg import rand
from test_shape import Many
from torch._subclasses.fake_impls import op_implementations_dict
from torch.nn import functional as F

# torch.export can't trace the loss unless somebody tells the shapes of its results.
def shapes(mode, op, x, *args, **keywords):
    with mode:
        return x.new_empty(x.shape[1:-1]), x.new_empty(x.shape)


for name in ("default", "Tensor"):
    op_implementations_dict[getattr(torch.ops.aten._ctc_loss, name)] = shapes

FRAMES = rand(9, 3, 5).log_softmax(-1)
ROWS = torch.tensor([[1, 2, 2, 4], [3, 3, 1, 0], [4, 1, 0, 0]])
FLAT = torch.tensor([1, 2, 2, 4, 3, 3, 1, 4])


def test_ctc(check_program):
    check_program(Many([
        lambda x, t, f, i, j, k, m: F.ctc_loss(x, t, [9, 7, 5], [4, 3, 1], reduction="sum"), *[lambda x, t, f, i, j, k, m, r=r: F.ctc_loss(x, t, i, j, reduction=r) for r in ("none", "sum", "mean")], lambda x, t, f, i, j, k, m: F.ctc_loss(x, f, i, j, reduction="none"),
        lambda x, t, f, i, j, k, m: F.ctc_loss(x, t, k, m, reduction="none"), lambda x, t, f, i, j, k, m: F.ctc_loss(x, t, k, m, zero_infinity=True), lambda x, t, f, i, j, k, m: F.ctc_loss(x, t.where(t != 4, 0), i, j, blank=4, reduction="none"),
        lambda x, t, f, i, j, k, m: F.ctc_loss(x.double(), t.int(), i, j), lambda x, t, f, i, j, k, m: F.ctc_loss(x[:, 0], t[0], i[0], j[0])]),
        (FRAMES, ROWS, FLAT, torch.tensor([9, 7, 5]), torch.tensor([4, 3, 1]), torch.tensor([4, 7, 5]), torch.tensor([4, 3, 0])))


def test_dynamic(check_program):
    size = torch.export.Dim.DYNAMIC
    check_program(Many([lambda x, t, i, j: F.ctc_loss(x, t, i, j, reduction="none")]), (FRAMES, ROWS, torch.tensor([9, 8, 7]), torch.tensor([4, 3, 1])),
                  dynamic_shapes={"inputs": ({0: size, 1: size}, {0: size, 1: size}, {0: size}, {0: size})}, calls=[((FRAMES[:6, :2], ROWS[:2, :3], torch.tensor([6, 5]), torch.tensor([3, 2])), None)])
