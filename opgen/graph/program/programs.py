"""The programs of one model: one for each combination of its inputs' sizes, made when it is first needed.

Bounds.  At most PROGRAMS are kept, the most recently used.  The first SPECIAL combinations of sizes (`bucketing.py`)
get kernels of their own.  Kernels for further ones take as parameters only the sizes that have varied in the model so
far.  Three ranges of sizes share them: from 64 on, from 16 on, and below.  So new sizes add no kernels, except where
something varies for the first time.  OPGEN_SPECIALIZE overrides this, as for single ops: `always` (for their sizes
alone), or `never` (for all calls of their ops).

Each run has an arena of its own.  As many are kept as there were concurrent runs, none larger than the largest kept
program needs.  All programs share weights, and the tensors that kernels prepare from them.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from opgen.compiler.algorithms import Mode, mode
from opgen.diagnostics import CheckFailed, InternalError
from opgen.diagnostics.calls import ArgumentValueError
from opgen.dtypes import DType
from opgen.graph.ir import scratch
from opgen.graph.ir.offered import Offered
from opgen.graph.ir.problems import ModelError, Problem, nested_at_most
from opgen.graph.ir.values import Array, Kind
from opgen.graph.program.arena import ArenaPool
from opgen.graph.program.bucketing import Variety, Way
from opgen.graph.program.limits import TooMuchError, allowed, bytes_of
from opgen.graph.program.loaded import LoadedProgram, StepFailed
from opgen.graph.program.records import Recall
from opgen.graph.program.runnable import Runnable
from opgen.graph.program.weights import Store
from opgen.locks import Lock
from opgen.runtime.call.call import Call, Launch, Result
from opgen.runtime.call.plan import Plan
from opgen.runtime.memory.buffers import numpy_dtype
from opgen.runtime.threads import get_num_threads

if TYPE_CHECKING:
    from opgen.graph.ir.nodes import Graph
    from opgen.graph.kernels.parallel_build import Progress
    from opgen.graph.passes.base import Report
    from opgen.graph.program.program import Openings, Program

PROGRAMS = 16
"""Maximum number of programs that a model keeps."""

DECIDING = 64
"""Maximum number of elements of an input that may decide about shapes: more than any list of sizes or axes has."""

VARIED = 8
"""Number of kept programs for the same shapes and other elements from which on a model that can run in parts does so.

It then computes values that follow from elements in a separate part: the largest of some lengths varies less than the
lengths do.
"""

Resolve: TypeAlias = "Callable[[Mapping[str, Kind], Mapping[str, Array]], Graph]"
"""The graph for inputs of some types and shapes, and for the elements of those that decide about shapes.  Raises
ArgumentError for inputs that do not fit, ModelError for calls that cannot be made.
"""
Prepare: TypeAlias = "Callable[[Mapping[str, Kind], Mapping[str, Array]], Passed]"
"""The same graph after all passes."""

_Key: TypeAlias = "tuple[tuple[tuple[int, ...], ...], tuple[tuple[str, bytes], ...], Mode]"
"""The shapes of the inputs, the elements of those that decide, and the algorithms that kernels may use."""


@dataclass(frozen=True)
class Passed:
    """A graph ready to be planned, and the passes' notes."""

    graph: Graph
    report: Report


@dataclass(frozen=True)
class MadeOf(Passed):
    """Source of a program; `openings` are those of its kernels (None: nothing is open).

    `again`: the program came from the cache, and its source was made again on demand.
    """

    openings: Openings | None
    again: bool


@dataclass(frozen=True)
class Ready:
    """A program for some sizes, loaded, and the launch plan of its calls; `known` are the elements that it is for."""

    known: Mapping[str, Array]
    program: LoadedProgram
    plan: Plan
    made_of: Callable[[], MadeOf]


_Made: TypeAlias = "tuple[LoadedProgram, Mapping[str, Array], Callable[[], MadeOf]]"
"""A program, the elements that it is for, and its source."""


class Programs:
    """Programs of a model with these `inputs`, names and types in order.  Many threads may use it at once."""

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, DType],
        prepare: Prepare,
        progress: Progress | None,
        recall: Recall | None = None,
        by_floats: bool = True,
    ) -> None:
        """Start without programs.

        `recall` has the programs of the model that other processes made.  `by_floats` says whether the values of float
        inputs may decide about shapes, too.
        """
        self.pool = ArenaPool()
        self._name = name
        self._inputs = dict(inputs)
        self._prepare = prepare
        self._progress = progress
        self._recall = recall
        self._by_floats = by_floats
        self._ready: OrderedDict[_Key, Ready] = OrderedDict()
        self._variety = Variety()
        self._store = Store()
        self._lock = Lock()

    @property
    def kept(self) -> tuple[Ready, ...]:
        """Return the programs that are kept, the most recently used last."""
        with self._lock:
            return tuple(self._ready.values())

    def ahead(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Make the program for inputs of some shapes, whose elements are not known yet."""
        self.of([without_memory(t, s) for t, s in zip(self._inputs.values(), shapes, strict=True)], elements=False)

    def of(self, given: Sequence[Array], elements: bool = True) -> Ready:
        """Return the program for some inputs, made if there is none.

        Without `elements`, only their types and shapes count.
        """
        arrays = dict(zip(self._inputs, given, strict=True))
        with self._lock:
            shapes, way = tuple(a.shape for a in arrays.values()), mode()
            key = next((k for k in reversed(self._ready) if k[::2] == (shapes, way) and _holds(k[1], arrays)), None)
            if key is None:
                found = self._made(arrays, elements)
                key = shapes, tuple((name, a.tobytes()) for name, a in found.known.items()), way
                self._ready[key] = found
                self._forget()
            self._ready.move_to_end(key)
            return self._ready[key]

    def _made(self, arrays: Mapping[str, Array], elements: bool) -> Ready:
        try:
            return self._ready_for(arrays, elements)
        finally:
            scratch.forget()

    def _ready_for(self, arrays: Mapping[str, Array], elements: bool) -> Ready:
        kinds = {name: (self._inputs[name], a.shape) for name, a in arrays.items()}
        given = {name: a for name, a in arrays.items() if self._may_decide(name, a)} if elements else {}
        loaded, known, made_of = self._recalled(kinds, given) or self._anew(kinds, given)
        self._check(loaded.runnable, made_of)
        results = tuple(Result(v.name, v.shape, v.dtype.name) for v in loaded.runnable.outputs)
        tensors = {name: without_memory(dtype, shape) for name, (dtype, shape) in kinds.items()}

        def refused(failed: CheckFailed) -> ArgumentValueError:
            return _refused(self._name, made_of().graph, failed)

        launch = Launch(loaded.bind(), tuple(v.name for v in loaded.runnable.inputs), refused)
        return Ready(known, loaded, Plan(self._name, Call(tensors, {}, {}, {}, {}, results), launch), made_of)

    def _check(self, runnable: Runnable, made_of: Callable[[], MadeOf]) -> None:
        """Raise ModelError for a program that takes too much memory, with the node that makes the largest value."""
        try:
            allowed((*runnable.inputs, *runnable.weights)).check_program(runnable, get_num_threads())
        except TooMuchError as error:
            made = made_of().graph
            node = max(made.nodes, key=lambda node: max(bytes_of(made.value[name]) for name in node.outputs))
            reason = f"it makes the largest value of '{self._name}': {error}"
            raise ModelError(self._name, [Problem(node.name, node.op.spec.name, reason, node.origin)]) from None

    def _anew(self, kinds: Mapping[str, Kind], given: Mapping[str, Array]) -> _Made:
        shapes = tuple(shape for _, shape in kinds.values())
        alike = sum(key[0] == shapes and bool(key[1]) for key in self._ready)
        offered = Offered(given, derived=self._by_floats or alike < VARIED)
        passed, way = self._prepare(kinds, offered), self._variety.way
        made_of = MadeOf(passed.graph, passed.report, self._variety.openings(passed.graph, way), again=False)
        return self._loaded(made_of, kinds, offered.asked, way), offered.asked, lambda: made_of

    def _recalled(self, kinds: Mapping[str, Kind], given: Mapping[str, Array]) -> _Made | None:
        """Return the program that another process made; None if there is none."""
        if self._recall is None:
            return None
        way = self._variety.way
        taken = self._recall.take(kinds, given, way)
        if taken is None:
            return None
        record, known = taken

        @functools.cache
        def passed() -> Passed:
            return self._prepare(kinds, known)

        @functools.cache
        def made_of() -> MadeOf:
            found = passed()
            return MadeOf(found.graph, found.report, self._variety.openings(found.graph, way), again=True)

        @functools.cache
        def program() -> Program:
            from opgen.graph.program.program import program

            return program(made_of().graph, made_of().openings, self._progress)

        loaded = record.loaded(self.pool, self._store, program)
        if loaded is None:
            return None
        self._variety.made(lambda: passed().graph)
        return loaded, known, made_of

    def _may_decide(self, name: str, array: Array) -> bool:
        return array.ndim <= 1 and array.size <= DECIDING and (self._by_floats or not self._inputs[name].is_float)

    def _loaded(
        self, made_of: MadeOf, kinds: Mapping[str, Kind], known: Mapping[str, Array], way: Way
    ) -> LoadedProgram:
        from opgen.graph.program.prepare import complete, load

        graph = made_of.graph
        weights = [c.data.array for c in graph.constants]
        with nested_at_most(graph):
            loaded = load(complete(graph, made_of.openings, self._progress), weights, self.pool, self._store)
        self._variety.made(lambda: graph)
        if self._recall is not None:
            from opgen.graph.program.serialize import record

            made = record(loaded, graph)
            if made is not None:
                self._recall.keep(kinds, known, way, made)
        return loaded

    def _forget(self) -> None:
        """Drop the least recently used programs, and arenas larger than the others need."""
        while len(self._ready) > PROGRAMS:
            self._ready.popitem(last=False)
        count = get_num_threads()
        self.pool.trim(max(r.program.runnable.arena_bytes(count) for r in self._ready.values()))


def _holds(known: Sequence[tuple[str, bytes]], arrays: Mapping[str, Array]) -> bool:
    """Return whether inputs have the elements that a program is for."""
    return all(arrays[name].tobytes() == elements for name, elements in known)


def without_memory(dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return an array of a type and shape that occupies no memory."""
    return np.broadcast_to(np.empty((), numpy_dtype(dtype)), shape)


def _refused(model: str, graph: Graph, failed: CheckFailed) -> ArgumentValueError:
    """Return the error of a run in which a node met elements that are out of range as subscripts."""
    if not isinstance(failed, StepFailed):
        raise InternalError(f"a check of model '{model}' fails, and nobody knows of which node")
    from opgen.graph.ir.bound import bound
    from opgen.runtime.call.elements import refused

    node = graph.nodes[failed.node]
    found = refused(node.op.spec, bound(graph, node).environment, failed)
    where = f"{model}: node '{node.name}' ({found.op})"
    return ArgumentValueError(where, found.argument, found.expected, found.given)
