#!/usr/bin/env python3
"""run.py PT2ONNX: convert demo.pt2, run the model in ONNX Runtime, compare with PyTorch's answers in demo.npz."""
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

HERE = pathlib.Path(__file__).parent


def main():
    converter = str(pathlib.Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "demo.onnx"
        command = [converter, "convert", "demo.pt2", "-o", str(path)]
        start = time.perf_counter()
        subprocess.run(command, check=True, cwd=HERE)
        print(f"converted   demo.pt2 ({(HERE / 'demo.pt2').stat().st_size:,} bytes) -> demo.onnx ({path.stat().st_size:,} bytes) "
              f"in {1000 * (time.perf_counter() - start):.1f} ms")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3      # it warns that state can be overridden, which is the point
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    for kind, values in [("input", session.get_inputs()), ("state", session.get_overridable_initializers()), ("output", session.get_outputs())]:
        for value in values:
            print(f"{kind:11} {value.name}: {value.type.removeprefix('tensor(').removesuffix(')')}{value.shape}")
    data = np.load(HERE / "demo.npz")
    names = [output.name for output in session.get_outputs()]
    state = {}                          # what the model changed, to be fed into the next call
    worst = 0.0
    for step in range(3):
        image, want = data[f"image{step}"], data[f"answer{step}"]
        outputs = dict(zip(names, session.run(None, {"image": image, **state})))
        answer = outputs[names[0]]
        state = {name.removesuffix("_next"): value for name, value in outputs.items() if name.endswith("_next")}
        difference = float(np.abs(answer - want).max())
        worst = max(worst, difference)
        print(f"call {step + 1}      batch {len(image)}: largest difference from PyTorch {difference:.1e}; "
              f"counter {state['counter']}, PyTorch's {data[f'counter{step}']}")
        if answer.shape != want.shape or difference > 1e-5 or state["counter"] != data[f"counter{step}"]:
            sys.exit("the model does not answer as PyTorch does")
    print(f"the same answers as PyTorch in 3 calls (within {worst:.1e}), with the state fed back from call to call")


if __name__ == "__main__":
    main()
