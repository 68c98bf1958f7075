"""A graph as one program: kernels, a plan, and an entry in machine code that runs them.

A `Program` is data.  It is kept in the cache, so that another process starts without lowering or scheduling anything,
and ahead-of-time libraries contain it.  A `LoadedProgram` can be run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from opgen.cache import entries as cache
from opgen.cache import pickled
from opgen.compiler import toolchain
from opgen.compiler.algorithms import mode
from opgen.compiler.keys import machine_identity
from opgen.compiler.symbolic import CLOSED, Opening
from opgen.graph.ir.bound import Bound, Kind, bound
from opgen.graph.ir.nodes import Graph, Node, Value
from opgen.graph.kernels.kernels import KernelCode, Wanted, lowered, wanted
from opgen.graph.kernels.parallel_build import Progress, made
from opgen.graph.plan.in_place import Pairs, may_share
from opgen.graph.plan.places import Place
from opgen.graph.plan.plan import Plan, Step, plan
from opgen.graph.plan.views import view_of
from opgen.graph.program.program_ir import Entry, Launch, Moved, entry_code
from opgen.graph.program.runnable import ENTRY as ENTRY
from opgen.graph.program.runnable import NodeStep, Runnable
from opgen.runtime.kernels.run import evaluate, is_small
from opgen.runtime.native.words import parameter_words

Number: TypeAlias = "int | float | bool"


@dataclass(frozen=True)
class Prepared:
    """Tensors of these types and shapes that a kernel makes from constants, once.

    `sources` are the numbers of the constants in the entry's table.
    """

    kernel: KernelCode
    sources: tuple[int, ...]
    made: tuple[Kind, ...]


@dataclass(frozen=True)
class Program(Runnable):
    """A program as data: kernels, entry, and the tensors to prepare.

    The entry's table has constants in the order of `weights`, and then the tensors `prepared` from them, in order
    (`opgen.graph.program.prepare` makes them).  `views` are the nodes that cost nothing.
    """

    prepared: tuple[Prepared, ...]
    kernels: tuple[KernelCode, ...]
    entry: Entry
    views: tuple[int, ...]


Openings: TypeAlias = "Sequence[Opening | None]"
"""The opening of each node's kernel; None: everything is open."""


def key_of(graph: Graph, openings: Openings, apart: bool = True) -> str:
    """Return the cache key of a graph's program.

    It covers all but the constants' elements, and includes the algorithms that may compute it.
    """
    number = {name: i for i, name in enumerate(graph.value)}
    nodes = [
        (node.op.identity, node.types, repr(node.attributes), [number[n] for n in (*node.inputs, *node.outputs)])
        for node in graph.nodes
    ]
    identity = {
        "nodes": repr(nodes),
        "values": repr([(v.dtype.name, v.shape) for v in graph.value.values()]),
        "names": repr((graph.name, [v.name for v in graph.inputs], _output_names(graph))),
        "outputs": repr(([number[name] for name in graph.outputs], len(graph.inputs), len(graph.constants))),
        "openings": repr([*openings]),
        "algorithms": mode(),
        "apart": str(apart),
        "graph": toolchain.fingerprint("graph"),
        **machine_identity(),
    }
    return cache.key_of(identity)


def program(
    graph: Graph,
    openings: Openings | None = None,
    progress: Progress | None = None,
    anew: bool = False,
    apart: bool = True,
) -> Program:
    """Return the program of a graph: from the cache, unless `anew`, or newly made.

    Kernels are for the sizes of their nodes alone, unless `openings` are given.  `progress` receives the number of
    finished kernels, and of all, while they are built.  Unless `apart` is false, work of kernels on constants alone is
    done once, in advance; else each run repeats it.
    """
    open_ = [CLOSED] * len(graph.nodes) if openings is None else openings
    key = key_of(graph, open_, apart)
    found = None if anew else pickled.take(key, Program)
    if found is None:
        found = _made(graph, open_, progress, apart)
        pickled.put(key, found)
    return found


def wants(graph: Graph, openings: Openings | None = None, apart: bool = True) -> dict[int, Wanted]:
    """Return the kernel that is wanted for each node but views, by the node's number; arguments as for `program`."""
    calls = [bound(graph, node) for node in graph.nodes]
    views = _views(graph, calls)
    over = may_share(graph, views)
    open_ = [CLOSED] * len(calls) if openings is None else openings
    constants = [constants_of(graph, node) if apart else () for node in graph.nodes]
    running = [i for i, node in enumerate(graph.nodes) if node.outputs[0] not in views]
    return {i: wanted(calls[i], open_[i], constants[i], over[i]) for i in running}


def constants_of(graph: Graph, node: Node) -> tuple[int, ...]:
    """Return the positions of a node's tensors that are constants."""
    return tuple(k for k, name in enumerate(node.inputs) if name in graph.constant)


def steps_of(graph: Graph, program: Program) -> tuple[NodeStep, ...]:
    """Return the launches of a graph's program in order."""
    nodes = [graph.nodes[number] for number in program.nodes]
    launches = zip(nodes, program.entry.launches, strict=True)
    return tuple(NodeStep(node.name, node.op.spec.name, x.kernel, x.shared) for node, x in launches)


# Making ----------------------------------------------------------------------------------------------------------


def _made(graph: Graph, openings: Openings, progress: Progress | None, apart: bool) -> Program:
    needed = wants(graph, openings, apart)
    codes = made(list(needed.values()), progress)
    kernels = list(dict.fromkeys(codes[want.key] for want in needed.values()))
    launched = {i: _Launched(want.call, codes[want.key]) for i, want in needed.items()}
    views = _views(graph, [bound(graph, node) for node in graph.nodes])
    reads = [launched[i].code.reads if i in launched else () for i in range(len(graph.nodes))]
    rooms = [launched[i].room if i in launched else 0 for i in range(len(graph.nodes))]
    shared = {i: x.code.in_place for i, x in launched.items() if x.code.in_place}
    found = plan(graph, views, reads, rooms, _by_name(graph, shared))
    preparing = _Preparing(graph)
    entry = Entry(
        tuple(_launch(launched[s.node], kernels, preparing, s) for s in found.steps),
        _moved(found),
        len(graph.inputs),
        found.bytes,
    )
    return Program(
        name=graph.name,
        inputs=graph.inputs,
        outputs=tuple(_renamed(graph.value[n], o) for n, o in zip(graph.outputs, _output_names(graph), strict=True)),
        nodes=tuple(s.node for s in found.steps),
        arena=found.bytes,
        part=max((x.part for x in launched.values()), default=0),
        code=entry_code(ENTRY, entry),
        weights=tuple(c.value for c in graph.constants),
        prepared=tuple(preparing.found),
        kernels=tuple(kernels),
        entry=entry,
        views=tuple(i for i in range(len(graph.nodes)) if i not in launched),
        bound=found.bound,
        in_place=shared,
        apart=plan(graph, views, reads, rooms).bytes if shared else found.bytes,
    )


def _output_names(graph: Graph) -> tuple[str, ...]:
    return graph.output_names or graph.outputs


def _renamed(value: Value, name: str) -> Value:
    return Value(name, value.dtype, value.shape)


def _views(graph: Graph, calls: Sequence[Bound]) -> dict[str, str]:
    """Return for each result that is a view the value that it views."""
    found: dict[str, str] = {}
    for node, call in zip(graph.nodes, calls, strict=True):
        position = view_of(call)
        if position is not None:
            found[node.outputs[0]] = node.inputs[position]
    return found


def _by_name(graph: Graph, shared: Mapping[int, Pairs]) -> dict[str, str]:
    """Return for each result that is written over an operand that operand."""
    nodes = graph.nodes
    return {nodes[i].outputs[r]: nodes[i].inputs[k] for i, pairs in shared.items() for k, r in pairs}


def _moved(found: Plan) -> tuple[Moved, ...]:
    return tuple(Moved(found.place[c.source], Place("output", c.output), c.bytes) for c in found.copies)


class _Preparing:
    """Tensors to prepare for the steps, each once."""

    def __init__(self, graph: Graph) -> None:
        self.found: list[Prepared] = []
        self._graph = graph
        self._constant = {name: number for number, name in enumerate(graph.constant)}
        self._next = len(graph.constants)
        self._numbers: dict[tuple[str, tuple[int, ...]], tuple[Place, ...]] = {}

    def places(self, step: Step, code: KernelCode) -> tuple[Place, ...]:
        """Return the places of a kernel's tensors: inputs of its node that it takes, prepared tensors, results."""
        if code.first is None:
            return step.places
        node = self._graph.nodes[step.node]
        sources = tuple(self._constant[node.inputs[k]] for k in code.first.reads)
        key = (code.first.key, sources)
        if key not in self._numbers:
            self.found.append(Prepared(code.first, sources, code.made))
            self._numbers[key] = tuple(Place("weight", self._next + k) for k in range(len(code.made)))
            self._next += len(code.made)
        count = len(code.reads)
        return (*step.places[:count], *self._numbers[key], *step.places[count:])


class _Launched:
    """A call, with the numbers that its kernel takes as parameters."""

    def __init__(self, call: Bound, code: KernelCode) -> None:
        self.code = code
        self.values = lowered(call.op, call.variant).values(call.environment)
        self.room, self.part = 0, 0
        if code.room is not None:
            given = {p.name: self.values[p.name] for p in code.parameters}
            self.room, self.part = (evaluate(e, given) for e in (code.room.shared, code.room.each))

    def launch(self, kernels: Sequence[KernelCode], places: tuple[Place, ...], room: int) -> Launch:
        kernel = kernels.index(self.code)
        values = [self.values[p.name] for p in self.code.parameters]
        words = parameter_words(self.code.parameters, values)
        alone = self.code.alone or (self.code.work is not None and is_small(self.code.work, self.values))
        return Launch(kernel, places, words, not alone, None if self.code.room is None else (room, self.part))


def _launch(launched: _Launched, kernels: Sequence[KernelCode], preparing: _Preparing, step: Step) -> Launch:
    return launched.launch(kernels, preparing.places(step, launched.code), step.room)
