"""Results of passes, kept in the cache: for passes that take long and read no elements of constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from opgen.cache import entries as cache
from opgen.cache import pickled
from opgen.compiler import toolchain
from opgen.compiler.algorithms import mode
from opgen.graph.ir.nodes import Graph, Node, Value
from opgen.graph.passes.base import Note, Pass, Report
from opgen.graph.passes.bounded import Bounded, bounded

ROOMS = ("spec", "grad", "lower", "graph")
"""Packages whose code determines the result of a pass."""


@dataclass(frozen=True)
class _Kept:
    """A graph without its inputs and the elements of its constants, and the notes of the pass."""

    constants: tuple[str, ...]
    values: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    output_names: tuple[str, ...]
    notes: tuple[Note, ...]


def kept(each: Pass) -> Pass:
    """Return the pass with its results cached; for a bounded pass, each try is cached."""
    if isinstance(each, Bounded):
        return bounded(lambda without: kept(each.fold(without)))
    return replace(each, apply=lambda graph, report: _apply(each, graph, report))


def _apply(each: Pass, graph: Graph, report: Report) -> Graph:
    key = _key(each, graph)
    found = pickled.take(key, _Kept)
    if found is not None:
        report.notes += found.notes
        constants = tuple(graph.constant[name] for name in found.constants)
        parts = found.values, found.nodes, found.outputs, found.output_names
        return Graph(graph.name, graph.inputs, constants, *parts)
    own = Report()
    after = each.apply(graph, own)
    report.notes += own.notes
    if all(graph.constant.get(c.value.name) is c for c in after.constants):
        names = tuple(c.value.name for c in after.constants)
        parts = after.values, after.nodes, after.outputs, after.output_names
        pickled.put(key, _Kept(names, *parts, tuple(own.notes)))
    return after


def _key(each: Pass, graph: Graph) -> str:
    """Return the key of the result: the pass, its code, and the graph without the elements of constants."""
    nodes = [(n.name, n.op.identity, n.types, n.attributes, n.inputs, n.outputs, n.origin) for n in graph.nodes]
    identity: Mapping[str, str] = {
        "pass": each.name,
        "algorithms": mode(),  # a node that an algorithm computes may be left unfused
        "code": toolchain.fingerprint(*ROOMS),
        "values": "\n".join(map(str, graph.value.values())),
        "nodes": "\n".join(map(repr, nodes)),
        "rest": repr((graph.name, len(graph.inputs), len(graph.constants), graph.outputs, graph.output_names)),
    }
    return cache.key_of(identity)
