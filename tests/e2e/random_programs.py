"""Small random programs that view, write and read tensors, as Python source; what fails can be made smaller line by line.

A program is a list of lines. Each is kept only if eager PyTorch runs all of them: it decides what is legal. What eager leaves undefined (a write
to a tensor whose elements overlap, operands that overlap the written tensor in part) is not generated. Numbers are small integers: answers are exact.
"""
from __future__ import annotations

import copy
import dataclasses
import random
import warnings

import torch

MOST = 2.0**22  # float32 holds integers up to here, and their sums


@dataclasses.dataclass
class Program:
    inputs: dict[str, torch.Tensor]
    buffers: dict[str, torch.Tensor]
    lines: list[str]
    outputs: list[str]
    dynamic: bool = False

    def source(self) -> str:
        names = ", ".join(["self", *self.inputs])
        body = [*(f"{name} = self.{name}" for name in self.buffers), *self.lines, f"return ({''.join(name + ', ' for name in self.outputs)})"]
        return f"def forward({names}):\n" + "".join(f"    {line}\n" for line in body)

    def module(self) -> torch.nn.Module:
        scope = {"torch": torch}
        exec(compile(self.source(), "<random program>", "exec"), scope)  # noqa: S102
        kind = type("RandomProgram", (torch.nn.Module,), {"forward": scope["forward"]})
        module = kind()
        for name, tensor in self.buffers.items():
            module.register_buffer(name, tensor.clone())
        return module

    def text(self) -> str:
        values = [f"# {name} = {tensor.tolist()} {str(tensor.dtype)[6:]}, strides {tuple(tensor.stride())}"
                  for name, tensor in [*self.inputs.items(), *self.buffers.items()]]
        return self.source() + "\n".join(values) + ("\n# sizes are dynamic" if self.dynamic else "")

    def example(self, size: int | None = None) -> tuple[torch.Tensor, ...]:
        """Inputs of a call; `size`: another size of their first dims."""
        def one(tensor):
            if size is None or tensor.dim() == 0:
                return tensor.clone(memory_format=torch.preserve_format)
            return torch.cat([tensor] * (size // tensor.shape[0] + 1))[:size].clone()
        return tuple(map(one, self.inputs.values()))


def places(tensor: torch.Tensor) -> list[int]:
    """Where each element lies in memory."""
    end = tensor.storage_offset() + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1 if tensor.numel() else 0
    return torch.arange(end).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).flatten().tolist() if end else []


def defined(target: torch.Tensor, *operands: torch.Tensor) -> bool:
    """Whether what an elementwise write to `target` does is defined."""
    here = places(target)
    if len(set(here)) != len(here):
        return False
    for other in operands:
        if other.untyped_storage().data_ptr() != target.untyped_storage().data_ptr():
            continue
        there = places(other)
        if set(here) & set(there) and there != here:
            return False
    return True


class Generator:
    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.program = Program({}, {}, [], [], dynamic=seed % 3 == 0)
        for i in range(self.random.randint(1, 2)):
            self.program.inputs[f"x{i}"] = self.tensor()
        for i in range(self.random.randint(0, 2)):
            self.program.buffers[f"b{i}"] = self.tensor()
        self.scope: dict = {}
        self.made = 0

    def tensor(self) -> torch.Tensor:
        shape = [self.random.randint(2, 4) for _ in range(self.random.choice([1, 2, 2, 3]))]
        dtype = torch.int64 if self.random.random() < 0.3 else torch.float32
        tensor = torch.tensor([self.random.randint(-4, 8) for _ in range(torch.Size(shape).numel())]).to(dtype).reshape(shape)
        return tensor.transpose(0, -1) if len(shape) > 1 and self.random.random() < 0.15 else tensor

    def run(self, lines: list[str]) -> dict | None:
        """Names after `lines`; None if eager refuses, or numbers grow too large."""
        scope = {"torch": torch, **{name: t.clone(memory_format=torch.preserve_format) for name, t in [*self.program.inputs.items(), *self.program.buffers.items()]}}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec("\n".join(lines), scope)  # noqa: S102
        except (RuntimeError, IndexError, TypeError, ValueError):
            return None
        tensors = {name: t for name, t in scope.items() if isinstance(t, torch.Tensor)}
        fits = all(t.dtype == torch.bool or t.numel() == 0 or (t.abs().max() < MOST and t.numel() < 200) for t in tensors.values())
        return tensors if fits else None

    def name(self) -> str:
        return self.random.choice(sorted(self.scope))

    def fresh(self) -> str:
        self.made += 1
        return f"v{self.made}"

    def view(self) -> str:
        pick = self.random
        source = self.name()
        t = self.scope[source]
        dim = pick.randrange(-t.dim(), t.dim()) if t.dim() else 0
        n = t.shape[dim] if t.dim() else 1
        start, length = pick.randrange(n + 1), pick.randint(1, 3)
        end = pick.choice([str(start + length), "", f"{source}.shape[{dim}]", f"{source}.shape[{dim}] // 2 + 1"])
        index = ", ".join([":"] * (dim % max(t.dim(), 1)))
        comma = ", " if index else ""
        sizes = pick.choice(["-1", f"-1, {n}", f"{n}, -1", "2, -1", "1, -1"])
        calls = [
            f"[{index}{comma}{pick.randrange(-n, n) if n else 0}]", f"[{index}{comma}{start}:{end}]", f"[{index}{comma}{start}::{pick.randint(2, 3)}]",
            f".select({dim}, {pick.randrange(n) if n else 0})", f".transpose({dim}, 0)", ".t()", ".mT", f".unsqueeze({dim})", f".squeeze({dim})", ".squeeze()",
            f".permute({', '.join(map(str, pick.sample(range(t.dim()), t.dim())))})", f".view({sizes})", f".reshape({sizes})", ".flatten()", f".expand({pick.randint(1, 3)}, {'-1, ' * t.dim()})",
            f".diagonal({pick.randint(-1, 1)})", f".unfold({dim}, {pick.randint(1, max(n, 1))}, {pick.randint(1, 3)})", ".detach()", ".contiguous()",
            f".narrow({dim}, {min(start, n - 1)}, 1)", f".movedim({dim}, 0)", f".as_strided(({pick.randint(1, 2)}, 2), ({pick.randint(1, 3)}, {pick.randint(1, 2)}), {pick.randrange(3)})",
            f".chunk(2, {dim})[{pick.randrange(2)}]", f".split({length}, {dim})[-1]", f".unbind({dim})[0]", f".view_as({self.name()})", f".expand_as({self.name()})",
        ]
        return f"{self.fresh()} = {source}{pick.choice(calls)}"

    def write(self) -> str:
        pick = self.random
        target, other = self.name(), self.name()
        t = self.scope[target]
        number = pick.randint(-3, 5)
        fill = [f".fill_({number})", ".zero_()", f".masked_fill_({target} > {number}, {pick.randint(-2, 6)})", f".fill_({target}.sum())"]
        if not defined(t):
            return f"{target}{pick.choice(fill)}"
        safe = defined(t, self.scope[other])
        index = f"torch.tensor([{', '.join(str(pick.randrange(t.shape[0] or 1)) for _ in range(2))}])" if t.dim() else "torch.tensor(True)"
        calls = [f".add_({number})", f".mul_({pick.randint(-1, 2)})", ".neg_()", ".relu_()", f".clamp_({number}, {number + 4})", f".ge_({number})", ".cumsum_(0)", *fill,
                 f"[{index}] = {number}", f"[{index}] += {number}", f"[{target} > {number}] = {pick.randint(-2, 6)}", f".index_fill_(0, {index}, {number})", f"[...] = {number}"]
        if safe:
            calls += [f".add_({other})", f".add_({other}, alpha=2)", f".copy_({other})", f".mul_({other})", f"[...] = {other}", f".sub_({other})"] * 2
            calls += [f"[0] = {other}", f"[..., 0] += {number}", f"[1:] = {other}", f"[:, :2] = {number}"]
        return f"{target}{pick.choice(calls)}"

    def other(self) -> str:
        pick = self.random
        a, b = self.name(), self.name()
        target = pick.choice([name for name in sorted(self.scope) if defined(self.scope[name], self.scope[a], self.scope[b])] or [""])
        choices = [f"{self.fresh()} = {a}.clone()", f"v{self.made} = {a} + {b}", f"v{self.made} = {a} * 2", f"v{self.made} = {a}.sum(0)", f"v{self.made} = torch.cat([{a}, {b}])",
                   f"v{self.made} = torch.where({a} > 0, {a}, {b})", f"v{self.made} = {a}.flip(0)"]
        if target:
            choices.append(f"torch.add({a}, {b}, out={target})")
            choices.append(f"torch._foreach_add_([{target}], [{a}])")
        return pick.choice(choices)

    def step(self) -> str:
        kind = self.random.random()
        line = self.view() if kind < 0.42 else self.write() if kind < 0.82 else self.other()
        return f"with torch.no_grad(): {line}" if self.random.random() < 0.08 else line

    def generate(self, length: int) -> Program:
        self.scope = self.run([])
        for _ in range(length * 3):
            line = self.step()
            scope = self.run([*self.program.lines, line])
            if scope is None:
                continue
            self.program.lines.append(line)
            self.scope = scope
            if len(self.program.lines) >= length:
                break
        names = sorted(self.scope)
        self.program.outputs = sorted(self.random.sample(names, max(1, len(names) * 2 // 3)))
        return self.program


def generate(seed: int, length: int = 14) -> Program:
    return Generator(seed).generate(length)


def check(program: Program, check_program) -> bool:
    """Converts the program and compares it with eager. False if PyTorch can't export it."""
    dynamic = None
    if program.dynamic:
        dynamic = tuple({0: torch.export.Dim.AUTO} if t.dim() else {} for t in program.inputs.values())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = torch.export.export(program.module(), program.example(), dynamic_shapes=dynamic)
            loaded = exported.module()                   # on the state of `exported` itself, which stays as it is: copies run
            answer = copy.deepcopy(loaded)(*program.example())
    except Exception:  # noqa: BLE001 - whatever capture dislikes
        return False
    want = program.module()(*program.example())
    after = program.module()
    after(*program.example())
    resized = any(a.shape != b.shape for a, b in zip(after.buffers(), program.module().buffers()))
    if not all(torch.equal(a, b) for a, b in zip(answer, want)):
        return False                                     # PyTorch captured something else
    calls: list = [(program.example(), {})]
    users = [node for node in exported.graph.nodes if node.op == "placeholder" and node.name in exported.graph_signature.user_inputs]
    if program.dynamic and all(isinstance(node.meta["val"].shape[0], torch.SymInt) for node in users):
        for size in (3, 5):
            try:
                program.module()(*program.example(size))
                copy.deepcopy(loaded)(*program.example(size))
            except Exception:  # noqa: BLE001 - a size that the program, or its guards, refuse
                continue
            calls.append((program.example(size), {}))
    # A buffer that changes its shape (out=) can't be fed back.
    options, calls = (["--state", "drop"], []) if resized else ([], calls)
    check_program(program.module(), program.example(), calls=calls, rtol=0, atol=0, options=options, export=lambda *_, **__: exported)
    return True


def reduce(program: Program, fails) -> Program:
    """The smallest program that still fails: without lines, outputs, buffers, dynamic sizes. `fails` says for each candidate."""
    def candidates(p: Program):
        for length in (8, 4, 2, 1):
            for at in range(len(p.lines) - length + 1):
                yield dataclasses.replace(p, lines=p.lines[:at] + p.lines[at + length:])
        for name in p.outputs if len(p.outputs) > 1 else []:
            yield dataclasses.replace(p, outputs=[other for other in p.outputs if other != name])
        for name in p.buffers:
            yield dataclasses.replace(p, buffers={other: t for other, t in p.buffers.items() if other != name})
        for name in p.inputs if len(p.inputs) > 1 else []:
            yield dataclasses.replace(p, inputs={other: t for other, t in p.inputs.items() if other != name})
        if p.dynamic:
            yield dataclasses.replace(p, dynamic=False)

    smaller = True
    while smaller:
        smaller = False
        for candidate in candidates(program):
            try:
                candidate.module()(*candidate.example())
            except Exception:  # noqa: BLE001 - no program any more
                continue
            if fails(candidate):
                program, smaller = candidate, True
                break
    return program
