#!/usr/bin/env python3
"""Generates gen/onnx_ops.h, gen/onnx_ops.cc and gen/onnx_table.cc from tools/data/onnx_schemas.json.

    tools/gen_onnx.py            regenerate (needs nothing but Python)
    tools/gen_onnx.py --dump     rewrite the input from the installed onnx package first

The input holds every form of every operator of the default domain that an opset from 18 to 28 can mean. An operator becomes a method if all its
operands are tensors. Operands are those of the newest form; attributes are the union of all forms, in alphabetical order.
"""
import argparse
import hashlib
import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / 'tools' / 'data' / 'onnx_schemas.json'
FIRST_OPSET, LAST_OPSET = 18, 28
BY_HAND = {'Constant', 'If', 'Loop', 'Scan'}  # methods of src/onnx/builder.h
RANDOM = {'Bernoulli', 'Dropout', 'Multinomial', 'RandomNormal', 'RandomNormalLike', 'RandomUniform', 'RandomUniformLike'}  # equal nodes draw apart
LEFT_OUT = {'ImageDecoder', 'OptionalGetElement', 'OptionalHasElement', 'TfIdfVectorizer'}  # of text, images and optionals
DTYPE_ATTRS = {'to', 'dtype', 'output_datatype', 'output_dtype', 'softmax_precision', 'precision'}
DTYPES = {  # TensorProto's name and code -> DType
    'float': ('F32', 1), 'uint8': ('U8', 2), 'int8': ('I8', 3), 'uint16': ('U16', 4), 'int16': ('I16', 5), 'int32': ('I32', 6), 'int64': ('I64', 7),
    'bool': ('Bool', 9), 'float16': ('F16', 10), 'double': ('F64', 11), 'uint32': ('U32', 12), 'uint64': ('U64', 13), 'complex64': ('C64', 14),
    'complex128': ('C128', 15), 'bfloat16': ('BF16', 16), 'float8e4m3fn': ('F8E4M3FN', 17), 'float8e4m3fnuz': ('F8E4M3FNUZ', 18),
    'float8e5m2': ('F8E5M2', 19), 'float8e5m2fnuz': ('F8E5M2FNUZ', 20), 'uint4': ('U4', 21), 'int4': ('I4', 22), 'float8e8m0': ('F8E8M0', 24),
}
CODE_TO_DTYPE = {0: 'Unknown', **{code: name for name, code in DTYPES.values()}}
CPP_TYPE = {'INT': 'int64_t', 'FLOAT': 'double', 'STRING': 'std::string_view', 'INTS': 'IntVec', 'FLOATS': 'std::vector<double>',
            'STRINGS': 'std::vector<std::string_view>', 'TENSOR': 'const TensorData*'}
ARG_TYPE = {'INT': 'Int', 'FLOAT': 'Float', 'STRING': 'Str', 'INTS': 'IntList', 'FLOATS': 'FloatList', 'STRINGS': 'StrList', 'TENSOR': 'Any', 'GRAPH': 'Graph'}


def dump():
    import numpy
    import onnx
    import onnx.defs

    def default(attr):
        if not attr.default_value.type:
            return None
        value = onnx.helper.get_attribute_value(attr.default_value)
        if isinstance(value, float):
            return float(str(numpy.float32(value)))
        if isinstance(value, bytes):
            return value.decode()
        return [x.decode() if isinstance(x, bytes) else x for x in value] if isinstance(value, list) else value

    def operand(schema, formal):
        types = sorted(formal.types)
        option = str(formal.option).split('.')[-1]
        return {'name': formal.name, 'option': option, 'type': formal.type_str, 'types': types}

    by_name = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == '':
            by_name.setdefault(schema.name, []).append(schema)
    ops = {}
    for name, schemas in sorted(by_name.items()):
        schemas.sort(key=lambda s: s.since_version)
        first = [s for s in schemas if s.since_version <= FIRST_OPSET][-1:]
        forms = first + [s for s in schemas if FIRST_OPSET < s.since_version <= LAST_OPSET]
        if not forms or forms[-1].deprecated:
            continue
        ops[name] = [{
            'since': s.since_version,
            'inputs': [operand(s, x) for x in s.inputs],
            'outputs': [operand(s, x) for x in s.outputs],
            'attributes': [{'name': a.name, 'type': str(a.type).split('.')[-1], 'required': a.required, 'default': default(a)}
                           for _, a in sorted(s.attributes.items())],
        } for s in forms]
    table = {opset: min(row[1] for row in onnx.helper.VERSION_TABLE if row[2] >= opset) for opset in range(FIRST_OPSET, LAST_OPSET + 1)}
    lines = [f'{json.dumps(name)}: {json.dumps(forms)}' for name, forms in ops.items()]
    DATA.write_text('{"onnx": ' + json.dumps(onnx.__version__) + ',\n"ir_version": ' + json.dumps(table) + ',\n"ops": {\n' + ',\n'.join(lines) + '\n}}\n')


def dtype_of(type_text):
    if not type_text.startswith('tensor('):
        return None
    return DTYPES.get(type_text[7:-1], (None,))[0]


def is_tensor_op(name, forms):
    newest = forms[-1]
    return name not in LEFT_OUT and all(any(dtype_of(t) for t in x['types']) for x in newest['inputs'] + newest['outputs'])


def quote(text):
    return json.dumps(text)


class Op:
    def __init__(self, name, forms):
        self.name, self.forms = name, forms
        self.newest = forms[-1]
        self.inputs, self.outputs = self.newest['inputs'], self.newest['outputs']
        self.attributes = []  # dicts with since, gone
        names = sorted({a['name'] for form in forms for a in form['attributes']})
        for attr in names:
            having = [f for f in forms if any(a['name'] == attr for a in f['attributes'])]
            spec = dict(next(a for a in having[-1]['attributes'] if a['name'] == attr))
            spec['since'] = having[0]['since'] if having[0] is not forms[0] else 0
            spec['current'] = having[-1] is self.newest
            if spec['type'] in ARG_TYPE:
                self.attributes.append(spec)

    def input_since(self, name):
        for form in self.forms:
            if any(x['name'] == name for x in form['inputs']):
                return 0 if form is self.forms[0] else form['since']
        return 0

    def output_since(self, index):
        for form in self.forms:
            if index < len(form['outputs']):
                return 0 if form is self.forms[0] else form['since']

    def is_dtype(self, attr):
        return attr['type'] == 'INT' and attr['name'] in DTYPE_ATTRS

    def fields(self):
        return [a for a in self.attributes if a['current'] and not (self.name == 'Split' and a['name'] == 'num_outputs')]

    def default(self, attr):
        """The C++ expression of a default, None if there is none."""
        value = attr['default']
        if value is None:
            return None
        if self.is_dtype(attr):
            return f'DType::{CODE_TO_DTYPE[value]}'
        if attr['type'] == 'STRING':
            return quote(value)
        if isinstance(value, list):
            return '{' + ', '.join(quote(x) if isinstance(x, str) else repr(x) for x in value) + '}'
        return repr(value)

    def field(self, attr):
        kind = 'DType' if self.is_dtype(attr) else CPP_TYPE[attr['type']]
        default = self.default(attr)
        if default is not None:
            return f'{kind} {attr["name"]} = {default};'
        if attr['required']:
            return f'Required<{kind}> {attr["name"]};'
        if self.is_dtype(attr):
            return f'DType {attr["name"]} = DType::Unknown;'
        if attr['type'] == 'TENSOR':
            return f'{kind} {attr["name"]} = nullptr;'
        if attr['type'] in ('INTS', 'FLOATS', 'STRINGS'):
            return f'{kind} {attr["name"]} = {{}};'
        return f'std::optional<{kind}> {attr["name"]} = {{}};'

    def variadic_output(self):
        return any(x['option'] == 'Variadic' for x in self.outputs)

    def result_type(self):
        if self.variadic_output():
            return 'Vals'
        return 'Val' if len(self.outputs) == 1 else f'{self.name}Out'

    def parameters(self, with_defaults):
        params = []
        attrs_required = any(a['required'] for a in self.fields())
        trailing = not attrs_required and not self.variadic_output()
        last_required = max([i for i, x in enumerate(self.inputs) if x['option'] != 'Optional'], default=-1)
        for i, x in enumerate(self.inputs):
            if x['option'] == 'Variadic':
                params.append(f'const Vals& {x["name"]}')
            elif x['option'] == 'Optional':
                params.append(f'OptVal {x["name"]}' + (' = {}' if with_defaults and trailing and i > last_required else ''))
            else:
                params.append(f'Val {x["name"]}')
        if self.variadic_output():
            params.append('size_t results')
        if self.fields():
            params.append(f'const {self.name}Attrs& attrs' + (' = {}' if with_defaults and not attrs_required else ''))
        return ', '.join(params)


def emit_header(ops, head):
    out = [head, '#pragma once', '', '#include "onnx/attr_types.h"', '#include "rewrite/builder.h"', '', 'namespace pt2onnx {', '']
    out += ['// Ids are kFirstOnnxId + these.', 'enum class OnnxOp : uint16_t {']
    line = ' '
    for op in ops:
        item = f' {op.name},'
        if len(line) + len(item) > 148:
            out.append(line)
            line = ' '
        line += item
    out += [line, '};', '']
    for op in ops:
        if op.name in BY_HAND:
            continue
        if op.fields():
            body = ' '.join(op.field(a) for a in op.fields())
            one = f'struct {op.name}Attrs {{ {body} }};'
            if len(one) <= 150:
                out.append(one)
            else:
                out.append(f'struct {op.name}Attrs {{')
                out += ['  ' + op.field(a) for a in op.fields()]
                out.append('};')
        if op.result_type() == f'{op.name}Out':
            out.append(f'struct {op.name}Out {{ Val {", ".join(x["name"] for x in op.outputs)}; }};')
    out += ['', '// One method for each operator. Optional results that nothing reads are not written to the model.', 'class OnnxOps : public Builder {', ' public:',
            '  using Builder::Builder;', '']
    for op in ops:
        if op.name not in BY_HAND:
            out.append(f'  {op.result_type()} {op.name}({op.parameters(True)});')
    out += ['', ' protected:', '  // args: operands, then attributes, in schema order; results: how many (of a variadic result).',
            '  virtual Results Apply(OnnxOp op, std::vector<Arg> args, size_t results) = 0;', '};', '', '}  // namespace pt2onnx', '']
    return '\n'.join(out)


def emit_bodies(ops, head):
    out = [head, '#include "gen/onnx_ops.h"', '', '#include "onnx/args.h"', '', 'namespace pt2onnx {', '']
    for op in ops:
        if op.name in BY_HAND:
            continue
        out.append(f'{op.result_type()} OnnxOps::{op.name}({op.parameters(False)}) {{')
        parts = [f'.In({x["name"]})' for x in op.inputs]
        fields = {a['name'] for a in op.fields()}
        for a in op.attributes:
            if a['name'] not in fields or not a['current']:
                parts.append('.None()')
            elif a['required']:
                parts.append(f'.Attr(attrs.{a["name"]}.value)')
            elif op.default(a) is not None and a['type'] in ('INT', 'FLOAT', 'STRING'):
                parts.append(f'.Attr(attrs.{a["name"]}, {op.default(a)})')
            else:
                parts.append(f'.Optional(attrs.{a["name"]})')
        results = 'results' if op.variadic_output() else str(len(op.outputs))
        out.append(f'  const Results out = Apply(OnnxOp::{op.name}, OnnxArgs(context_){"".join(parts)}.Take(), {results});')
        kind = op.result_type()
        if kind == 'Vals':
            out.append('  return WrapAll(*this, out);')
        elif kind == 'Val':
            out.append('  return Wrap(out[0]);')
        else:
            out.append('  return {' + ', '.join(f'Wrap(out[{i}])' for i in range(len(op.outputs))) + '};')
        out += ['}', '']
    out += ['}  // namespace pt2onnx', '']
    return '\n'.join(out)


def mask(operand):
    bits = [f'{d}' for d in (dtype_of(t) for t in operand['types']) if d]
    return bits


def emit_table(ops, head, ir_version):
    out = [head, '#include "onnx/table.h"', '', 'namespace pt2onnx {', 'namespace {', '', 'using enum ArgType;', '',
           'template <class... D>', 'constexpr uint32_t Mask(D... dtypes) { return (0u | ... | (1u << static_cast<int>(dtypes))); }', '']
    masks = {}
    for op in ops:
        for form in op.forms:
            for x in form['inputs'] + form['outputs']:
                masks.setdefault(tuple(sorted(set(mask(x)))), len(masks))
    for key, index in masks.items():
        out.append(f'constexpr uint32_t m{index} = Mask({", ".join("DType::" + d for d in key)});')
    out.append('')
    for op in ops:
        n = op.name
        variables = []
        for x in op.inputs + op.outputs:
            if not x['type'].startswith('tensor(') and x['type'] not in variables:
                variables.append(x['type'])
        args = []
        for x in op.inputs:
            kind = 'TensorList' if x['option'] == 'Variadic' else 'Tensor'
            optional = 'true' if x['option'] == 'Optional' else 'false'
            default = ', .has_default = true, .default_text = "None"' if x['option'] == 'Optional' else ''
            args.append(f'{{.name = "{x["name"]}", .type = {kind}, .optional = {optional}{default}}}')
        for a in op.attributes:
            kind = 'ArgType::DType' if op.is_dtype(a) else ARG_TYPE[a['type']]
            kind = 'ArgType::Graph' if kind == 'Graph' else kind
            rest = '' if a['required'] else ', .optional = true'
            default = '' if a['required'] else ', .has_default = true, .default_text = "None"'
            args.append(f'{{.name = "{a["name"]}", .type = {kind}{rest}, .keyword_only = true, .input = false{default}}}')
        if args:
            out += [f'constexpr ArgSchema {n}_args[] = {{'] + ['    ' + a + ',' for a in args] + ['};']
        results = [f'{{.name = "{x["name"]}", .list = {"true" if x["option"] == "Variadic" else "false"}}}' for x in op.outputs]
        out.append(f'constexpr ResultSchema {n}_results[] = {{{", ".join(results)}}};')
        since = [op.input_since(x['name']) for x in op.inputs] + [a['since'] for a in op.attributes]
        if since:
            out.append(f'constexpr uint8_t {n}_since[] = {{{", ".join(map(str, since))}}};')
        names = ', '.join(quote(v) for v in variables)
        out.append(f'constexpr std::string_view {n}_variables[] = {{{names}}};' if variables else f'constexpr std::span<const std::string_view> {n}_variables;')
        operands = []
        for i, x in enumerate(op.inputs + op.outputs):
            optional = 'true' if x['option'] == 'Optional' else 'false'
            fixed = x['type'].startswith('tensor(')
            variable = -1 if fixed else variables.index(x['type'])
            only = sorted(set(mask(x)))
            fixed_dtype = only[0] if len(only) == 1 else 'Unknown'
            operands.append(f'{{{variable}, DType::{fixed_dtype}, {optional}}}')
        out.append(f'constexpr OnnxOperand {n}_operands[] = {{{", ".join(operands)}}};')
        for form in op.forms:
            items = []
            for x in op.inputs:
                match = [y for y in form['inputs'] if y['name'] == x['name']]
                items.append(f'm{masks[tuple(sorted(set(mask(match[0]))))]}' if match else '0')
            for i, x in enumerate(op.outputs):
                items.append(f'm{masks[tuple(sorted(set(mask(form["outputs"][i]))))]}' if i < len(form['outputs']) else '0')
            out.append(f'constexpr uint32_t {n}_masks{form["since"]}[] = {{{", ".join(items)}}};')
        forms = [f'{{{form["since"]}, {n}_masks{form["since"]}}}' for form in op.forms]
        out.append(f'constexpr OnnxForm {n}_forms[] = {{{", ".join(forms)}}};')
    out += ['', 'constexpr OpSchema kSchemas[] = {']
    for i, op in enumerate(ops):
        has_args = op.inputs or op.attributes
        args = f'{op.name}_args' if has_args else '{}'
        traits = ', .traits = kRandom' if op.name in RANDOM else ''
        fields = f'.id = kFirstOnnxId + {i}, .name = "onnx::{op.name}", .args = {args}, .results = {op.name}_results{traits}'
        out.append(f'    {{{fields}}},')
    out += ['};', '', 'constexpr OnnxFacts kFacts[] = {']
    for op in ops:
        since = f'{op.name}_since' if op.inputs or op.attributes else '{}'
        out.append(f'    {{{len(op.inputs)}, {since}, {op.name}_operands, {op.name}_variables, {op.name}_forms}},')
    out += ['};', '']
    versions = ', '.join(str(ir_version[str(o)]) for o in range(FIRST_OPSET, LAST_OPSET + 1))
    out += [f'constexpr int kIrVersions[] = {{{versions}}};  // from opset {FIRST_OPSET}', '', '}  // namespace', '',
            'std::span<const OpSchema> OnnxOpTable() { return kSchemas; }',
            'const OnnxFacts& FactsOf(OnnxOp op) { return kFacts[static_cast<size_t>(op)]; }',
            f'int OnnxIrVersion(int opset) {{ return kIrVersions[opset - {FIRST_OPSET}]; }}', '', '}  // namespace pt2onnx', '']
    return '\n'.join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--dump', action='store_true', help='rewrite the input from the installed onnx package first')
    parser.add_argument('--out', type=pathlib.Path, default=ROOT / 'gen', help='folder to write to')
    args = parser.parse_args()
    if args.dump:
        dump()
    text = DATA.read_bytes()
    data = json.loads(text)
    checksum = hashlib.sha256(text).hexdigest()[:16]
    head = f'// Generated by tools/gen_onnx.py from tools/data/onnx_schemas.json (onnx {data["onnx"]}), sha256 {checksum}. Do not edit.'
    ops = [Op(name, forms) for name, forms in data['ops'].items() if is_tensor_op(name, forms)]
    args.out.mkdir(exist_ok=True)
    (args.out / 'onnx_ops.h').write_text(emit_header(ops, head))
    (args.out / 'onnx_ops.cc').write_text(emit_bodies(ops, head))
    (args.out / 'onnx_table.cc').write_text(emit_table(ops, head, data['ir_version']))


if __name__ == '__main__':
    main()
