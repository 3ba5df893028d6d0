#!/usr/bin/env python3
"""docs/ops.md: what becomes of every op. Needs nothing but Python and a build.

    tools/coverage.py build/dev                    writes docs/ops.md
    tools/coverage.py build/dev --check            ends with 1 if docs/ops.md is not what it would write
    tools/coverage.py build/dev --record FILE      takes over what the end-to-end tests wrote to $PT2ONNX_RECORD, into tools/data/tested_ops.txt

From: the rules (the program list_rules of the tests), what the tests saw converted with the right numbers (tools/data/tested_ops.txt), and the
refusals in the rules' sources.
"""
import argparse
import collections
import difflib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOC, TESTED = ROOT / "docs" / "ops.md", ROOT / "tools" / "data" / "tested_ops.txt"
DTYPES = ["f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64", "bool", "c64", "c128"]
NAMESPACES = ["aten", "prims", "quantized_decomposed", "torchvision", "hop"]

WAYS = {"decomposition": "decomposed", "lowering": "lowered", "complex": "complex"}

# Why an op without a rule is refused. The first that matches counts; an op that none matches is "not written yet".
REASONS = [
    (r"mkldnn|cudnn|miopen|mps|cuda|vulkan|xpu|fbgemm|onednn|_thnn|nnpack|triton|_cpu_fallback", "Kernels of one device or library, not in exported programs"),
    (r"sparse|coalesce|_indices|_values|crow|ccol|_spdiags|_spsolve|^aten::(indices|values)|hspmm|smm$|sspaddmm|to_dense|_cslt", "Sparse tensors"),
    (r"nested|jagged|padded_dim|to_padded", "Nested tensors"),
    (r"linalg_eig$|linalg_eigvals$|_linalg_eigvals", "Eigenvalues of a matrix that is not symmetric: no algorithm of fixed form gives LAPACK's order and signs"),
    (r"linalg_lstsq|histogramdd|hash_tensor|airy_ai|chebyshev|hermite|laguerre|legendre|modified_bessel_k|scaled_modified|spherical_bessel|zeta", "Rare, and without an ONNX form worth its size"),
    (r"complex|_conj|conj|real|imag|view_as_|_neg_view|chalf|fft", "Views of complex numbers that capture does not leave, and kernels of Fourier transforms"),
    (r"_backward|_backward_|backward|_grad$|_jvp|jvp|_grad_", "Gradients other than those of activations, softmax and views"),
    (r"_batch_dim|_dual|fw_primal|functorch|_foobar|_test|_make_dep|_print|_assert_scalar|_backend", "PyTorch's insides"),
    (r"int4|int8pack|mixed_dtypes|_dyn_quant|scaled_mm|scaled_grouped|q_per_channel|q_scale|q_zero|int_repr|quantize_per|fake_quantize_learn|choose_qparams|dequantize\.|quantized", "Quantized tensor types and packed weights; quantized_decomposed ops convert"),
    (r"philox|_sobol", "Random engines with a state of their own"),
    (r"_foreach|_fused|_amp_", "Steps of optimizers"),
    (r"::cov$|::corrcoef$|ctc_loss|data_dep", "torch.export can't capture it"),
    (r"^aten::(Int|Float|Bool|Scalar|Complex|len|str|ord|chr|dict|list|keys|items|sorted|index\.(int|str|list)|add|sub|mul|neg|eq|ne|lt|gt|le|ge|__|pow|floordiv|remainder|slice|insert|pop|append|format|splitlines)\b", "TorchScript on numbers, strings and lists: not in exported programs"),
]


def rules(build):
    out = subprocess.run([build / "list_rules"], check=True, capture_output=True, text=True).stdout
    return {name: way for way, name in (line.split() for line in out.splitlines())}


def base(name):
    return name.split(".")[0]


def out_of_place(name):
    """add_.Tensor is tested as add.Tensor is: the write is gone before rules see it."""
    head, dot, overload = name.partition(".")
    return re.sub(r"(?<=[a-z0-9])_$", "", head) + dot + overload


def read_tested():
    tested = {}
    for line in TESTED.read_text(encoding="utf-8").splitlines() if TESTED.exists() else []:
        if line.startswith("#"):
            continue
        name, since, *dtypes = line.split()
        tested[name] = (int(since), dtypes)
    return tested


def record(path):
    tested = collections.defaultdict(lambda: [99, set()])
    for line in path.read_text(encoding="utf-8").splitlines():
        name, dtype, since = line.split()
        entry = tested[out_of_place(name)]
        entry[0] = min(entry[0], int(since))
        entry[1] |= {dtype} - {"-"}
    lines = ["# What the end-to-end tests saw converted with eager PyTorch's numbers: op, lowest opset, dtypes. Written by tools/coverage.py --record."]
    for name, (since, dtypes) in sorted(tested.items()):
        lines.append(" ".join([name, str(since), *sorted(dtypes, key=lambda d: (DTYPES.index(d) if d in DTYPES else 99, d))]))
    TESTED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def refusals():
    """(family, sentence) of each refusal in a rule's source."""
    found = collections.defaultdict(list)
    for path in sorted([*ROOT.glob("src/lower/*.cc"), *ROOT.glob("src/decomp/*.cc"), *ROOT.glob("src/complex/*.cc")]):
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r'(?:LaterUnsupported\([^"]*?|Unsupported\(\s*)"((?:[^"\\]|\\.)*)"|constexpr (?:const char\*|std::string_view) k(?!Instead)\w+ = "((?:[^"\\]|\\.){30,})"', text):
            sentence = match[1] or match[2]
            if " " not in sentence or sentence.endswith("("):  # a code, or the beginning of a sentence that is put together
                continue
            if sentence not in found[path.stem]:
                found[path.stem].append(sentence)
    return {family: list for family, list in found.items() if list}


def reason(name):
    return next((why for pattern, why in REASONS if re.search(pattern, name)), "Not written yet")


def page(ways, tested):
    has_rule = {name for name, way in ways.items() if way != "none"}
    count = sum(name in tested for name in has_rule)
    lines = [
        "# Operators", "",
        "Written by tools/coverage.py from the rules and from what the tests saw; a test tells when it is stale.", "",
        f"{len(has_rule)} ops (overloads) have a rule; the end-to-end tests compare {count} of them with eager PyTorch. In-place and `out=` forms are not listed: a write has become a value",
        "before rules are asked, so `add_` is `add`. Views are written back to where they look.", "",
        "- *how*: lowered to ONNX operators by a rule of `src/lower`, or decomposed into other ATen ops by one of `src/decomp`; complex: a rule of",
        "  `src/complex` says what it is of complex numbers, in terms of real ones.",
        "- *dtypes*: those of the first operand that tests have; others of the op's dtypes go the same way. *opset*: the lowest at which the tested programs convert, of 18 to 28.",
        "- An op without dtypes and opset has no end-to-end test of its own.", "",
    ]
    for namespace in NAMESPACES:
        ops = collections.defaultdict(list)
        for name in has_rule:
            if name.startswith(f"{namespace}::"):
                ops[base(name)].append(name)
        if not ops:
            continue
        lines += [f"## {namespace}", "", "| op | overloads | how | dtypes | opset |", "|---|---|---|---|---|"]
        for op in sorted(ops):
            names = sorted(ops[op])
            overloads = ", ".join(name.partition(".")[2] or "default" for name in names)
            kinds = {way for name in names for way in ways[name].split(",")}
            how = ", ".join(word for kind, word in WAYS.items() if kind in kinds)
            seen = [tested[name] for name in names if name in tested]
            dtypes = {dtype for _, list in seen for dtype in list}
            shown = " ".join([dtype for dtype in DTYPES if dtype in dtypes] + sorted(dtypes - set(DTYPES)))
            lines.append(f"| {op.partition('::')[2]} | {'' if overloads == 'default' else overloads} | {how} | {shown} | {min((since for since, _ in seen), default='')} |")
        lines.append("")
    lines += ["## What rules refuse", "", "A rule that meets one of these ends in E0301 with this sentence, and with what to do where there is something.", ""]
    for family, sentences in refusals().items():
        lines.append(f"- {family}: {'; '.join(sentences)}.")
    lines += ["", "## Ops without a rule", "",
              "They end in E0301 with the op's name. `--decompose ns::op=impl.pt2` gives one its meaning, `--custom-op ns::op=domain::Op` keeps it for a runtime that has it.", ""]
    groups = collections.defaultdict(set)
    with_rule = {base(name) for name in has_rule}
    for name, way in ways.items():
        if way == "none" and name.partition("::")[0] in NAMESPACES:
            groups[reason(name)].add(name if base(name) in with_rule else base(name))
    for why in dict.fromkeys([*(why for _, why in REASONS), "Not written yet"]):
        if why in groups:
            lines += [f"**{why}**: " + ", ".join(f"`{name}`" for name in sorted(groups[why])) + ".", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder that holds list_rules")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments.record)
    text = page(rules(arguments.build), read_tested())
    if not arguments.check:
        DOC.write_text(text, encoding="utf-8")
        return 0
    old = DOC.read_text(encoding="utf-8") if DOC.exists() else ""
    if old == text:
        return 0
    sys.stdout.writelines(list(difflib.unified_diff(old.splitlines(True), text.splitlines(True), "docs/ops.md", "should be", n=0))[:40])
    print("docs/ops.md is stale: run tools/coverage.py on the build folder")
    return 1


if __name__ == "__main__":
    sys.exit(main())
