#!/usr/bin/env python3
"""bench.py PT2ONNX [NAME...]: measures the program against its bounds; ends with 1 if one is missed. NAME: start, layers, gpt2 (all of these), models.

Instructions (valgrind --tool=callgrind) do not depend on what else the machine does; times are medians.
"""
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import programs  # noqa: E402

MISSED = []


def bound(what, value, limit, unit):
    ok = value <= limit
    if not ok:
        MISSED.append(what)
    print(f"  {what:58} {value:10.2f} {unit:6} bound {limit:g}{'' if ok else '   MISSED'}", flush=True)


def run(command, memory=None):
    """Wall and CPU seconds. memory: bound in bytes on heap and other private memory; mapped files do not count.

    Without a bound there is no preexec_fn: it makes Python fork, which copies its page tables and costs more than our whole start-up."""
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run([str(word) for word in command], preexec_fn=limit if memory else None, capture_output=True, text=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def instructions(command):
    with tempfile.NamedTemporaryFile() as out:
        words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", *map(str, command)]
        text = subprocess.run(words, check=True, capture_output=True, text=True).stderr
    return int(re.search(r"Collected : (\d+)", text)[1])


def peak_heap(command):
    """The least bound on private memory with which the command still works, in MB."""
    low, high = 1, 1024
    while high - low > 1:
        middle = (low + high) // 2
        try:
            run(command, middle << 20)
            high = middle
        except RuntimeError:
            low = middle
    return high


def start(converter, folder):
    """The program itself."""
    times = [run([converter, "--version"])[0] for _ in range(21)]
    bound("--version, wall", 1000 * statistics.median(times), 10, "ms")


def layers(converter, folder):
    """A stack of in-place layers: the cost of a node does not depend on how many there are."""
    per_node = []
    for wanted in (1000, 4000, 16000):
        pt2 = folder / f"layers{wanted}.pt2"
        nodes = programs.layers(wanted // 8, pt2)
        command = [converter, "convert", pt2, "-o", folder / "layers.onnx"]
        wall = statistics.median(run(command)[0] for _ in range(5))
        per_node.append(instructions(command) / nodes)
        print(f"  {nodes:6} nodes: {1000 * wall:8.1f} ms, {per_node[-1]:8.0f} instructions a node", flush=True)
    bound("instructions a node, 16,000 nodes against 1,000", per_node[-1] / per_node[0], 1.1, "times")


def gpt2(converter, folder):
    """A GPT-2 of 124 M parameters."""
    pt2 = folder / "gpt2.pt2"
    programs.gpt2(pt2)
    target, copy = folder / "gpt2.onnx", folder / "copy"
    in_place = [converter, "convert", pt2, "-o", target, "--external-data", "in-place"]
    run(in_place)
    measured = [run(in_place) for _ in range(9)]
    bound("in-place, CPU", 1000 * statistics.median(cpu for _, cpu in measured), 100, "ms")
    bound("in-place, wall", 1000 * statistics.median(wall for wall, _ in measured), 150, "ms")
    bound("in-place, private memory", peak_heap(in_place), 64, "MB")
    always = [converter, "convert", pt2, "-o", target, "--external-data", "always"]
    pairs = []
    for _ in range(9):
        for path in (copy, folder / "gpt2.onnx.data"):
            path.unlink(missing_ok=True)
        pairs.append((run(["cp", pt2, copy])[0], run(always)[0]))
    cp, ours = (statistics.median(times) for times in zip(*pairs))
    bound("with weights beside, wall", 1000 * ours, 1300 * cp + 50, "ms")
    bound("with weights beside, private memory", peak_heap(always), 64, "MB")


def models(converter, folder):
    """Models of usual width in ONNX Runtime, against those of torch.onnx.export (tests/bench/models.py)."""
    import models as measured
    if not measured.main([str(converter)]):
        MISSED.append("models")


def main():
    usual = ("start", "layers", "gpt2")
    benchmarks = {function.__name__: function for function in (start, layers, gpt2, models)}
    converter = pathlib.Path(sys.argv[1]).resolve()
    for name in sys.argv[2:] or usual:
        print(f"{name}: {benchmarks[name].__doc__}", flush=True)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="bench-"))
        try:
            benchmarks[name](converter, folder)
        finally:
            shutil.rmtree(folder)
    if MISSED:
        sys.exit(f"{len(MISSED)} bounds missed: {'; '.join(MISSED)}")


if __name__ == "__main__":
    main()
