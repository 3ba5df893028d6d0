"""What only a live ExportedProgram knows: the names that Dim(...) gave, which torch.export.save does not write."""
from __future__ import annotations

import inspect
from typing import Any

from torch.utils import _pytree as pytree


def _named_specs(dynamic_shapes: Any, names: list[str]) -> dict[int, Any]:
    """The shape spec of each top-level argument, by position. names: of forward's arguments."""
    if isinstance(dynamic_shapes, dict):
        return {i: dynamic_shapes[name] for i, name in enumerate(names) if name in dynamic_shapes}
    return dict(enumerate(dynamic_shapes))


def _child(spec: Any, key: Any) -> Any:
    if spec is None:
        return None
    try:
        if isinstance(key, pytree.MappingKey):
            return spec.get(key.key)
        if isinstance(key, pytree.SequenceKey):
            return spec[key.idx]
        if isinstance(key, pytree.GetAttrKey):
            return spec.get(key.name) if isinstance(spec, dict) else getattr(spec, key.name, None)
    except (KeyError, IndexError, AttributeError, TypeError):
        return None
    return None


def _leaf_specs(exported: Any, dynamic_shapes: Any) -> list[Any]:
    """The shape spec of each user input, in the order of the flattened arguments."""
    spec = exported.call_spec.in_spec
    args, kwargs = pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
    names = list(exported.module_call_graph[0].signature.forward_arg_names or [])
    tops = [*args, *kwargs.values()]
    names = names[:len(args)] + list(kwargs) if len(names) >= len(args) else [*names, *kwargs]
    specs = [None] * spec.num_leaves
    if isinstance(dynamic_shapes, dict) and len(dynamic_shapes) == 1 and next(iter(dynamic_shapes)) not in names:
        (only,) = dynamic_shapes.values()            # forward(self, *inputs)
        by_place = dict(enumerate(only)) if isinstance(only, (tuple, list)) else {}
    else:
        by_place = _named_specs(dynamic_shapes, names)
    for place, top in enumerate(tops):
        for path, leaf in pytree.tree_flatten_with_path(top)[0]:
            here = by_place.get(place)
            for key in path:
                here = _child(here, key)
            specs[leaf] = here
    return specs


def dim_names(exported: Any, dynamic_shapes: Any) -> dict[str, str]:
    """{"s77": "batch"}: the program's symbols by the names that dynamic_shapes has for them."""
    if dynamic_shapes is None:
        return {}
    if hasattr(dynamic_shapes, "dynamic_shapes"):     # torch.export.ShapesCollection
        dynamic_shapes = dynamic_shapes.dynamic_shapes(exported, *exported.example_inputs)
    placeholders = {node.name: node.meta.get("val") for node in exported.graph.nodes if node.op == "placeholder"}
    found: dict[str, str] = {}
    for spec, name in zip(_leaf_specs(exported, dynamic_shapes), exported.graph_signature.user_inputs):
        value = placeholders.get(name) if isinstance(name, str) else None
        if value is None or not hasattr(value, "shape") or spec is None:
            continue
        pairs = spec.items() if isinstance(spec, dict) else enumerate(spec) if isinstance(spec, (tuple, list)) else ()
        for index, dim in pairs:
            dim = getattr(dim, "root", dim)           # of 2*batch + 1, batch
            label = getattr(dim, "__name__", None)
            size = value.shape[index]
            if not isinstance(label, str) or isinstance(size, int):
                continue
            symbols = [str(symbol) for symbol in size.node.expr.free_symbols]
            if len(symbols) == 1:
                found.setdefault(symbols[0], label)
    # Two symbols by one name would claim that they are equal; the first keeps it.
    seen: set[str] = set()
    return {symbol: label for symbol, label in found.items() if not (label in seen or seen.add(label))}


def export(model: Any, args: tuple, kwargs: dict | None, dynamic_shapes: Any, strict: bool) -> Any:
    """model as an ExportedProgram; one that is one already stays as it is."""
    import torch
    if isinstance(model, torch.export.ExportedProgram):
        return model
    if not isinstance(model, torch.nn.Module):
        function = model

        class Function(torch.nn.Module):
            def forward(self, *inputs, **keywords):
                return function(*inputs, **keywords)
        Function.forward.__signature__ = inspect.Signature(
            [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *inspect.signature(function).parameters.values()])
        model = Function()
    return torch.export.export(model, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
