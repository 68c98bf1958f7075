"""Invariants of every graph.  A pass that breaks one has a bug: that is an `InternalError`, never the user's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from opgen.diagnostics import InternalError
from opgen.graph.ir.bound import Attributes, CallError, as_given, bind, settled
from opgen.graph.ir.nodes import Constant, Graph, Node, Op
from opgen.runtime.memory.buffers import dtype_of


def verify(graph: Graph, after: str = "") -> Graph:
    """Return the graph if it is valid; else raise InternalError with all faults.  `after`: the pass that made it."""
    found = list(_faults(graph))
    if found:
        where = f" after '{after}'" if after else ""
        raise InternalError(f"graph '{graph.name}'{where}: " + "; ".join(found))
    return graph


def _faults(graph: Graph) -> Iterator[str]:
    """Yield all faults, except those that follow only from wrong names."""
    names = list(_names(graph))
    yield from names
    if not names:
        yield from _order(graph)
        for constant in graph.constants:
            yield from _constant(constant)
        for node in graph.nodes:
            yield from (f"node '{node.name}': {fault}" for fault in _node(graph, node))


def _names(graph: Graph) -> Iterator[str]:
    """Check that each value has one name and one origin, and that every value that is taken exists."""
    values = [v.name for v in (*graph.inputs, *(c.value for c in graph.constants), *graph.values)]
    yield from (f"value '{name}' is there more than once" for name in _repeated(values))
    yield from (f"node '{name}' is there more than once" for name in _repeated(n.name for n in graph.nodes))
    if "" in values or any(not n.name for n in graph.nodes):
        yield "a name is empty"
    made = [name for node in graph.nodes for name in node.outputs]
    if made != [v.name for v in graph.values]:
        yield "the values are not the nodes' results in order"
    known = set(values)
    yield from (f"nothing makes value '{name}'" for name in dict.fromkeys(graph.taken()) if name not in known)
    yield from (f"output '{name}' is there more than once" for name in _repeated(graph.output_names))
    if graph.output_names and len(graph.output_names) != len(graph.outputs):
        yield f"{len(graph.outputs)} outputs have {len(graph.output_names)} names"
    for value in (*graph.inputs, *(c.value for c in graph.constants), *graph.values):
        if any(size < 0 for size in value.shape):
            yield f"value '{value}' has a negative size"


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _order(graph: Graph) -> Iterator[str]:
    """Check that each node comes after those whose results it takes."""
    known = {v.name for v in (*graph.inputs, *(c.value for c in graph.constants))}
    for node in graph.nodes:
        for name in node.inputs:
            if name not in known:
                yield f"node '{node.name}' takes '{name}' before it is made"
        known.update(node.outputs)


def _constant(constant: Constant) -> Iterator[str]:
    array = constant.data.array
    found = dtype_of(array)
    if found != constant.value.dtype or array.shape != constant.value.shape:
        yield f"constant '{constant.value}' holds {found or array.dtype}{list(array.shape)}"


def _node(graph: Graph, node: Node) -> Iterator[str]:
    """Check that a node's op takes its inputs and attributes, and makes its outputs."""
    spec = node.op.spec
    if [name for name, _ in node.types] != [v.name for v in spec.type_variables]:
        yield f"types {node.types} are not those of '{spec.name}'"
        return
    for (_, word), variable in zip(node.types, spec.type_variables, strict=True):
        if word not in {t.name for t in variable.allowed}:
            yield f"'{spec.name}' does not take {word} for {variable.name}"
            return
    try:
        if not _are_settled(node.op, node.attributes, repr(node.attributes)):
            yield f"attributes {node.attributes} are not those of '{spec.name}', all and in order"
        kinds = [(v.dtype, v.shape) for v in (graph.value[name] for name in node.inputs)]
        results = bind(node.op, node.types, node.attributes, kinds).results
    except CallError as error:
        yield str(error)
        return
    except KeyError as error:
        yield f"'{spec.name}' speaks of {error} where that is not known"
        return
    stated = [graph.value[name] for name in node.outputs]
    if len(results) != len(stated):
        yield f"it makes {len(results)} results, not {len(stated)}"
        return
    for value, (dtype, shape) in zip(stated, results, strict=True):
        if (value.dtype, value.shape) != (dtype, shape):
            yield f"its result is {dtype}{list(shape)}, not '{value}'"


@lru_cache(maxsize=4096)
def _are_settled(op: Op, attributes: Attributes, text: str) -> bool:
    """Return whether attributes are all those of an op, in order; `text` separates values that Python calls equal."""
    sizes, attrs = as_given(op.spec, dict(attributes))
    return repr(settled(op.spec, {**attrs, **sizes})) == text
