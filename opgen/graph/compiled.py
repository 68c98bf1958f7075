"""A compiled model: called with tensors, it runs one program.

    model = CompiledModel.of_graph(graph)
    y = model(x)                      numpy arrays, or tensors that their library lends by DLPack
    y = model.run({"x": x})["y"]      by name
    model(x, out=y)

A call like an earlier one goes from Python straight to machine code, which looks at the arrays, makes the result, takes
an arena and runs (`opgen.runtime.launcher`).  A call with other sizes makes a program for them, without being told.

Bounds.  A model keeps at most PROGRAMS programs, those used last.  The first SPECIAL combinations of sizes get kernels
made for them; further ones share kernels for all sizes, which do not add to what there is.  Each run has an arena of
its own while it lasts; kept are as many as there were runs at once, none larger than the largest program that is kept
needs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np

from opgen.dtypes import DType
from opgen.graph.arena import ArenaPool
from opgen.graph.bound import Kind, bound
from opgen.graph.kernels import wanted
from opgen.graph.loaded import LoadedProgram, MissingKernelError
from opgen.graph.making import Progress
from opgen.graph.nodes import Array, Graph
from opgen.graph.program import program
from opgen.runtime.buffers import numpy_dtype
from opgen.runtime.call import Call, Launch, Result
from opgen.runtime.checks import Checks
from opgen.runtime.describe import describe
from opgen.runtime.errors import ArgumentTypeError, ArgumentValueError
from opgen.runtime.foreign import others
from opgen.runtime.lending import for_caller, lent
from opgen.runtime.plan import Out, Plan
from opgen.runtime.specialize import policy
from opgen.runtime.threads import get_num_threads
from opgen.runtime.views import arrays, learn

PROGRAMS = 16
"""How many programs a model keeps."""

SPECIAL = 8
"""How many combinations of sizes get kernels made for them."""

Prepare: TypeAlias = "Callable[[Mapping[str, Kind]], Graph]"
"""The graph, ready to be planned, for inputs of some types and shapes; raises ArgumentError if they do not fit."""


Found: TypeAlias = "Array | tuple[Array, ...] | None"
Short: TypeAlias = "Callable[..., Found]"
"""Takes the tensors and `out`; None if the call is not for it."""


@dataclass(frozen=True)
class _Ready:
    """A program for some sizes, loaded, and the way calls take to it."""

    graph: Graph
    program: LoadedProgram
    plan: Plan


class CompiledModel:
    """A model that may be called.  Many threads may call it at once, and one model while another runs."""

    def __init__(
        self, name: str, inputs: Mapping[str, DType], prepare: Prepare, progress: Progress | None = None
    ) -> None:
        """`inputs` are the names and types of the inputs, in order."""
        self.name = name
        self._inputs = dict(inputs)
        self._prepare = prepare
        self._progress = progress
        self._ready: OrderedDict[tuple[tuple[int, ...], ...], _Ready] = OrderedDict()
        self._specials: set[str] = set()
        self._combinations = 0
        self.pool = ArenaPool()
        self._lock = threading.RLock()
        self._short: Short = _never

    @classmethod
    def of_graph(cls, graph: Graph, progress: Progress | None = None) -> CompiledModel:
        """The model that a graph is, for just its sizes."""
        kinds = {v.name: (v.dtype, v.shape) for v in graph.inputs}
        types = {v.name: v.dtype for v in graph.inputs}
        made = cls(graph.name, types, lambda given: _as_is(graph, kinds, given), progress)
        made.ready([shape for _, shape in kinds.values()])
        return made

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs, in the order in which a call takes them."""
        return tuple(self._inputs)

    @property
    def programs(self) -> tuple[LoadedProgram, ...]:
        """The programs that are kept, that used last at the end."""
        return tuple(r.program for r in self._ready.values())

    def __call__(self, *tensors: object, out: object = None) -> Array | tuple[Array, ...]:
        """The result, or a tuple of them if there are several, written to `out` (an array for each) if it is given.

        Raises ArgumentError for a tensor that does not fit: which input, what was expected, what was given.
        """
        result = self._short(*tensors, out)
        if result is not None:
            return result
        if out is None and (seen := arrays(tensors)) is not None and (result := self._short(*seen, out)) is not None:
            return lent(result) if isinstance(result, np.ndarray) else tuple(map(lent, result))
        results = self._results(tensors, out)
        return results[0] if len(results) == 1 else results

    def at_once(self, *tensors: object, out: object = None) -> Found:
        """The result of a call like the last one; None, and nothing is done, if it is not like it."""
        return self._short(*tensors, out)

    def run(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """The results by name, given the inputs by name."""
        for name in inputs:
            if name not in self._inputs:
                raise ArgumentTypeError(self.name, name, f"one of {', '.join(self._inputs) or 'no inputs'}", "it")
        for name in self._inputs:
            if name not in inputs:
                raise ArgumentTypeError(self.name, name, "a tensor", "nothing")
        ready, given = self._settled(tuple(inputs[name] for name in self._inputs))
        found = self._run(ready, tuple(inputs.values()), given, None)
        return {r.name: a for r, a in zip(ready.plan.results, found, strict=True)}

    # Calls ----------------------------------------------------------------------------------------

    def _results(self, tensors: tuple[object, ...], out: object) -> tuple[Array, ...]:
        """The results of a call that the launcher does not cover, or not now: all arrays are looked at."""
        ready, given = self._settled(tensors)
        wanted_out = self._outs(ready.plan, out)
        return self._run(ready, tensors, given, wanted_out)

    def _settled(self, tensors: tuple[object, ...]) -> tuple[_Ready, tuple[Array, ...]]:
        """The program for a call, and its tensors as arrays."""
        given = self._arrays(tensors)
        return self.ready([a.shape for a in given]), given

    def _arrays(self, tensors: tuple[object, ...]) -> tuple[Array, ...]:
        """The tensors of a call as arrays, each of its input's type."""
        if len(tensors) != len(self._inputs):
            expected = f"{len(self._inputs)} ({', '.join(self._inputs)})"
            raise ArgumentTypeError(self.name, "tensors", expected, str(len(tensors)))
        check = Checks(self.name)
        return tuple(
            cast("Array", check.typed(name, value, dtype.name))
            for (name, dtype), value in zip(self._inputs.items(), tensors, strict=True)
        )

    def _outs(self, plan: Plan, out: object) -> Out:
        if out is None:
            return None
        if len(plan.results) == 1:
            return (out,)
        if not isinstance(out, list | tuple):
            raise ArgumentTypeError(self.name, "out", "a tuple of numpy arrays", describe(out))
        return out

    def _run(self, ready: _Ready, tensors: tuple[object, ...], given: tuple[Array, ...], out: Out) -> tuple[Array, ...]:
        plan = ready.plan
        read = plan.readable(given)
        results = plan.new(given, out)
        plan.run(read, results)
        self._short = plan.launcher() if len(plan.results) == 1 else _several(plan)
        for t in (*tensors, *(out or ())):
            learn(t)
        return for_caller(results, out, bool(others(tensors)))

    # Programs -------------------------------------------------------------------------------------

    def ready(self, shapes: Sequence[tuple[int, ...]]) -> _Ready:
        """The program for inputs of some shapes, made if there is none."""
        key = tuple(shapes)
        found = self._ready.get(key)
        if found is None:
            with self._lock:
                found = self._ready.get(key)
                if found is None:
                    found = self._ready[key] = self._made(key)
                    self._forget()
        with self._lock:
            if key in self._ready:
                self._ready.move_to_end(key)
        return found

    def _made(self, shapes: tuple[tuple[int, ...], ...]) -> _Ready:
        kinds = {name: (dtype, shape) for (name, dtype), shape in zip(self._inputs.items(), shapes, strict=True)}
        graph = self._prepare(kinds)
        loaded = self._loaded(graph)
        results = tuple(Result(v.name, v.shape, v.dtype.name) for v in loaded.program.outputs)
        tensors = {name: empty_like(dtype, shape) for name, (dtype, shape) in kinds.items()}
        call = Call(tensors, {}, {}, {}, {}, results)
        return _Ready(graph, loaded, Plan(self.name, call, Launch(loaded.bind(), tuple(v.name for v in graph.inputs))))

    def _loaded(self, graph: Graph) -> LoadedProgram:
        special = self._special(graph)
        found = program(graph, special, self._progress)
        weights = [c.data.array for c in graph.constants]
        try:
            return LoadedProgram(found, weights, self.pool)
        except MissingKernelError:  # the cache may have dropped a kernel, and kept the program
            return LoadedProgram(program(graph, special, self._progress, anew=True), weights, self.pool)

    def _special(self, graph: Graph) -> Sequence[bool] | None:
        """Which nodes get kernels for just their sizes (None: all): of later combinations only those for which there is
        one already.
        """
        wish = policy()
        if wish == "never":
            return [False] * len(graph.nodes)
        if wish == "always":
            return None
        keys = [wanted(bound(graph, node), True).key for node in graph.nodes]
        if self._combinations >= SPECIAL:
            return [key in self._specials for key in keys]
        self._combinations += 1
        self._specials.update(keys)
        return None

    def _forget(self) -> None:
        """Let go of the programs used longest ago, where there are too many, and of arenas that none of the others
        needs.
        """
        while len(self._ready) > PROGRAMS:
            self._ready.popitem(last=False)
        count = get_num_threads()
        self.pool.trim(max(r.program.program.arena_bytes(count) for r in self._ready.values()))


def empty_like(dtype: DType, shape: tuple[int, ...]) -> Array:
    """An array of a type and shape that takes no memory."""
    return np.broadcast_to(np.empty((), numpy_dtype(dtype)), shape)


def _as_is(graph: Graph, kinds: Mapping[str, Kind], given: Mapping[str, Kind]) -> Graph:
    """A graph for inputs of the sizes that it is for."""
    for name, (dtype, shape) in kinds.items():
        if given[name][1] != shape:
            raise ArgumentValueError(graph.name, name, f"{dtype}{list(shape)}", f"{dtype}{list(given[name][1])}")
    return graph


def _several(plan: Plan) -> Short:
    """The short way of a plan with several results."""

    def launch(*given: object) -> Found:
        *tensors, out = given
        if out is None or isinstance(out, list | tuple):
            return plan.several(tuple(tensors), out)
        return None

    return launch


def _never(*_: object) -> Found:
    """The launcher before there is one."""
    return None
