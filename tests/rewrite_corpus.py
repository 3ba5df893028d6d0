"""Rewrites every case of a corpus and compares what PyTorch answers on the written program with what the case says eager mode answers.

    rewrite_corpus.py DIR [--command functionalize|decompose|both] [--only REGEX] [--list] [--keep DIR]

A case is a folder with model.pt2, meta.json and call.K.npz: in0, in1, ... are the inputs, out0, ... the outputs, mut.I input I and buf.NAME the
parameter or buffer NAME after the call, where it changed. Each call starts from the initial state.
"""
import argparse
import collections
import json
import pathlib
import re
import sys
import tempfile
import warnings

import numpy as np
import torch
from torch.utils import _pytree as pytree

sys.path.insert(0, str(pathlib.Path(__file__).parent / "e2e"))
import harness  # noqa: E402
import rewriting  # noqa: E402

BITS = {"bfloat16": torch.bfloat16, "float8_e4m3fn": torch.float8_e4m3fn, "float8_e5m2": torch.float8_e5m2,
        "float8_e4m3fnuz": torch.float8_e4m3fnuz, "float8_e5m2fnuz": torch.float8_e5m2fnuz}


def tensor(array, dtype):
    value = torch.from_numpy(np.array(array))
    return value.view(BITS[dtype]) if dtype else value


def arguments(program, call, bits):
    """The call's arguments as forward takes them: constant inputs are in the program, the others in the file."""
    constants = {spec.arg.name: spec.arg.value for spec in program.graph_signature.input_specs
                 if spec.kind == torch.export.graph_signature.InputKind.USER_INPUT and isinstance(spec.arg, torch.export.graph_signature.ConstantArgument)}
    leaves, given = [], []
    for spec in program.graph_signature.input_specs:
        if spec.kind != torch.export.graph_signature.InputKind.USER_INPUT:
            continue
        if spec.arg.name in constants:
            leaves.append(constants[spec.arg.name])
            continue
        key = f"in{len(given)}"
        is_tensor = isinstance(spec.arg, torch.export.graph_signature.TensorArgument)
        value = tensor(call[key], bits.get(key)) if is_tensor else call[key].item()
        given.append(value)
        leaves.append(value)
    args, kwargs = pytree.tree_unflatten(leaves, program.call_spec.in_spec)
    return args, kwargs, given


def compare(got, want, meta, what, bits, number=False):
    if isinstance(got, torch.Tensor):
        got = got.detach().resolve_conj().resolve_neg()
    if bits:
        want = tensor(want, bits)
        want, got = want.float().numpy(), got.float().numpy() if got.dtype == want.dtype else got
    wrong = harness.difference(harness.to_numpy(got), want, meta["rtol"], meta["atol"], number=number, values=meta["compare"] == "values")
    return f"{what}: {wrong}" if wrong else None


def check(folder, command, path):
    meta = json.loads((folder / "meta.json").read_text())
    done = harness.run(command, folder / "model.pt2", "-o", path)
    if done.code:
        return ("refused" if done.code == 1 else "crash"), done.err.strip()
    try:
        program = rewriting.load(path)
    except Exception as error:
        return "noload", f"{type(error).__name__}: {error}"
    if writing := rewriting.writing_ops(program):
        return "writes", " ".join(writing)
    if command == "decompose" and (composite := rewriting.composite_ops(program)):
        return "composite", " ".join(composite)
    for number in range(meta["calls"]):
        with np.load(folder / f"call.{number}.npz") as file:
            call = {key.replace("%2F", "/"): file[key] for key in file.files}
        bits = {key.split(".", 1)[1]: value for key, value in meta["bits"].items() if key.startswith(f"{number}.")}
        module = (program if number == 0 else rewriting.load(path)).module()
        args, kwargs, given = arguments(program, call, bits)
        before = [value.clone() if isinstance(value, torch.Tensor) else value for value in given]
        try:
            with torch.no_grad():
                result = module(*args, **kwargs)
        except Exception as error:
            return "norun", f"call {number}: {type(error).__name__}: {error}"
        outputs = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, (torch.Tensor, int, float))]
        wrong = []
        for i, output in enumerate(outputs):
            if f"out{i}" not in call:
                return "mismatch", f"call {number}: output {i} is too much"
            wrong.append(compare(output, call[f"out{i}"], meta, f"output {i}", bits.get(f"out{i}"), f"{number}.out{i}" in meta["scalars"]))
        if f"out{len(outputs)}" in call:
            wrong.append(f"output {len(outputs)} is missing")
        for i, (value, old) in enumerate(zip(given, before)):
            if isinstance(value, torch.Tensor):
                wrong.append(compare(value, call.get(f"mut.{i}", call[f"in{i}"]), meta, f"input {i}", bits.get(f"in{i}")))
        state = harness.named_state(module)
        for key, want in call.items():
            if key.startswith("buf."):
                wrong.append(compare(state[key[4:]], want, meta, key, bits.get(key)))
        if wrong := [text for text in wrong if text]:
            return "mismatch", f"call {number}: {'; '.join(wrong)}"
    return "pass", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--command", choices=["functionalize", "decompose", "both"], default="both")
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true", help="print what did not pass")
    parser.add_argument("--keep", type=pathlib.Path, help="keep the written programs there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    commands = ["functionalize", "decompose"] if options.command == "both" else [options.command]
    counts = {command: collections.Counter() for command in commands}
    with tempfile.TemporaryDirectory() as temporary:
        for meta in sorted(options.corpus.rglob("meta.json")):
            name = str(meta.parent.relative_to(options.corpus))
            if not re.search(options.only, name):
                continue
            for command in commands:
                path = (options.keep or pathlib.Path(temporary)) / f"{name.replace('/', '_')}.{command}.pt2"
                try:
                    status, why = check(meta.parent, command, path)
                except Exception as error:
                    status, why = "broken", f"{type(error).__name__}: {error}"
                counts[command][status] += 1
                if status != "pass" and options.list:
                    print(f"{status:10}{command:14}{name}: {why[-1500:]}", flush=True)
                if not options.keep:
                    path.unlink(missing_ok=True)
    for command in commands:
        print(command, dict(counts[command]))
    return 0 if all(set(count) <= {"pass"} for count in counts.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
