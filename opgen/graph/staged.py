"""A compiled model that can say what became of it: the graph after each pass, and what each pass did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from opgen.diagnostics import UserError
from opgen.dtypes import DType
from opgen.graph.compiled import CompiledModel
from opgen.graph.programs import Prepare
from opgen.graph.recall import Recall
from opgen.graph.values import Array, Kind, Outline
from opgen.runtime.recording import CaptureError, Symbol, stand_in, symbol_among
from opgen.runtime.threads import get_num_threads

if TYPE_CHECKING:
    from opgen.graph.making import Progress
    from opgen.graph.nodes import Graph
    from opgen.graph.passes.base import Report

RESOLVED = "resolved"
"""The stage before all passes."""


@dataclass(frozen=True)
class Stages:
    """`after` has the graph after each pass, by its name in order, first of all as it was resolved."""

    after: Mapping[str, Graph]
    report: Report

    @property
    def last(self) -> Graph:
        """The graph that is run."""
        return list(self.after.values())[-1]


class StagedModel(CompiledModel):
    """A model whose graph for some sizes goes through the standard passes before it is made a program."""

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, DType],
        resolve: Prepare,
        progress: Progress | None = None,
        recall: Recall | None = None,
        outline: Outline | None = None,
    ) -> None:
        """`resolve` gives the graph before all passes, `outline` what callers know of the model."""

        def prepare(kinds: Mapping[str, Kind], known: Mapping[str, Array]) -> Graph:
            return passed(resolve(kinds, known))

        super().__init__(name, inputs, prepare, progress, recall)
        self._resolve = resolve
        self._outline = outline

    @property
    def outline(self) -> Outline:
        """Its inputs and outputs, as it declares them.  Raises UserError for a captured function: it declares none."""
        if self._outline is None:
            raise UserError(f"{self.name} was captured from a function, which declares no inputs and outputs")
        return self._outline

    def _results(self, tensors: tuple[object, ...], out: object) -> tuple[Array, ...]:
        """Also of a call in a function that is captured: the model's nodes become the function's."""
        symbol = symbol_among(tensors)
        if symbol is None:
            return super()._results(tensors, out)
        from opgen.graph.capture import Traced

        if not isinstance(symbol, Traced):
            return super()._results(tensors, out)
        if out is not None:
            raise CaptureError(f"{self.name}: 'out' cannot be given in a function that is compiled: no call runs")
        given = self._arrays(tuple(stand_in(t.dtype, t.shape) if isinstance(t, Symbol) else t for t in tensors))
        kinds = {name: (dtype, a.shape) for (name, dtype), a in zip(self._inputs.items(), given, strict=True)}
        known = [t if isinstance(t, Symbol) else a for t, a in zip(tensors, given, strict=True)]
        return cast("tuple[Array, ...]", symbol.trace.inline(self._resolve(kinds, {}), known))

    def explain(self, times: bool = False, inputs: Mapping[str, Array] | None = None) -> str:
        """What became of the model for the sizes of the last run: what passes did, the memory, and the nodes with
        their work; with `times`, how long each takes by one thread, on these inputs or random ones.

        Raises UserError if it has not run yet.
        """
        if not self.programs:
            raise UserError(f"{self.name} has not run yet: there are no sizes to explain it for")
        from opgen.graph.clock import step_seconds
        from opgen.graph.drawn import drawn
        from opgen.graph.explain import explained

        loaded = self.programs[-1]
        kinds = {v.name: (v.dtype, v.shape) for v in loaded.runnable.inputs}
        found = self.stages(kinds, self._programs.kept[-1].known)
        seconds = step_seconds(loaded, drawn(kinds) if inputs is None else inputs) if times else None
        return explained(found.report, found.last, loaded.program, get_num_threads(), seconds)

    def stages(self, kinds: Mapping[str, Kind], known: Mapping[str, Array] | None = None) -> Stages:
        """What the passes make of the model for inputs of these types and shapes, and `known` elements of some."""
        return stages(self._resolve(kinds, known or {}))


def passed(graph: Graph) -> Graph:
    """The graph after the standard passes."""
    from opgen.graph.passes.base import run_passes
    from opgen.graph.passes.standard import STANDARD

    return run_passes(graph, STANDARD)


def stages(graph: Graph) -> Stages:
    """What the passes make of a graph."""
    from opgen.graph.passes.base import Report, run_passes
    from opgen.graph.passes.standard import STANDARD

    after, report = {RESOLVED: graph}, Report()

    def seen(name: str, found: Graph) -> None:
        after[_fresh(name, after)] = found

    run_passes(graph, STANDARD, report, seen)
    return Stages(after, report)


def _fresh(name: str, taken: Mapping[str, Graph]) -> str:
    """The name of a pass, told apart where it runs more than once."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}.{number}"
    return found
