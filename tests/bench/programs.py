"""Programs to measure: a stack of in-place layers of any length, and a GPT-2 of the usual size."""
import json
import math
import pathlib
import re
import zipfile

import numpy as np
import torch
from torch import nn


class InPlaceLayers(nn.Module):
    """Layers that write one buffer through views, and their own result in place."""

    def __init__(self, count):
        super().__init__()
        self.count = count
        self.register_buffer("memory", torch.zeros(4, 8))

    def forward(self, x):
        for _ in range(self.count):
            self.memory[1].add_(x.sum(0))
            x = torch.relu(x + self.memory[1])
            x[:, 2].mul_(0.5)
        return x


def layers(count: int, path: pathlib.Path) -> int:
    """A program of `count` in-place layers, as torch would export it. Exporting 16,000 nodes takes torch minutes, so the second of two exported
    layers is written `count` times: each with names of its own, reading what the one before it made. Returns the number of nodes."""
    with torch.no_grad():
        torch.export.save(torch.export.export(InPlaceLayers(2), (torch.randn(3, 8),)), path)
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    [name] = [name for name in entries if name.endswith("models/model.json")]
    program = json.loads(entries[name])
    graph = program["graph_module"]["graph"]
    nodes = graph["nodes"]
    size = len(nodes) // 2
    first, second = nodes[:size], nodes[size:]
    made = [defined(node) for node in second]
    result, source = layer_result(second), layer_result(first)

    def copy(thing, number):
        names = {old: f"{old}_layer{number}" for group in made for old in group}
        if number:
            names[source] = f"{result}_layer{number - 1}"
        pattern = re.compile(r'("name": )"(' + "|".join(map(re.escape, names)) + r')"')
        return json.loads(pattern.sub(lambda match: f'{match[1]}"{names[match[2]]}"', json.dumps(thing)))

    values = graph["tensor_values"]
    out = list(first)
    for number in range(count - 1):
        out += copy(second, number)
        for old in (old for group in made for old in group if old in values):
            values[f"{old}_layer{number}"] = values[old]
    for old in (old for group in made for old in group):
        values.pop(old, None)
    graph["nodes"] = out
    rename = {result: f"{result}_layer{count - 2}"}
    for part in (graph["outputs"], program["graph_module"]["signature"]["output_specs"]):
        text = json.dumps(part)
        for old, new in rename.items():
            text = text.replace(f'"name": "{old}"', f'"name": "{new}"')
        part[:] = json.loads(text)
    entries[name] = json.dumps(program).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for filename, data in entries.items():
            archive.writestr(filename, data)
    return len(out)


def defined(node):
    """Names of the values that a node makes."""
    return [match for match in re.findall(r'"name": "([^"]*)"', json.dumps(node["outputs"]))]


def layer_result(nodes):
    """The relu of a layer: what its successor reads."""
    [node] = [node for node in nodes if "relu" in node["target"]]
    return defined(node)[0]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in self.attention(self.ln_1(x)).split(width, 2))
        scores = (q @ k.transpose(2, 3)) / math.sqrt(width // self.heads)
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        scores = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        x = x + self.projection((scores @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """124 M parameters: 12 layers, 768 wide, 50,257 tokens; the head is the embedding."""

    def __init__(self, layers=12, width=768, heads=12, tokens=50257, positions=1024):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(tokens, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.head = nn.Linear(width, tokens, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


def save(model, inputs, path, dynamic_shapes):
    """The program, and beside it what it is called with."""
    with torch.no_grad():
        torch.export.save(torch.export.export(model.eval(), inputs, dynamic_shapes=dynamic_shapes), path)
    np.savez(path.with_name("call.0.npz"), **{f"in{i}": value.numpy() for i, value in enumerate(inputs)})


def gpt2(path: pathlib.Path) -> None:
    shapes = {"ids": {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=1024)}}
    save(Gpt2(), (torch.arange(64).reshape(2, 32),), path, shapes)


class VitBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Vit(nn.Module):
    """The small vision transformer: 12 layers, 384 wide, patches of 16 pixels."""

    def __init__(self, layers=12, width=384, heads=6, patch=16, image=224, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (image // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(VitBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def vit(path: pathlib.Path) -> None:
    save(Vit(), (torch.randn(2, 3, 224, 224),), path, {"image": {0: torch.export.Dim("batch")}})


class Bottleneck(nn.Module):
    def __init__(self, width, inner, stride):
        super().__init__()
        def layer(a, b, size, step):
            return nn.Sequential(nn.Conv2d(a, b, size, step, size // 2, bias=False), nn.BatchNorm2d(b))
        self.layers = nn.Sequential(layer(width, inner, 1, 1), nn.ReLU(), layer(inner, inner, 3, stride), nn.ReLU(), layer(inner, 4 * inner, 1, 1))
        self.shortcut = nn.Identity() if width == 4 * inner else layer(width, 4 * inner, 1, stride)

    def forward(self, x):
        return torch.relu(self.layers(x) + self.shortcut(x))


class Resnet(nn.Module):
    """The residual network of 50 layers."""

    def __init__(self, depths=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        blocks, width = [], 64
        for stage, depth in enumerate(depths):
            for i in range(depth):
                blocks.append(Bottleneck(width, 64 << stage, 2 if stage and i == 0 else 1))
                width = 256 << stage
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(width, classes)

    def forward(self, image):
        return self.head(nn.functional.adaptive_avg_pool2d(self.blocks(self.stem(image)), 1).flatten(1))


def resnet(path: pathlib.Path) -> None:
    save(Resnet(), (torch.randn(2, 3, 224, 224),), path, {"image": {0: torch.export.Dim("batch")}})
