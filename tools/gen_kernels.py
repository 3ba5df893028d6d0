#!/usr/bin/env python3
"""Writes gen/ort_kernels.cc from tools/data/ort_kernels.txt: which ops ONNX Runtime's CPU provider can run, by since-version and dtype.

With --query, writes the data file first; that needs onnxruntime and onnx. An op runs if there is a kernel for it, or if the runtime expands
its function body or casts around it (float16): that is found by asking it to load a model of this one node.

A line is "Op since CONSTRAINT=dtype,dtype ...", the deciding constraint first; "+CONSTRAINT=..." what runs without a kernel of its own.
"""
import argparse
import os
import pickle

import gen_lib

OPEN_END = 2147483647
# ONNX's type names as DType's enumerators.
DTYPES = {
    "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16", "float": "F32", "double": "F64",
    "complex64": "C64", "complex128": "C128", "bool": "Bool", "bfloat16": "BF16", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "float8e4m3fn": "F8E4M3FN", "float8e5m2": "F8E5M2", "float8e4m3fnuz": "F8E4M3FNUZ", "float8e5m2fnuz": "F8E5M2FNUZ", "float8e8m0": "F8E8M0",
    "int4": "I4", "uint4": "U4", "string": "String",
}


def tensor_dtypes(types):
    names = [t.removeprefix("tensor(").removesuffix(")") for t in types if t.startswith("tensor(")]
    return {n for n in names if n in DTYPES}


def primary(constraints):
    """The constraint that decides: T, else T1, else the first."""
    return next((c for c in ("T", "T1") if c in constraints), next(iter(constraints), ""))


NEWEST = 28


def loads(schema, constraint, dtype, opset):
    """Does the runtime take a model of one such node at this opset?"""
    import onnx
    import onnxruntime
    from onnx import helper

    allowed = {c.type_param_str: sorted(tensor_dtypes(c.allowed_type_strs)) for c in schema.type_constraints}

    def type_of(type_str):
        if type_str == constraint:
            return dtype
        options = allowed.get(type_str) or sorted(tensor_dtypes([type_str]))
        return next((t for t in ("float", "int64", "bool") if t in options), options[0] if options else "float")

    inputs, names = [], []
    for formal in schema.inputs:
        if formal.option == onnx.defs.OpSchema.FormalParameterOption.Optional and schema.name != "Clip":  # whose body without bounds is a copy
            break
        elem = getattr(onnx.TensorProto, type_of(formal.type_str).upper())
        names.append(formal.name)
        inputs.append(helper.make_tensor_value_info(formal.name, elem, None))
    kinds = onnx.defs.OpSchema.AttrType
    values = {kinds.INT: 1, kinds.INTS: [1, 1], kinds.FLOAT: 1.0, kinds.FLOATS: [1.0], kinds.STRING: "", kinds.STRINGS: [""]}
    attributes = {name: values[a.type] for name, a in schema.attributes.items() if a.required and a.type in values}
    outputs = [f"out_{o.name}" for o in schema.outputs if o.option != onnx.defs.OpSchema.FormalParameterOption.Optional]
    node = helper.make_node(schema.name, names, outputs, **attributes)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info(o) for o in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return True
    except Exception:  # noqa: BLE001  any refusal
        return False


def in_child(function):
    """The function's answer, computed in a process that may die of it."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        with os.fdopen(write, "wb") as file:
            pickle.dump(function(), file)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    return pickle.loads(data) if data else set()


def query():
    import onnx
    import onnxruntime
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

    kernels = {}
    for k in get_all_opkernel_def():
        if k.domain == "" and k.provider == "CPUExecutionProvider":
            kernels.setdefault(k.op_name, []).append((*k.version_range, k.type_constraints))
    schemas = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == "" and not s.deprecated]
    lines = []
    for schema in sorted(schemas, key=lambda s: (s.name, s.since_version)):
        since = schema.since_version
        # A kernel without an end is only for the version that it begins with: the next version may mean something else.
        fitting = [c for first, last, c in kernels.get(schema.name, []) if since == first or (first < since <= last < OPEN_END)]
        types = {}
        for constraints in fitting:
            for name, allowed in constraints.items():
                types.setdefault(name, set()).update(tensor_dtypes(allowed))
        declared = {c.type_param_str: tensor_dtypes(c.allowed_type_strs) for c in schema.type_constraints}
        decides = primary(types) or primary(declared)
        order = sorted(types, key=lambda name: (name != decides, name))
        fields = [f"{name}={','.join(sorted(types[name]))}" for name in order]
        if not fitting and not declared:
            continue
        wanted = declared.get(decides, set()) - types.get(decides, set())
        found = in_child(lambda: {t for t in wanted if loads(schema, decides, t, since)}) if wanted else set()
        if fitting and not types:
            fields.append("T=" + ",".join(sorted(DTYPES)))  # a kernel without constraints
        def line(opset, more):
            return f"{schema.name} {opset} {' '.join(fields + ([f'+{decides}=' + ','.join(sorted(more))] if more else []))}".rstrip()
        lines.append(line(since, found))
        # A function's body is only expanded up to some opset.
        later = min((s.since_version for s in schemas if s.name == schema.name and s.since_version > since), default=NEWEST + 1)
        for opset in range(since + 1, later):
            still = in_child(lambda: {t for t in found if loads(schema, decides, t, opset)}) if found else set()
            if still != found:
                lines.append(line(opset, still))
                found = still
    head = (f"# onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}: what the CPU provider runs, made by tools/gen_kernels.py --query.\n")
    (gen_lib.DATA / "ort_kernels.txt").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def generate():
    rows, masks = [], {}
    for line in gen_lib.read_lines("ort_kernels.txt"):
        name, since, *fields = line.split()
        types = {}
        for field in fields:
            constraint, _, names = field.lstrip("+").partition("=")
            types.setdefault(constraint, set()).update(n for n in names.split(",") if n)
        for constraint, names in (types or {"T": set()}).items():
            bits = " | ".join(f"B(DType::{DTYPES[n]})" for n in DTYPES if n in names) or "0"
            mask = masks.setdefault(bits, f"kTypes{len(masks)}")
            rows.append((name, int(since), f'{{"{name}", {since}, "{constraint}", {mask}}},'))
    rows.sort(key=lambda row: row[:2])  # stable: the deciding constraint stays first
    body = "\n".join([
        '#include "onnx/ort_kernels.h"', "", "namespace pt2onnx {", "namespace {", "",
        "constexpr uint32_t B(DType dtype) { return uint32_t{1} << static_cast<int>(dtype); }", "",
        *(f"constexpr uint32_t {name} = {bits};" for bits, name in masks.items()), "",
        "constexpr RuntimeKernel kKernels[] = {", *(row[2] for row in rows), "};", "", "}  // namespace", "",
        "std::span<const RuntimeKernel> RuntimeKernels() { return kKernels; }", "", "}  // namespace pt2onnx", ""])
    return {"gen/ort_kernels.cc": gen_lib.with_header("gen_kernels.py", gen_lib.version("ort_kernels.txt"), body)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--query", action="store_true", help="ask the installed onnxruntime first")
    if parser.parse_args().query:
        query()
    gen_lib.write(generate())
