#!/usr/bin/env python3
"""models.py PT2ONNX [--programs FOLDER] [--only REGEX] [--opset N] [--cache FOLDER] [--pairs N] [--list N] [convert options]: converted models
against those of torch.onnx.export of the same program, in ONNX Runtime on one thread: the ratio of their times, and their numbers of nodes.

Programs: three of usual width that are built here, or every model.pt2 below FOLDER, with its inputs (in0, in1, ...) in call.0.npz beside it.
A pair is a few runs of each, one right after the other, in changing order, and its ratio one of CPU times: what else the machine does counts little.
"""
import argparse
import hashlib
import importlib
import json
import logging
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402

sys.path.insert(0, str(pathlib.Path(__file__).parent))

MEDIAN_RATIO, WORST_RATIO = 1.05, 1.2


def built(folder):
    """Three models of usual width."""
    import programs
    for name in ("gpt2", "vit", "resnet"):
        path = folder / name / "model.pt2"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            getattr(programs, name)(path)
    return folder


def export_with_torch(pt2, target, opset):
    import torch
    logging.disable(logging.CRITICAL)
    meta = pt2.with_name("meta.json")
    for module in json.loads(meta.read_text()).get("imports", []) if meta.exists() else []:
        importlib.import_module(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(torch.export.load(pt2), (), target, dynamo=True, opset_version=opset, verbose=False)


def reference(pt2, cache, opset):
    """What torch.onnx.export makes of it, made once."""
    key = hashlib.sha256(pt2.read_bytes()).hexdigest()[:16]
    target = cache / f"{key}-{opset}.onnx"
    failed = target.with_suffix(".failed")
    if not target.exists() and not failed.exists():
        code = "import sys, pathlib, models; models.export_with_torch(pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))"
        command = [sys.executable, "-c", code, pt2, target.with_suffix(".part.onnx"), str(opset)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=pathlib.Path(__file__).parent)
        if done.returncode:
            failed.write_text(done.stderr[-2000:])
        else:
            model = onnx.load(target.with_suffix(".part.onnx"))  # its weights may stand beside it
            onnx.save(model, target) if model.ByteSize() < 1 << 30 else None
    return target if target.exists() else None


def count_nodes(graph):
    """Nodes, also those of sub-graphs; constants are none."""
    inner = (part for node in graph.node for attribute in node.attribute for part in [attribute.g, *attribute.graphs] if part.node)
    return sum(node.op_type != "Constant" for node in graph.node) + sum(count_nodes(part) for part in inner)


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feeds(model, inputs):
    initialized = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in initialized]
    return dict(zip(names, inputs))


def seconds(runner, fed, runs):
    start = time.thread_time()
    for _ in range(runs):
        runner.run(None, fed)
    return time.thread_time() - start


def paired(ours, theirs, pairs):
    """Median ratio of the times, and the times of one run."""
    for side in (ours, theirs):
        seconds(*side, 2)
    once = min(seconds(*theirs, 1) for _ in range(3))
    runs = max(1, min(200, round(0.02 / max(once, 1e-6))))
    times = []
    for pair in range(pairs):
        order = (ours, theirs) if pair % 2 else (theirs, ours)
        measured = [seconds(*side, runs) / runs for side in order]
        times.append(measured if pair % 2 else measured[::-1])
    return statistics.median(a / b for a, b in times), statistics.median(a for a, _ in times), statistics.median(b for _, b in times)


def compare(pt2, arguments, converter_options):
    theirs_path = reference(pt2, arguments.cache, max(arguments.opset, 18))
    with tempfile.TemporaryDirectory() as work:
        ours_path = pathlib.Path(work) / "model.onnx"
        command = [arguments.pt2onnx, "convert", pt2, "-o", ours_path, "--opset", str(arguments.opset), *converter_options]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode or theirs_path is None:
            return "not converted" if done.returncode else "not converted by torch.onnx.export"
        if arguments.keep:
            onnx.save(onnx.load(ours_path), arguments.keep / (pt2.parent.name + ".onnx"))
        archive = np.load(pt2.with_name("call.0.npz"))
        inputs = [archive[f"in{i}"] for i in range(sum(key.startswith("in") for key in archive.files))]
        sides, counts = [], []
        for path in (ours_path, theirs_path):
            model = onnx.load(path)
            counts.append(count_nodes(model.graph))
            sides.append((session(path), feeds(model, inputs)))
        try:
            ratio, a, b = paired(*sides, arguments.pairs)
        except Exception as error:  # noqa: BLE001: the other exporter's model need not run
            return f"does not run: {str(error).splitlines()[0][:100]}"
        return ratio, a, b, *counts


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pt2onnx", type=pathlib.Path)
    parser.add_argument("--programs", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--opset", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the converted models")
    arguments, converter_options = parser.parse_known_args(words)
    arguments.pt2onnx = arguments.pt2onnx.resolve()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    arguments.cache = arguments.cache.resolve()
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    root = arguments.programs or built(arguments.cache / "programs")
    ratios, ours, theirs = [], [], []
    for pt2 in sorted(root.rglob("model.pt2")):
        name = str(pt2.parent.relative_to(root))
        if not re.search(arguments.only, name):
            continue
        result = compare(pt2, arguments, converter_options)
        if isinstance(result, str):
            print(f"  {name:45} {result}", flush=True)
            continue
        ratio, a, b, nodes, their_nodes = result
        ratios.append(ratio), ours.append(nodes), theirs.append(their_nodes)
        print(f"  {name:45} {1000 * a:8.3f} ms / {1000 * b:8.3f} ms = {ratio:5.2f}   {nodes:5} nodes / {their_nodes:5} = {nodes / their_nodes:5.2f}", flush=True)
    if not ratios:
        sys.exit("no program was compared")
    median, worst, nodes = statistics.median(ratios), max(ratios), statistics.median(a / b for a, b in zip(ours, theirs))
    print(f"  {len(ratios)} programs: time, median {median:.3f} (bound {MEDIAN_RATIO}), worst {worst:.2f} (bound {WORST_RATIO}); nodes, median {nodes:.2f} (bound 1)")
    return median <= MEDIAN_RATIO and worst <= WORST_RATIO and nodes <= 1


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
