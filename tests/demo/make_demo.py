#!/usr/bin/env python3
"""Make demo.pt2 and demo.npz, the program that ./dev demo converts and PyTorch's answers for it. Needs torch 2.13."""
import pathlib
import re

import numpy as np
import torch

HERE = pathlib.Path(__file__).parent


class Demo(torch.nn.Module):
    """A residual block that writes in place, and counts its calls."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(4, 4, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(4)
        self.register_buffer("counter", torch.zeros((), dtype=torch.int64))

    def forward(self, image):
        self.counter.add_(1)
        y = self.norm(self.conv(image))
        y.relu_()
        y += image                      # the residual, in place
        y[:, :, 0] = 0                  # clear the top row, through a view
        return y / self.counter


def main():
    torch.manual_seed(0)
    model = Demo()
    for _ in range(3):                  # statistics that are not those of an untrained layer
        model(torch.randn(8, 4, 8, 8))
    model.eval()
    model.counter.zero_()
    program = torch.export.export(model, (torch.randn(2, 4, 8, 8),), dynamic_shapes={"image": {0: torch.export.Dim("batch")}})
    for node in program.graph.nodes:    # paths without the folders of the machine that made the file
        if "stack_trace" in node.meta:
            node.meta["stack_trace"] = re.sub(r'File "[^"]*?(torch/nn/[^"]*|[^/"]*)"', r'File "\1"', node.meta["stack_trace"])
    torch.export.save(program, HERE / "demo.pt2")
    arrays = {}
    for step, batch in enumerate([1, 2, 5]):
        image = torch.randn(batch, 4, 8, 8)
        arrays[f"image{step}"] = image.numpy()
        with torch.no_grad():
            arrays[f"answer{step}"] = model(image).numpy()
        arrays[f"counter{step}"] = model.counter.numpy().copy()
    np.savez_compressed(HERE / "demo.npz", **arrays)


if __name__ == "__main__":
    main()
