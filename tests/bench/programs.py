"""Programs to measure: a stack of in-place layers of any length, and a GPT-2 of the usual size."""
import json
import math
import pathlib
import re
import zipfile

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


def gpt2(path: pathlib.Path) -> None:
    model = Gpt2().eval()
    shapes = {"ids": {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=1024)}}
    torch.export.save(torch.export.export(model, (torch.zeros(2, 16, dtype=torch.int64),), dynamic_shapes=shapes), path)
