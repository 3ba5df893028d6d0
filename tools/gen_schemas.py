#!/usr/bin/env python3
"""Writes gen/op_table.cc and the op structs (gen_structs.py) from tools/data/{schemas,extra_schemas,aliasing}.txt. Needs no torch.

Argument and result lists that several ops share are written once: each page of the table costs time when a process starts.
"""
import gen_lib
import gen_structs
import schema_text


def arg_text(a):
    fields = [f".name = {gen_lib.quote(a.name)}", f".type = T::{a.type}"]
    fields += [f".{flag} = true" for flag in ("optional", "keyword_only", "writes") if getattr(a, flag)]
    if a.alias:
        fields.append(f".alias = '{a.alias}'")
    if a.default is not None:
        fields.append(f".has_default = true, .default_text = {gen_lib.quote(a.default)}")
    if a.list_size:
        fields.append(f".list_size = {a.list_size}")
    return "{" + ", ".join(fields) + "},"


def result_text(r):
    fields = [f".name = {gen_lib.quote(r.name)}"]
    if r.list:
        fields.append(".list = true")
    if r.alias:
        fields.append(f".alias = '{r.alias}'")
    if not r.tensor:
        fields.append(".tensor = false")
    return "{" + ", ".join(fields) + "},"


class Pool:
    """Runs of lines in one array; a run that lies within another one has no place of its own."""

    def __init__(self, runs):
        self.lines, self.places = [], {(): 0}
        for run in sorted(set(runs), key=lambda run: (-len(run), run)):
            if run in self.places:
                continue
            start = len(self.lines)
            self.lines += run
            for i in range(len(run)):
                for j in range(i + 1, len(run) + 1):
                    self.places.setdefault(run[i:j], start + i)


def op_table(ops):
    arg_runs = [tuple(arg_text(a) for a in op.args) for op in ops]
    result_runs = [tuple(result_text(r) for r in op.results) for op in ops]
    args, results, rows = Pool(arg_runs), Pool(result_runs), []
    ids = {op.name: i for i, op in enumerate(ops)}
    for i, op in enumerate(ops):
        fields = [str(i), gen_lib.quote(op.name), f"{{kArgs + {args.places[arg_runs[i]]}, {len(op.args)}}}",
                  f"{{kResults + {results.places[result_runs[i]]}, {len(op.results)}}}"]
        tail = [f"OpKind::{op.kind}", f"ViewClass::{op.view}", " | ".join(op.traits) or "0",
                str(ids[op.functional] if op.functional else -1)]
        defaults = ["OpKind::Functional", "ViewClass::None", "0", "-1"]
        while tail and tail[-1] == defaults[len(tail) - 1]:
            tail.pop()
        rows.append("{" + ", ".join(fields + tail) + "},")
    return "\n".join([
        '#include "ir/op_table.h"', "", "namespace pt2onnx {", "namespace {", "", "using T = ArgType;", "",
        "constexpr ArgSchema kArgs[] = {", *args.lines, "};", "", "constexpr ResultSchema kResults[] = {", *results.lines, "};", "",
        "constexpr OpSchema kOps[] = {", *rows, "};", "", "}  // namespace", "",
        "std::span<const OpSchema> OpTable() { return kOps; }", "", "}  // namespace pt2onnx", ""])


def generate():
    ops = schema_text.load_ops()
    bodies = {"gen/op_table.cc": op_table(ops), **gen_structs.headers(ops)}
    origin = gen_lib.version("schemas.txt")
    return {path: gen_lib.with_header("gen_schemas.py", origin, body) for path, body in bodies.items()}


if __name__ == "__main__":
    gen_lib.write(generate())
