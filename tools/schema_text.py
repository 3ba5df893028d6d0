"""Reads torch's schema language, with the facts that it does not tell. src/ir/schema_parse.cc is the same in C++; a test compares them.

    aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
"""
import dataclasses
import re

from gen_lib import read_lines

SCALAR_TYPES = {
    "Tensor": "Tensor", "int": "Int", "SymInt": "SymInt", "float": "Float", "bool": "Bool", "str": "Str", "Scalar": "Scalar",
    "complex": "Scalar", "ScalarType": "DType", "Layout": "Layout", "Device": "Device", "MemoryFormat": "MemoryFormat",
    "Generator": "Generator", "Graph": "Graph", "int64_t": "Int",
}
LIST_TYPES = {
    "Tensor": "TensorList", "Tensor?": "OptTensorList", "int": "IntList", "SymInt": "SymIntList", "float": "FloatList",
    "bool": "BoolList", "str": "StrList", "Scalar": "ScalarList",
}
KINDS = {"inplace": "Inplace", "out": "Out", "hidden": "Hidden"}
TRAITS = {"maybe": "kMaybeAlias", "inplace_view": "kInplaceView", "random": "kRandom", "pointwise": "kPointwise",
          "composite": "kComposite", "core": "kCore", "effect": "kEffect"}


@dataclasses.dataclass
class Arg:
    name: str
    type: str
    optional: bool = False
    keyword_only: bool = False
    writes: bool = False
    alias: str = ""
    default: str | None = None
    list_size: int = 0


@dataclasses.dataclass
class Result:
    name: str
    list: bool
    alias: str
    tensor: bool
    optional: bool


@dataclasses.dataclass
class Op:
    name: str
    args: list
    results: list
    text: str
    kind: str = "Functional"
    view: str = "None"
    traits: tuple = ()
    functional: str | None = None


def split(text, separator=","):
    """Cuts at separators that are in no bracket and no string."""
    parts, depth, quoted, start, i = [], 0, False, 0, 0
    while i < len(text):
        c = text[i]
        if quoted:
            i += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        else:
            depth += (c in "([") - (c in ")]")
            if c == separator and depth == 0:
                parts.append(text[start:i].strip())
                start = i + 1
        i += 1
    last = text[start:].strip()
    return parts + [last] if last else parts


def parse_type(text):
    """-> (ArgType, optional, alias, writes, list size, name of the bare type)."""
    alias, writes = "", False
    if note := re.search(r"\(([a-z])[a-z|]*(!?)(?: -> \*)?\)", text):
        alias, writes = note[1], note[2] == "!"
        text = text[:note.start()] + text[note.end():]
    optional = text.endswith("?")
    bare = text.removesuffix("?")
    size = 0
    if array := re.fullmatch(r"(.*)\[(\d*)\]", bare):
        size = int(array[2] or 0)
        kind = LIST_TYPES.get(array[1], "Any")
    else:
        kind = SCALAR_TYPES.get(bare, "Any")
    return kind, optional, alias, writes, size if kind != "Any" else 0, bare


def parse_args(text):
    args, keyword_only = [], False
    for part in split(text):
        if part == "*":
            keyword_only = True
            continue
        sides = split(part, "=")
        type_text, name = sides[0].rsplit(" ", 1)
        kind, optional, alias, writes, size, _ = parse_type(type_text)
        args.append(Arg(name, kind, optional, keyword_only, writes, alias, sides[1] if len(sides) > 1 else None, size))
    return args


def parse_result(text):
    named = re.fullmatch(r"(.*[^ >]) ([A-Za-z_]\w*)", text)
    type_text, name = (named[1], named[2]) if named else (text, "")
    kind, optional, alias, _, _, bare = parse_type(type_text)
    return Result(name, bare.endswith("[]"), alias, kind in ("Tensor", "TensorList", "OptTensorList"), optional)


def parse_schema(text):
    """Kind, writes and aliases as the text tells them."""
    head, _, results = text.rpartition(" -> ")
    name, _, args = head.partition("(")
    if results.startswith("(") and results.endswith(")"):
        results = split(results[1:-1])
    else:
        results = [results]
    return Op(name, parse_args(args.removesuffix(")")), [parse_result(r) for r in results], text)


def apply_facts(op, facts):
    traits = set()
    for fact in facts:
        key, _, value = fact.partition("=")
        if key in KINDS:
            op.kind = KINDS[key]
        elif key == "view":
            op.kind = "View"
            op.view = "".join(word.capitalize() for word in value.split("_"))
            for arg in op.args:
                arg.writes = False  # prims::as_strided says `!` and writes nothing
        elif key == "aliases":
            traits.add("kHiddenAlias")
            for arg in op.args:
                if arg.name == value:
                    arg.alias = "a"
            returned = [r for r in op.results if r.tensor and (r.list or len(op.results) == 1)]
            for result in returned:
                result.alias = "a"
        elif key == "writes":
            traits.add("kHiddenWrite")
            for arg in op.args:
                arg.writes |= arg.name in value.split(",")
        elif key == "functional":
            op.functional = value
        else:
            traits.add(TRAITS[key])
    if not op.results and op.kind == "Functional":
        traits.add("kEffect")  # what else would it be there for
    op.traits = tuple(t for t in ["kMaybeAlias", "kInplaceView", "kRandom", "kPointwise", "kComposite", "kCore", "kHiddenAlias",
                                  "kHiddenWrite", "kEffect"] if t in traits)


def load_ops():
    """Every op, sorted by name: the position is its id."""
    facts = {line.split()[0]: line.split()[1:] for line in read_lines("aliasing.txt")}
    ops = []
    for line in read_lines("schemas.txt") + read_lines("extra_schemas.txt"):
        text, _, own = line.partition(" ; ")
        op = parse_schema(text)
        apply_facts(op, facts.pop(op.name, []) + own.split())
        ops.append(op)
    if facts:
        raise ValueError(f"facts about unknown operators: {sorted(facts)}")
    ops.sort(key=lambda op: op.name)
    names = [op.name for op in ops]
    for name, following in zip(names, names[1:]):
        if name == following:
            raise ValueError(f"two schemas of {name}")
    known = set(names)
    for op in ops:
        if op.functional is not None and op.functional not in known:
            raise ValueError(f"{op.name}: no such out-of-place form: {op.functional}")
    return ops
