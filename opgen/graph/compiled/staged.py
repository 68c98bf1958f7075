"""A compiled model that can explain itself: the graph after each pass, and the notes of each pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, cast

from opgen.diagnostics import InternalError, UserError
from opgen.dtypes import DType
from opgen.graph.compiled.compiled import CompiledModel
from opgen.graph.ir.problems import UndecidedError, nested_at_most
from opgen.graph.ir.values import Array, Kind, Outline, result_names
from opgen.graph.program.programs import MadeOf, Passed, Resolve
from opgen.graph.program.records import Recall
from opgen.graph.program.results import into, own
from opgen.runtime.call.recording import CaptureError, Symbol, stand_in, symbol_among
from opgen.runtime.memory.foreign import others
from opgen.runtime.memory.lending import for_caller
from opgen.runtime.threads import get_num_threads

if TYPE_CHECKING:
    from opgen.graph.build.model import Model
    from opgen.graph.build.parts import Part
    from opgen.graph.ir.nodes import Graph
    from opgen.graph.kernels.parallel_build import Progress
    from opgen.graph.passes.base import Report
    from opgen.graph.program.loaded import LoadedProgram
    from opgen.runtime.inspection import Inspection

RESOLVED = "resolved"
"""The stage before all passes."""

AGAIN = "the program came from the cache: the passes ran again to explain it\n\n"

TAKING = 4
"""Maximum number of models kept for inputs with defaults, one for each combination of such inputs."""


@dataclass(frozen=True)
class Stages:
    """Graphs of a model: `after` maps the name of each pass, in order, to the graph after it.

    The first entry is the resolved graph.
    """

    after: Mapping[str, Graph]
    report: Report

    @property
    def last(self) -> Graph:
        """Return the graph that is run."""
        return list(self.after.values())[-1]


class StagedModel(CompiledModel):
    """A model whose graph for some sizes goes through the standard passes before it becomes a program."""

    def __init__(
        self,
        name: str,
        inputs: Mapping[str, DType],
        resolve: Resolve,
        progress: Progress | None = None,
        recall: Recall | None = None,
        outline: Outline | None = None,
        model: Callable[[], Model] | None = None,
        by_floats: bool = True,
    ) -> None:
        """Make a model from `resolve`, which returns the graph before all passes.

        `outline` is the model's interface.  `model` returns the source model; it runs in parts where it is not one
        program.  `by_floats` is that of `Programs`.
        """

        def prepare(kinds: Mapping[str, Kind], known: Mapping[str, Array]) -> Passed:
            resolved = resolve(kinds, known)
            with nested_at_most(resolved):
                return passed(resolved)

        super().__init__(name, inputs, prepare, progress, recall, by_floats and model is None)
        self._resolve = resolve
        self._outline = outline
        self._model = model
        self._progress = progress
        self._apart: Part | None = None
        self._taking: dict[tuple[str, ...], StagedModel] = {}
        self.again: tuple[Callable[..., StagedModel], tuple[object, ...]] | None = None
        """A function and its arguments that make the model again in another process; None if that is impossible."""

    def __reduce__(self) -> tuple[Callable[..., StagedModel], tuple[object, ...]]:
        """Return the source of the model: another process compiles it, and finds its kernels in the cache."""
        if self.again is None:
            raise TypeError(f"model '{self.name}' cannot be pickled: pickle what it is made of, and compile that")
        return self.again

    @property
    def programs(self) -> tuple[LoadedProgram, ...]:
        """Return the programs that are kept, the most recently used last.

        For a model that runs in parts, they are those of its parts.
        """
        return (*super().programs, *(p for part in self.parts for p in part.programs))

    @property
    def parts(self) -> tuple[StagedModel, ...]:
        """Return the parts of a model that is not one program, in the order in which they first ran."""
        made = () if self._apart is None else self._apart.models()
        return tuple(part for part in made if isinstance(part, StagedModel))

    @property
    def outline(self) -> Outline:
        """Return its declared inputs and outputs.  Raises UserError for a captured function, which declares none."""
        if self._outline is None:
            raise UserError(f"{self.name} was captured from a function, which declares no inputs and outputs")
        return self._outline

    def _results(self, tensors: tuple[object, ...], out: object) -> tuple[Array, ...]:
        """Return the results, also in a function that is captured: the model's nodes become the function's."""
        symbol = symbol_among(tensors)
        if symbol is None:
            return self._anyhow(tensors, out)
        from opgen.graph.build.capture import Traced

        if not isinstance(symbol, Traced):
            return super()._results(tensors, out)
        if out is not None:
            raise CaptureError(f"{self.name}: 'out' cannot be given in a function that is compiled: no call runs")
        given = self._arrays(tuple(stand_in(t.dtype, t.shape) if isinstance(t, Symbol) else t for t in tensors))
        kinds = {name: (dtype, a.shape) for (name, dtype), a in zip(self._inputs.items(), given, strict=True)}
        known = [t if isinstance(t, Symbol) else a for t, a in zip(tensors, given, strict=True)]
        return cast("tuple[Array, ...]", symbol.trace.inline(self._resolve(kinds, {}), known))

    def results(self, tensors: tuple[object, ...]) -> tuple[Array, ...]:
        """Return the results, always as a tuple."""
        found = self(*tensors)
        return found if isinstance(found, tuple) else (found,)

    def taking(self, names: Collection[str]) -> StagedModel:
        """Return the model that takes these inputs with defaults as further inputs, after the others.

        At most TAKING such models are kept.
        """
        chosen = tuple(i.name for i in (self._outline.defaults if self._outline else ()) if i.name in names)
        if not chosen or self._model is None:
            return self
        found = self._taking.get(chosen)
        if found is None:
            model = self._model().taking(chosen)
            found = self._taking.setdefault(chosen, of_model(model, self._progress))
            while len(self._taking) > TAKING:
                self._taking.pop(next(iter(self._taking)), None)
        return found

    def run(self, inputs: Mapping[str, object]) -> dict[str, Array]:
        """Return the results by name, given the inputs by name; inputs with defaults may be among them."""
        model = self.taking(inputs.keys())
        if model is not self:
            return model.run(inputs)
        try:
            if self._apart is None:
                return super().run(inputs)
        except UndecidedError:
            if self._model is None:
                raise
        found = self._anyhow(self._by_name(inputs), None)
        return dict(zip(result_names(self.outline.outputs), found, strict=True))

    def _anyhow(self, tensors: tuple[object, ...], out: object) -> tuple[Array, ...]:
        """Return the results of a call, in parts if the model is not one program for it."""
        kinds = None
        if self._apart is not None:
            given = self._arrays(tensors)
            kinds = [(dtype, a.shape) for dtype, a in zip(self._inputs.values(), given, strict=True)]
        if self._apart is None or kinds is None or not self._apart.has(kinds):
            try:
                return super()._results(tensors, out)
            except UndecidedError as error:
                if self._model is None:
                    raise
                given = self._arrays(tensors)
                kinds = [(dtype, a.shape) for dtype, a in zip(self._inputs.values(), given, strict=True)]
                self._begin_apart(self._model()).cut(kinds, error)
        found = self._begin_apart(None).run(dict(zip(self._inputs, given, strict=True)))
        names = self.outline.outputs
        results = own([found[name] for name in names], given)
        return for_caller(into(self.name, names, results, out), None, bool(others(tensors)))

    def _whole(self, model: Model, by_floats: bool) -> StagedModel:
        """Return a part that is one program."""
        return StagedModel(*_made_of(model), self._progress, None, model.outline, None, by_floats)

    def _begin_apart(self, model: Model | None) -> Part:
        """Return the runner of the model in parts."""
        if self._apart is None:
            from opgen.graph.build.parts import Part

            if model is None:
                raise InternalError(f"{self.name} runs in parts, and is none")
            outer = tuple(i.name for i in model.inputs)
            outputs = tuple(dict.fromkeys(model.outputs))
            self._apart = Part(replace(model, inputs=(), outer=outer, outputs=outputs), self._whole)
        return self._apart

    def explain(self, times: bool = False, inputs: Mapping[str, Array] | None = None) -> str:
        """Return an explanation for the sizes of the last run: notes of passes, memory, and the nodes with their work.

        With `times`, it has the time of each node on one thread, for these inputs or random ones.  Raises UserError if
        the model has not run yet.
        """
        self._require_run()
        from opgen.graph.program.explain import explained
        from opgen.graph.program.step_times import step_seconds
        from opgen.runtime.measuring.random_inputs import drawn

        if not super().programs:
            titles = (f"# part {number + 1} of {len(self.parts)}\n" for number in range(len(self.parts)))
            return "\n".join(t + part.explain(times) for t, part in zip(titles, self.parts, strict=True))
        loaded, known, made_of = self._last()
        kinds = {v.name: (v.dtype, v.shape) for v in loaded.runnable.inputs}
        seconds = step_seconds(loaded, {**drawn(kinds), **known} if inputs is None else inputs) if times else None
        note = AGAIN if made_of.again else ""
        return note + explained(made_of.report, made_of.graph, loaded.program, get_num_threads(), seconds)

    def inspect(self, node: int | str) -> Inspection:
        """Return the kernel of a node, by its number or name as `explain` has them, for the sizes of the last run.

        Raises UserError if the model has not run yet, runs in parts, or has no such node.
        """
        self._require_run()
        if not super().programs:
            raise UserError(f"{self.name} runs in {len(self.parts)} parts: inspect a node of one of its `parts`")
        from opgen.graph.compiled.inspected import inspection_of

        made_of = self._last()[2]
        return inspection_of(made_of.graph, node, made_of.openings)

    def _require_run(self) -> None:
        if not self.programs:
            raise UserError(f"{self.name} has not run yet: there are no sizes to explain it for")

    def _last(self) -> tuple[LoadedProgram, Mapping[str, Array], MadeOf]:
        """Return the program that ran last, the elements that it is for, and its source."""
        kept = self._programs.kept[-1]
        return kept.program, kept.known, kept.made_of()

    def stages(self, kinds: Mapping[str, Kind], known: Mapping[str, Array] | None = None) -> Stages:
        """Return the stages of the model for inputs of these types and shapes, and `known` elements of some."""
        return stages(self._resolve(kinds, known or {}))


def of_model(model: Model, progress: Progress | None = None) -> StagedModel:
    """Return a model that runs in parts where it is not one program."""
    return StagedModel(*_made_of(model), progress, outline=model.outline, model=lambda: model)


def _made_of(model: Model) -> tuple[str, Mapping[str, DType], Resolve]:
    """Return the name of a model, the types of its inputs, and the function that resolves it to a graph."""
    from opgen.graph.build.resolve import resolve

    return model.name, {i.name: i.dtype for i in model.inputs}, partial(resolve, model)


def passed(graph: Graph) -> Passed:
    """Return the graph after the standard passes, and their notes."""
    from opgen.graph.passes.base import Report, run_passes
    from opgen.graph.passes.standard import STANDARD

    report = Report()
    return Passed(run_passes(graph, STANDARD, report), report)


def stages(graph: Graph) -> Stages:
    """Return the stages of a graph through the standard passes."""
    from opgen.graph.passes.base import Report, run_passes
    from opgen.graph.passes.standard import STANDARD

    after, report = {RESOLVED: graph}, Report()

    def seen(name: str, found: Graph) -> None:
        after[_fresh(name, after)] = found

    run_passes(graph, STANDARD, report, seen)
    return Stages(after, report)


def _fresh(name: str, taken: Mapping[str, Graph]) -> str:
    """Return the name of a pass, with a number where it runs again."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}.{number}"
    return found
