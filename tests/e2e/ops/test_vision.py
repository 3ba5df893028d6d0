"""torchvision's operators, against their definitions in plain Python: torchvision itself is not needed."""
import math

import pytest
import torch
from test_linalg import rand
from torch.nn import functional as F

T = torch.library.Library("torchvision", "FRAGMENT")
SCHEMAS = """
roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor
roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)
ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int sampling_ratio) -> (Tensor, Tensor)
ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> (Tensor, Tensor)
deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor
nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor
"""


def clamped(image, y, x):
    """Between the four neighbours inside the image; 0 farther than one place outside."""
    h, w = image.shape
    if not (-1 <= y <= h and -1 <= x <= w):
        return 0.0
    y, x = min(max(y, 0.0), h - 1.0), min(max(x, 0.0), w - 1.0)
    y0, x0 = int(y), int(x)
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    top = image[y0, x0] * (1 - (x - x0)) + image[y0, x1] * (x - x0)
    low = image[y1, x0] * (1 - (x - x0)) + image[y1, x1] * (x - x0)
    return top * (1 - (y - y0)) + low * (y - y0)


def average(image, start, size, p, q, bins, ratio, floor):
    bh, bw = size[0] / bins[0], size[1] / bins[1]
    gh, gw = (ratio, ratio) if ratio > 0 else (math.ceil(bh), math.ceil(bw))
    total = sum(clamped(image, start[0] + (p + (i + 0.5) / gh) * bh, start[1] + (q + (j + 0.5) / gw) * bw) for i in range(gh) for j in range(gw))
    return total / max(gh * gw, floor)


def corners(roi, scale, shift):
    x0, y0, x1, y1 = (float(v) * scale - shift for v in roi[1:])
    return (y0, x0), (y1 - y0, x1 - x0)


def roi_align(input, rois, scale, ph, pw, ratio, aligned):
    out = input.new_zeros(len(rois), input.shape[1], ph, pw)
    for k, roi in enumerate(rois):
        start, size = corners(roi, scale, 0.5 if aligned else 0.0)
        if not aligned:
            size = max(size[0], 1.0), max(size[1], 1.0)
        for c in range(input.shape[1]):
            for p in range(ph):
                for q in range(pw):
                    out[k, c, p, q] = average(input[int(roi[0]), c], start, size, p, q, (ph, pw), ratio, 1)
    return out


def mapping(rois, input, ph, pw):
    channels = input.shape[1] // (ph * pw)
    return torch.arange(channels * ph * pw, dtype=torch.int32).reshape(1, channels, ph, pw).repeat(len(rois), 1, 1, 1)


def ps_roi_align(input, rois, scale, ph, pw, ratio):
    where = mapping(rois, input, ph, pw)
    out = input.new_zeros(where.shape)
    for k, c, p, q in torch.cartesian_prod(*map(torch.arange, where.shape)).tolist():
        start, size = corners(rois[k], scale, 0.5)
        out[k, c, p, q] = average(input[int(rois[k, 0]), where[k, c, p, q]], start, size, p, q, (ph, pw), ratio, 0)
    return out, where


def away(x):
    return int(math.copysign(math.floor(abs(x) + 0.5), x))


def bins(lo, hi, extra, n, i, count, last):
    lo, hi = away(lo), away(hi)
    size = max(hi - lo + extra, 1) / count
    return min(max(math.floor(i * size) + lo, 0), last), min(max(math.ceil((i + 1) * size) + lo, 0), last)


def pooled(input, rois, scale, ph, pw, channels, extra, short, reduce):
    out = input.new_zeros(len(rois), channels, ph, pw)
    h, w = input.shape[2:]
    for k, c, p, q in torch.cartesian_prod(*map(torch.arange, out.shape)).tolist():
        x0, y0, x1, y1 = (float(v) * scale for v in rois[k, 1:])
        top, bottom = bins(y0, y1, extra, h, p, ph, h - short)
        left, right = bins(x0, x1, extra, w, q, pw, w - short)
        if bottom > top and right > left:
            out[k, c, p, q] = reduce(input[int(rois[k, 0]), :, top:bottom, left:right], c, p, q)
    return out


def roi_pool(input, rois, scale, ph, pw):
    out = pooled(input, rois, scale, ph, pw, input.shape[1], 1, 0, lambda part, c, p, q: part[c].max())
    return out, torch.zeros(out.shape, dtype=torch.int32)


def ps_roi_pool(input, rois, scale, ph, pw):
    where = mapping(rois, input, ph, pw)
    return pooled(input, rois, scale, ph, pw, where.shape[1], 0, 1, lambda part, c, p, q: part[(c * ph + p) * pw + q].mean()), where


def zero_outside(image, y, x):
    h, w = image.shape
    y0, x0 = math.floor(y), math.floor(x)
    return sum(image[i, j] * (1 - abs(y - i)) * (1 - abs(x - j)) for i in (y0, y0 + 1) for j in (x0, x0 + 1) if 0 <= i < h and 0 <= j < w)


def deform_conv2d(input, weight, offset, mask, bias, sh, sw, pad_h, pad_w, dh, dw, groups, moved, use_mask):
    n, channels, _, _ = input.shape
    _, _, kh, kw = weight.shape
    oh, ow = offset.shape[2:]
    offset = offset.reshape(n, moved, kh * kw, 2, oh, ow)
    columns = input.new_zeros(n, channels, kh * kw, oh, ow)
    for b, c, t, i, j in torch.cartesian_prod(*map(torch.arange, columns.shape)).tolist():
        g = c // (channels // moved)
        y = i * sh - pad_h + t // kw * dh + float(offset[b, g, t, 0, i, j])
        x = j * sw - pad_w + t % kw * dw + float(offset[b, g, t, 1, i, j])
        columns[b, c, t, i, j] = zero_outside(input[b, c], y, x) * (mask.reshape(n, moved, kh * kw, oh, ow)[b, g, t, i, j] if use_mask else 1)
    out = weight.reshape(groups, -1, weight[0].numel()) @ columns.reshape(n, groups, -1, oh * ow)
    return out.reshape(n, -1, oh, ow) + bias[:, None, None]


def nms(dets, scores, threshold):
    keep = []
    for i in scores.sort(descending=True, stable=True)[1].tolist():
        def overlap(j):
            low, high = torch.maximum(dets[i, :2], dets[j, :2]), torch.minimum(dets[i, 2:], dets[j, 2:])
            inner = (high - low).clamp(min=0).prod()
            return inner / ((dets[i, 2:] - dets[i, :2]).prod() + (dets[j, 2:] - dets[j, :2]).prod() - inner)
        if all(overlap(j) <= threshold for j in keep):
            keep.append(i)
    return torch.tensor(keep, dtype=torch.int64)


def shape_only(name):
    def align(input, rois, scale, ph, pw, *rest):
        channels = input.shape[1] if not name.startswith("ps") else input.shape[1] // (ph * pw)
        out = input.new_empty(rois.shape[0], channels, ph, pw)
        return out if name == "roi_align" else (out, out.to(torch.int32))
    if name == "nms":
        return lambda dets, scores, threshold: dets.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)
    if name == "deform_conv2d":
        return lambda input, weight, offset, *rest: input.new_empty(input.shape[0], weight.shape[0], offset.shape[2], offset.shape[3])
    return align


for line in SCHEMAS.strip().splitlines():
    name = line.split("(")[0]
    T.define(line)
    T.impl(name, globals()[name], "CPU")
    torch.library.register_fake(f"torchvision::{name}", shape_only(name), lib=T)

ops = torch.ops.torchvision
ROIS = torch.tensor([[0, 1, 2, 9, 11], [1, 0, 0, 15, 13.5], [0, -4, 3, 3.5, 30], [1, 5, 5, 5.2, 5.1], [0, 12, 10, 40, 40]])
IMAGES = rand(2, 8, 14, 16)


class Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


REGIONS = {
    "align": lambda x, r: ops.roi_align(x, r, 0.5, 2, 3, 2, False),
    "aligned": lambda x, r: ops.roi_align(x, r, 1.0, 3, 2, 1, True),
    "adaptive": lambda x, r: ops.roi_align(x, r, 0.25, 2, 2, -1, False),
    "adaptive_aligned": lambda x, r: ops.roi_align(x, r, 0.7, 2, 2, 0, True),
    "pool": lambda x, r: ops.roi_pool(x, r, 0.5, 3, 2)[0],
    "ps_align": lambda x, r: ops.ps_roi_align(x, r, 0.5, 2, 2, 2),
    "ps_align_adaptive": lambda x, r: ops.ps_roi_align(x, r, 0.5, 2, 2, 0),
    "ps_pool": lambda x, r: ops.ps_roi_pool(x, r, 0.5, 2, 2),
}


@pytest.mark.parametrize("opset", [18, 20, 23])
@pytest.mark.parametrize("name", REGIONS)
def test_regions(check_program, name, opset):
    check_program(Call(REGIONS[name]), (IMAGES, ROIS), opset=opset)


@pytest.mark.parametrize("name", ["align", "pool", "ps_align", "ps_pool"])
def test_regions_of_other_sizes(check_program, name):
    size = torch.export.Dim.DYNAMIC
    shapes = {"inputs": ({0: size, 2: size, 3: size}, {0: size})}
    check_program(Call(REGIONS[name]), (IMAGES, ROIS), dynamic_shapes=shapes, calls=[((rand(3, 8, 9, 7), ROIS[:1]), None), ((rand(2, 8, 5, 1), ROIS[:0]), None)], opset=23)


def test_regions_in_double(check_program):
    for name in ("align", "ps_pool", "pool"):
        check_program(Call(REGIONS[name]), (IMAGES.double(), ROIS.double()))


DEFORMED = {
    "plain": dict(groups=1, moved=1, mask=False, stride=(1, 1), pad=(1, 1), dilation=(1, 1)),
    "groups": dict(groups=2, moved=2, mask=True, stride=(2, 1), pad=(0, 2), dilation=(1, 2)),
    "moved": dict(groups=1, moved=4, mask=True, stride=(1, 2), pad=(2, 1), dilation=(2, 1)),
}


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize("name", DEFORMED)
def test_deformable(check_program, name, opset):
    d = DEFORMED[name]
    x, weight, bias = rand(2, 4, 6, 7), rand(4, 4 // d["groups"], 3, 2), rand(4)
    size = [(n + 2 * p - s * (k - 1) - 1) // t + 1 for n, p, s, k, t in zip((6, 7), d["pad"], d["dilation"], (3, 2), d["stride"])]
    offset, mask = rand(2, 2 * d["moved"] * 6, *size), rand(2, d["moved"] * 6, *size)

    def call(x, weight, offset, mask, bias):
        return ops.deform_conv2d(x, weight, offset, mask, bias, *d["stride"], *d["pad"], *d["dilation"], d["groups"], d["moved"], d["mask"])
    check_program(Call(call), (x, weight, offset * 2, mask, bias), opset=opset)


def test_suppression(check_program):
    boxes = torch.cat([c := rand(12, 2) * 4, c + rand(12, 2).abs() * 4 + 0.5], 1)
    scores = torch.randperm(12).float()
    check_program(Call(lambda b, s: (ops.nms(b, s, 0.3), b[ops.nms(b, s, 0.6)])), (boxes, scores), dynamic_shapes={"inputs": ({0: torch.export.Dim("n")}, {0: torch.export.Dim("n")})},
                  calls=[((boxes[:1], scores[:1]), None), ((boxes[:0], scores[:0]), None), ((boxes[:5], torch.zeros(5)), None)])


def test_resized_features_of_regions(check_program):
    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.box = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Linear(4 * 4, 4)

        def forward(self, x, rois):
            features = F.relu(self.conv(x))
            return self.box(ops.roi_align(features, rois, 1.0, 2, 2, 2, True).flatten(1))
    check_program(Head(), (rand(2, 3, 14, 16), ROIS), opset=22)
