#!/usr/bin/env python3
"""Brings tools/data/{schemas,aliasing}.txt up to the installed torch; gen_schemas.py then writes the tables.

Schemas that torch no longer has are kept by hand in extra_schemas.txt: they are printed. Facts that torch tells (tags, composite, kind of a new
operator) are taken over; what it does not tell (view classes, hidden aliases and writes, odd out-of-place forms) stays as it is in aliasing.txt,
and is asked for where a new view needs it.
"""
import torch
import torch.ao.quantization.fx._decomposed  # noqa: F401  registers quantized_decomposed

import gen_lib
import schema_text

TAGS = [("core", torch.Tag.core), ("pointwise", torch.Tag.pointwise), ("random", torch.Tag.nondeterministic_seeded)]
BY_TORCH = {"composite", "inplace_view"} | {name for name, _ in TAGS}


def told_by_torch(name):
    packet, _, overload = name.partition("::")[2].partition(".")
    op = getattr(getattr(getattr(torch.ops, name.partition("::")[0]), packet), overload or "default")
    facts = ["inplace_view"] if torch.Tag.inplace_view in op.tags else []
    if torch._C._dispatch_has_kernel_for_dispatch_key(name, "CompositeImplicitAutograd"):
        facts.append("composite")
    return facts + [fact for fact, tag in TAGS if tag in op.tags]


def kind_of_new(op, known):
    """Kind and out-of-place form by name, for an operator without a line."""
    written = [a for a in op.args if a.writes]
    base, _, overload = op.name.partition(".")
    if not written:
        return ["view=other"] if any(a.alias for a in op.args) else []
    if all(a.keyword_only for a in written):
        forms = [base, f"{base}.{overload.removesuffix('out').rstrip('_')}"]
        forms += sorted(n for n in known if n.startswith(base + ".") and not n.endswith("out"))
        return ["out"] + [f"functional={form}" for form in forms if form in known][:1]
    form = base.removesuffix("_") + ("." + overload if overload else "")
    return ["inplace"] + ([f"functional={form}"] if form in known and form != op.name else [])


def main():
    schemas = {}
    for schema in map(str, torch._C._jit_get_all_schemas()):
        name = schema.partition("(")[0]
        if "..." not in schema and torch._C._dispatch_has_kernel(name):
            schemas[name] = schema
    old_facts = {line.split()[0]: line.split()[1:] for line in gen_lib.read_lines("aliasing.txt")}
    old = {line.partition("(")[0]: line for line in gen_lib.read_lines("schemas.txt")}
    for name in sorted(old.keys() - schemas.keys()):
        print("gone:", old[name])
    lines = []
    for name in sorted(schemas):
        op = schema_text.parse_schema(schemas[name])
        if name in old:
            facts = [fact for fact in old_facts.get(name, []) if fact not in BY_TORCH]
        else:
            facts = kind_of_new(op, schemas)
            print("new:", schemas[name], *facts)
        facts += told_by_torch(name)
        if facts:
            lines.append(" ".join([name, *facts]))
    for file, head, body in (("schemas.txt", f"# torch {torch.__version__.partition('+')[0]}: the schemas of its dispatcher operators, with torchvision and "
                              "quantized_decomposed, as torch prints them; without variadic ones.", [schemas[n] for n in sorted(schemas)]),
                             ("aliasing.txt", None, lines)):
        path = gen_lib.DATA / file
        heads = [head] if head else [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
        path.write_text("\n".join(heads + body) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
