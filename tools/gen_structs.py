"""The op structs gen/{aten,prims,...}.h: what rules are written with. Part of gen_schemas.py.

One for each op that writes nothing; there is none for an in-place or out op, so no rule can bring a mutation back. The members are templates, so
that only the ops that a file uses cost it anything.
"""
import gen_lib

# Header -> namespaces.
HEADERS = {
    "aten": ["aten"],
    "prims": ["prims"],
    "quantized": ["quantized", "quantized_decomposed"],
    "torchvision": ["torchvision"],
    "transformers": ["transformers"],
    "hop": ["hop", "functorch", "sym", "pt2onnx"],
}
# ArgType -> field type; not here: no field.
FIELDS = {
    "Tensor": "Val", "TensorList": "Vals", "OptTensorList": "OptVals", "Int": "int64_t", "SymInt": "SymExpr", "IntList": "Ints",
    "SymIntList": "Dims", "Float": "double", "FloatList": "Doubles", "Bool": "bool", "BoolList": "Bools", "Str": "std::string_view",
    "StrList": "Texts", "Scalar": "Scalar", "ScalarList": "Scalars", "DType": "DType", "MemoryFormat": "MemoryFormat", "Graph": "Graph*",
    "Any": "Arg",
}
OPTIONAL_NAMES = {"Val": "OptVal", "Scalar": "OptScalar", "Arg": "Arg", "Graph*": "Graph*"}
# Namespaces whose name would hide one of ours.
RENAMED = {"pt2onnx": "own"}
WORDS = set("""alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const consteval constexpr constinit
continue co_await co_return co_yield decltype default delete do double else enum explicit export extern false float for friend goto if inline int
long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register requires return short signed sizeof
static struct switch template this throw true try typedef typeid typename union unsigned using virtual void volatile while xor xor_eq std""".split())
MEMBERS = {"Bind", "Tensors", "Args", "kId"}
# c10::MemoryFormat -> the .pt2's code.
MEMORY_FORMATS = {"0": 1, "1": 4, "2": 2, "3": 3}


def struct_name(op):
    name = op.name.partition("::")[2].replace(".", "_")
    return name + "_" if name in WORDS else name


def field_name(arg, struct):
    return arg.name + "_" if arg.name in WORDS or arg.name in MEMBERS or arg.name == struct else arg.name


def field_type(arg):
    if arg.type not in FIELDS or arg.name == "pin_memory":
        return None
    kind = FIELDS[arg.type]
    return OPTIONAL_NAMES.get(kind, f"std::optional<{kind}>") if arg.optional else kind


class Lists:
    """Default lists, as constants of the header."""

    def __init__(self):
        self.names = {}

    def name(self, element, numbers):
        name = ("kInts" if element == "int64_t" else "kDims") + "".join("_" + n.replace("-", "m") for n in numbers)
        self.names[name] = f"inline constexpr {element} {name}[] = {{{', '.join(numbers)}}};"
        return f"defaults::{name}"


def initializer(arg, lists):
    """The default as C++ text, with " = "; empty: the field has to be given, or is None."""
    text = arg.default
    if text is None or text == "None":
        return " = {}" if arg.optional else ""
    if arg.type in ("IntList", "SymIntList"):
        numbers = text.strip("[]").replace(" ", "").split(",") if text.strip("[]") else []
        if not text.startswith("["):
            numbers *= arg.list_size
        if not numbers:
            return " = {}"
        return " = " + lists.name("int64_t" if arg.type == "IntList" else "SymExpr", numbers)
    if arg.type == "Bool":
        return " = " + text.lower()
    if arg.type in ("Int", "SymInt", "Str"):
        return " = " + text
    if arg.type == "Float":
        return f" = {float(text)!r}"
    if arg.type == "Scalar":
        return " = " + (f"{float(text)!r}" if "." in text or "e" in text else text)
    if arg.type == "DType" and text == "4":
        return " = DType::I64"
    if arg.type == "MemoryFormat":
        return f" = MemoryFormat{{{MEMORY_FORMATS[text]}}}"
    raise ValueError(f"no C++ form for the default {text} of a {arg.type}")


def struct_text(op, op_id, lists):
    name = struct_name(op)
    fields, reads, writes, tensors = [], [], [], []
    leading = True
    for i, arg in enumerate(op.args):
        kind = field_type(arg)
        if kind is None:
            writes.append("None()")
            continue
        field = field_name(arg, name)
        fields.append(f"{kind} {field}{initializer(arg, lists)};")
        reads.append(f"in_.template Read<{kind}>({i})")
        writes.append(field)
        leading = leading and arg.type == "Tensor"
        if leading:
            tensors.append(field)
    lines = [f"struct {name} {{  // {op.text.partition('::')[2]}", f"  static constexpr uint32_t kId = {op_id};"]
    if fields:
        lines.append("  " + " ".join(fields))
    lines.append(f"  template <class In_> static {name} Bind(const In_& {'in_' if reads else ''}) {{ return {{{', '.join(reads)}}}; }}")
    if tensors:
        lines.append(f"  template <int = 0> auto Tensors() const {{ return std::make_tuple({', '.join(tensors)}); }}")
    lines.append(f"  template <class Out_> void Args(Out_&& out_) const {{ out_({', '.join(writes)}); }}")
    return lines + ["};"]


def header(ops, namespaces):
    lines = []
    for namespace in namespaces:
        lists, structs, seen = Lists(), [], set()
        for op_id, op in enumerate(ops):
            if op.name.partition("::")[0] != namespace or op.kind in ("Inplace", "Out"):
                continue
            if struct_name(op) in seen:
                raise ValueError(f"two structs {struct_name(op)}")
            seen.add(struct_name(op))
            structs += struct_text(op, op_id, lists)
        name = RENAMED.get(namespace, namespace)
        lines += ["", f"namespace {name} {{"]
        if lists.names:
            lines += ["namespace defaults {", *sorted(lists.names.values()), "}  // namespace defaults"]
        lines += [*structs, f"}}  // namespace {name}"]
    return "\n".join(["#pragma once", "", '#include "rewrite/op_fields.h"', "", "namespace pt2onnx {", *lines, "", "}  // namespace pt2onnx", ""])


def headers(ops):
    return {f"gen/{name}.h": header(ops, namespaces) for name, namespaces in HEADERS.items()}
