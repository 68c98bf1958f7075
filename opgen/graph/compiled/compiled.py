"""A compiled model: called with tensors, it runs one program.

  model = CompiledModel.of_graph(graph)
  y = model(x)                        numpy arrays, or tensors that their library lends by DLPack
  y = model.run({"x": x})["y"]        by name
  model(x, out=y)

A call like the last one goes from Python straight to machine code.  That code checks the arrays, allocates the result,
takes an arena and runs (`opgen.runtime.kernels.launcher`).  A call with other sizes makes a program for them
automatically (`opgen.graph.program.programs`, which says how many are kept).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from opgen.compiler.algorithms import Mode, asked
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.describe import describe
from opgen.dtypes import DType
from opgen.graph.ir.values import Array, Kind
from opgen.graph.program.arena import ArenaPool
from opgen.graph.program.loaded import LoadedProgram
from opgen.graph.program.programs import Passed, Prepare, Programs, Ready
from opgen.graph.program.records import Recall
from opgen.runtime.call.checks import Checks
from opgen.runtime.call.plan import Out, Plan
from opgen.runtime.call.views import arrays, learn
from opgen.runtime.memory.foreign import others
from opgen.runtime.memory.lending import for_caller, lent

if TYPE_CHECKING:
    from opgen.graph.ir.nodes import Graph
    from opgen.graph.kernels.parallel_build import Progress

Found: TypeAlias = "Array | tuple[Array, ...] | None"
Short: TypeAlias = "Callable[..., Found]"
"""Takes the tensors and `out`; None if the call is not for it."""


class CompiledModel:
    """A callable model.  Many threads may call it at once, and one model while another runs."""

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, DType],
        prepare: Prepare,
        progress: Progress | None = None,
        recall: Recall | None = None,
        by_floats: bool = True,
    ) -> None:
        """Make a model with these `inputs`, names and types in order.

        `prepare` returns a graph ready to be planned.  `recall` has programs of the model that other processes made.
        `by_floats` is that of `Programs`.
        """
        self.name = name
        self._inputs = dict(inputs)
        self._programs = Programs(name, inputs, prepare, progress, recall, by_floats)
        self._short: dict[Mode | None, Short] = {}
        """The launcher of the last call, for each choice of algorithms that a block asks for."""

    @classmethod
    def of_graph(cls, graph: Graph, progress: Progress | None = None) -> CompiledModel:
        """Return the model of a graph, without passes, for its own sizes alone."""
        from opgen.graph.passes.base import Report

        kinds = {v.name: (v.dtype, v.shape) for v in graph.inputs}

        def prepare(given: Mapping[str, Kind], _: Mapping[str, Array]) -> Passed:
            return Passed(as_is(graph, given), Report())

        made = cls(graph.name, {name: dtype for name, (dtype, _) in kinds.items()}, prepare, progress)
        made.prepare_for(kinds)
        return made

    @property
    def input_names(self) -> tuple[str, ...]:
        """Return the names of the inputs, in the order in which a call takes them."""
        return tuple(self._inputs)

    @property
    def programs(self) -> tuple[LoadedProgram, ...]:
        """Return the programs that are kept, the most recently used last."""
        return tuple(r.program for r in self._programs.kept)

    @property
    def pool(self) -> ArenaPool:
        """Return the arenas of its runs."""
        return self._programs.pool

    def prepare_for(self, kinds: Mapping[str, Kind]) -> None:
        """Make the program for inputs of these types and shapes before any come."""
        self._programs.ahead([kinds[name][1] for name in self._inputs])

    def __call__(self, *tensors: object, out: object = None) -> Array | tuple[Array, ...]:
        """Return the result, or a tuple of several, written to `out` (an array for each) if it is given.

        Raises ArgumentError for a tensor that does not fit, with the input, the expected and the given tensor.
        """
        short = self._short.get(asked(), _never)
        result = short(*tensors, out)
        if result is not None:
            return result
        if out is None and (seen := arrays(tensors)) is not None and (result := short(*seen, out)) is not None:
            return lent(result) if isinstance(result, np.ndarray) else tuple(map(lent, result))
        results = self._results(tensors, out)
        return results[0] if len(results) == 1 else results

    def at_once(self, *tensors: object, out: object = None) -> Found:
        """Return the result of a call like the last one; None, and nothing is done, if it is different."""
        return self._short.get(asked(), _never)(*tensors, out)

    def run(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Return the results by name, given the inputs by name."""
        ready, given = self._settled(self._by_name(inputs))
        found = self._run(ready, tuple(inputs.values()), given, None)
        return {r.name: a for r, a in zip(ready.plan.results, found, strict=True)}

    def _by_name(self, inputs: Mapping[str, object]) -> tuple[object, ...]:
        """Return the tensors in order."""
        for name in inputs:
            if name not in self._inputs:
                raise Checks(self.name).unknown_input(name, list(self._inputs), inputs[name])
        for name in self._inputs:
            if name not in inputs:
                raise ArgumentTypeError(self.name, name, "a tensor", "nothing")
        return tuple(inputs[name] for name in self._inputs)

    # Calls ----------------------------------------------------------------------------------------

    def _results(self, tensors: tuple[object, ...], out: object) -> tuple[Array, ...]:
        """Return the results of a call that the launcher does not cover, or not now: all arrays are checked."""
        ready, given = self._settled(tensors)
        wanted_out = self._outs(ready.plan, out)
        return self._run(ready, tensors, given, wanted_out)

    def _settled(self, tensors: tuple[object, ...]) -> tuple[Ready, tuple[Array, ...]]:
        """Return the program for a call, and its tensors as arrays."""
        given = self._arrays(tensors)
        return self._programs.of(given), given

    def _arrays(self, tensors: tuple[object, ...]) -> tuple[Array, ...]:
        """Return the tensors of a call as arrays, each of its input's type."""
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

    def _run(self, ready: Ready, tensors: tuple[object, ...], given: tuple[Array, ...], out: Out) -> tuple[Array, ...]:
        plan = ready.plan
        read = plan.readable(given)
        results = plan.new(given, out)
        plan.run(read, results)
        if not ready.known:  # else the elements of the tensors decide which program it is
            self._short[asked()] = plan.launcher() if len(plan.results) == 1 else _several(plan)
        for t in (*tensors, *(out or ())):
            learn(t)
        return for_caller(results, out, bool(others(tensors)))


def as_is(graph: Graph, given: Mapping[str, Kind]) -> Graph:
    """Return a graph unchanged; it is for its sizes alone.  Raises ArgumentValueError for others."""
    for value in graph.inputs:
        dtype, shape = given[value.name]
        if shape != value.shape:
            expected = f"{value.dtype}{list(value.shape)}"
            raise ArgumentValueError(graph.name, value.name, expected, f"{dtype}{list(shape)}")
    return graph


def _several(plan: Plan) -> Short:
    """Return the launcher of a plan with several results."""

    def launch(*given: object) -> Found:
        *tensors, out = given
        if out is None or isinstance(out, list | tuple):
            return plan.several(tuple(tensors), out)
        return None

    return launch


def _never(*_: object) -> Found:
    """Decline every call: the launcher before there is one."""
    return None
