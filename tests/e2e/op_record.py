"""Which ops, of which dtypes, a checked program had, and from which opset on it converts: lines of the file $PT2ONNX_RECORD names, for tools/coverage.py."""
import json
import os

import torch

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int8: "i8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
         torch.uint8: "u8", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64", torch.bool: "bool", torch.complex32: "c32", torch.complex64: "c64", torch.complex128: "c128"}
LOWEST, HIGHEST = 18, 28


def ops_of(exported):
    """(name as pt2onnx has it, dtype of the first tensor)"""
    for module in exported.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in module.graph.nodes:
            if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
                continue
            values = [arg.meta.get("val") for arg in node.all_input_nodes] + [node.meta.get("val")]
            dtypes = [value.dtype for value in values if isinstance(value, torch.Tensor)]
            overload = node.target._overloadname
            yield node.target._schema.name + ("" if overload in ("", "default") else f".{overload}"), NAMES.get(dtypes[0], str(dtypes[0])) if dtypes else ""


def record(exported, pt2, run):
    path = os.environ.get("PT2ONNX_RECORD")
    if not path:
        return
    seen = {(name, dtype, LOWEST) for name, dtype in ops_of(exported)}
    for opset in range(LOWEST, HIGHEST):
        problems = json.loads(run("check", pt2, "--opset", opset, "--format", "json").out)["problems"]
        late = {problem["op"] for problem in problems if problem["severity"] == "error"}
        if not late:
            break
        seen = {(name, dtype, opset + 1 if name in late else since) for name, dtype, since in seen}
    with open(path, "a", encoding="utf-8") as file:
        file.writelines(f"{name} {dtype or '-'} {since}\n" for name, dtype, since in sorted(seen))
