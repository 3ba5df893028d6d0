"""What a program that functionalize or decompose wrote must be: PyTorch loads it, no op of it writes, of decompose all are Core ATen."""
import torch

# What PyTorch's own default decompositions leave too, or lists beside Core ATen: not ours to decompose.
NOT_CORE_BUT_LEFT = {"aten::sym_size.int", "aten::_assert_scalar", "aten::_assert_async.msg", "aten::_assert_tensor_metadata",
                     "aten::sym_constrain_range_for_size", "aten::sym_constrain_range", "aten::item", "aten::scalar_tensor"}


def graphs(module):
    return [part.graph for part in module.modules() if isinstance(part, torch.fx.GraphModule)]


def ops(program):
    """Every operator overload that the program calls, once for each call."""
    return [node.target for graph in graphs(program.graph_module) for node in graph.nodes
            if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)]


def writing_ops(program):
    return sorted({str(op) for op in ops(program) if op._schema.is_mutable})


def composite_ops(program):
    """The ops that are neither in Core ATen nor without a decomposition in PyTorch itself."""
    table = default_decompositions()
    found = set()
    for op in ops(program):
        name = op._schema.name + ("." + op._schema.overload_name if op._schema.overload_name else "")
        if torch.Tag.core in op.tags or name in NOT_CORE_BUT_LEFT:
            continue
        composite = torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
        if composite or op in table:
            found.add(str(op))
    return sorted(found)


def default_decompositions(cache=[]):  # noqa: B006
    if not cache:
        table = torch.export.default_decompositions()
        cache.append({key for key in table.keys()})
    return cache[0]


def load(path):
    """The program; its verifier has run."""
    return torch.export.load(path)
