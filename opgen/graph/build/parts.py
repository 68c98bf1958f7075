"""Models that are not a single program, because some step is known only when the model runs.

Such a model runs in parts: a program for all that does not depend on the step; the step, once it is known; and a
program for all that depends on it.  A branch runs one of its sides.  A repeated model is a program that runs
repeatedly.  A call whose sizes depend on elements belongs to a program for just these elements.  Parts are models, and
their programs are kept like those of models (`opgen.graph.program.programs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

import numpy as np

from opgen.diagnostics import InternalError, UserError
from opgen.dtypes import DType
from opgen.graph.build.inner import part_of, taken_by
from opgen.graph.program.limits import allowed
from opgen.graph.build.model import Along, Branch, Call, Input, Model, Repeat, Step
from opgen.graph.ir.problems import ModelError, Problem, UndecidedError
from opgen.graph.build.unrolled import axis_of, empty
from opgen.graph.ir.values import Array, Kind, Value
from opgen.runtime.memory.buffers import dtype_of

RUNS = 1 << 20
"""Maximum number of runs of one model inside another: a condition that is never false would run it for ever."""

CUTS = 256
"""Number of combinations of sizes for which the cut of a model is remembered."""

ALONE = -1
"""Cut of a model that begins with the step: it is one program if the values of floats may decide about shapes."""

Values: TypeAlias = "Mapping[str, Array]"


class Whole(Protocol):
    """A model that is one program for each combination of sizes, or refused (UndecidedError)."""

    @property
    def programs(self) -> Sequence[object]:
        """Return its programs."""

    def results(self, tensors: tuple[object, ...]) -> tuple[Array, ...]:
        """Return its results for tensors in order."""


Make: TypeAlias = "Callable[[Model, bool], Whole]"
"""Makes such a model; the flag says that the values of float inputs may decide about shapes, too."""


class _Piece(Protocol):
    """A piece of a model: makes some values from others."""

    def run(self, values: Values) -> dict[str, Array]:
        """Return the results by name; `values` has at least the values that it takes."""

    def models(self) -> Iterator[Whole]:
        """Yield the programs' models, in the order in which they first run."""


class Part:
    """A model, with `outer` in place of inputs, that is one program where it can be, and else runs in pieces."""

    def __init__(self, model: Model, make: Make) -> None:
        self._model = model
        self._make = make
        self._wholes: dict[tuple[tuple[DType, ...], bool], Whole] = {}
        self._cuts: dict[tuple[Kind, ...], int] = {}
        self._pieces: dict[int, tuple[_Piece, ...]] = {}

    def run(self, values: Values) -> dict[str, Array]:
        found, waiting = dict(values), list[_Piece]((self,))
        while waiting:  # not by recursion: a thousand branches in a row are as many parts in each other
            piece = waiting.pop()
            if isinstance(piece, Part):
                made, pieces = piece._begun(found)
                waiting += reversed(pieces)
            else:
                made = piece.run(found)
            found.update(made)
        return {name: found[name] for name in self._model.outputs}

    def _begun(self, values: Values) -> tuple[dict[str, Array], tuple[_Piece, ...]]:
        """Return the results; or the constants, and the pieces that make the results with them."""
        given = {name: values[name] for name in self._model.outer}
        kinds = tuple((_dtype(name, a), a.shape) for name, a in given.items())
        at = self._cuts.get(kinds)
        if at is None:
            try:
                return self._in_one(given, floats=False), ()
            except UndecidedError as error:
                at = self.cut(kinds, error)
        if at == ALONE:
            return self._in_one(given, floats=True), ()
        return {name: data.array for name, data in self._model.constants.items()}, self._pieces[at]

    def _in_one(self, given: Values, floats: bool) -> dict[str, Array]:
        """Return the results of one program; `floats`: the values of floats may decide about shapes."""
        dtypes = tuple(_dtype(name, a) for name, a in given.items())
        whole = self._wholes.get((dtypes, floats))
        if whole is None:
            inputs = tuple(Input(name, dtype, None) for name, dtype in zip(given, dtypes, strict=True))
            model = replace(self._model, inputs=inputs, outer=())
            whole = self._wholes.setdefault((dtypes, floats), self._make(model, floats))
        return dict(zip(self._model.outputs, whole.results(tuple(given.values())), strict=True))

    def has(self, kinds: Sequence[Kind]) -> bool:
        """Return whether the model is known to run in pieces for inputs of these kinds."""
        return tuple(kinds) in self._cuts

    def cut(self, kinds: Sequence[Kind], error: UndecidedError) -> int:
        """Return the step at which to cut the model for such inputs; ALONE if it cannot be cut.

        `error` says why the model is not one program.
        """
        names = [step.name for step in self._model.calls]
        at = min(names.index(p.step) for p in error.problems if p.step in names)
        if at not in self._pieces:
            self._pieces[at] = self._cut(at)
        at = at if self._pieces[at] else ALONE
        if len(self._cuts) < CUTS:
            self._cuts[tuple(kinds)] = at
        return at

    def _cut(self, at: int) -> tuple[_Piece, ...]:
        """Return the pieces before a step, the step, and the pieces that depend on it.

        There are none if this does not split the model.
        """
        model, steps = self._model, self._model.calls
        late: set[str] = set()
        before: list[Step] = []
        behind: list[Step] = []
        for number, step in enumerate(steps):
            if number == at or taken_by(step) & late:
                late.update(name for name in step.outputs if name is not None)
                behind.append(step)
            else:
                before.append(step)
        chosen = None if isinstance(steps[at], Call) else behind.pop(0)
        if chosen is None and not before:
            return ()
        wanted = {*model.outputs, *(name for step in steps for name in taken_by(step))}
        pieces: list[_Piece] = []
        for group in (before, [] if chosen is None else chosen, behind):
            if isinstance(group, Call) or not group:
                continue
            if isinstance(group, Branch):
                pieces.append(_Choice(group, self._inner))
            elif isinstance(group, Repeat):
                pieces.append(_Runs(group, self._inner))
            else:
                made = [n for step in group for n in step.outputs if n is not None and n in wanted]
                if made:
                    part = part_of(model.name, group, model.constants, made, model.source)
                    pieces.append(Part(part, self._make))
        return tuple(pieces)

    def _inner(self, model: Model, given: tuple[str, ...] = ()) -> Part:
        """Return the part for a model inside a step; each of its runs is given values of these names."""
        around = self._model.constants
        outer = tuple(dict.fromkeys((*(name for name in model.outer if name not in around), *given)))
        constants = {**model.constants, **{name: around[name] for name in model.outer if name in around}}
        return Part(replace(model, constants=constants, outer=outer, outputs=tuple(dict.fromkeys(model.outputs))),
                    self._make)  # fmt: skip

    def models(self) -> Iterator[Whole]:
        waiting: list[_Piece] = [self]
        while waiting:
            piece = waiting.pop()
            if isinstance(piece, Part):
                yield from (made for made in piece._wholes.values() if made.programs)
                waiting += reversed([inner for pieces in piece._pieces.values() for inner in pieces])
            else:
                yield from piece.models()


_Inner: TypeAlias = "Callable[..., Part]"


class _Choice:
    """One of two models."""

    def __init__(self, branch: Branch, inner: _Inner) -> None:
        self._branch = branch
        self._sides = [(branch.then, inner(branch.then)), (branch.otherwise, inner(branch.otherwise))]

    def run(self, values: Values) -> dict[str, Array]:
        taken = bool(_one(self._branch, values[self._branch.condition], "its condition"))
        model, part = self._sides[0 if taken else 1]
        results = part.run(values)
        found = zip(self._branch.outputs, model.outputs, strict=True)
        return {outside: results[inside] for outside, inside in found if outside is not None}

    def models(self) -> Iterator[Whole]:
        for _, part in self._sides:
            yield from part.models()


class _Runs:
    """A model that is run repeatedly."""

    def __init__(self, repeat: Repeat, inner: _Inner) -> None:
        self._repeat = repeat
        self._body: Part = inner(repeat.body, repeat.given)

    def models(self) -> Iterator[Whole]:
        yield from self._body.models()

    def run(self, values: Values) -> dict[str, Array]:
        repeat = self._repeat
        most = self._most(values)
        if repeat.condition is None and most is not None and most > RUNS:
            raise _error(repeat, f"it runs {most} times; {RUNS} are allowed")
        going = repeat.condition is None or bool(_one(repeat, values[repeat.condition], "its condition"))
        states = [values[name] for name in repeat.states]
        parts: list[list[Array]] = [[] for _ in repeat.joined]
        budget = allowed(Value(name, _dtype(name, a), a.shape) for name, a in values.items()).bytes
        number = 0
        while going and (most is None or number < most):
            if number == RUNS:
                raise _error(repeat, f"it runs more than {RUNS} times")
            going, states, made = self._once(values, number, states)
            for known, part in zip(parts, made, strict=True):
                known.append(part)
            number += 1
            if sum(a.nbytes for a in made) * number > budget:
                raise _error(repeat, f"its results take too much memory after {number} runs")
        if number == 0 and repeat.joined:
            joined = [self._empty(part, along) for part, along in zip(self._none(values), repeat.joined, strict=True)]
        else:
            joined = [self._joined(part, along) for part, along in zip(parts, repeat.joined, strict=True)]
        found = zip(repeat.outputs, [*states, *joined], strict=True)
        return {name: array for name, array in found if name is not None}

    def _most(self, values: Values) -> int | None:
        """Return the upper bound on the number of runs; None if there is none."""
        repeat = self._repeat
        found = [] if repeat.most is None else [int(_one(repeat, values[repeat.most], "the number of its runs"))]
        found += [values[name].shape[self._axis(along, values[name].ndim)] for name, along in repeat.sliced]
        if len(set(found)) > 1:
            raise _error(repeat, f"its tensors have {' and '.join(map(str, sorted(set(found))))} slices")
        return found[0] if found else None

    def _axis(self, along: Along, rank: int) -> int:
        try:
            return axis_of(along, rank)
        except UserError as error:
            raise _error(self._repeat, str(error)) from None

    def _once(self, values: Values, number: int, states: list[Array]) -> tuple[bool, list[Array], list[Array]]:
        """Return whether there is a next run, the states after this one, and its slices for the joined results."""
        repeat = self._repeat
        slices = []
        for name, along in repeat.sliced:
            array = values[name]
            axis = self._axis(along, array.ndim)
            place = array.shape[axis] - 1 - number if along.backward else number
            slices.append(np.asarray(np.take(array, place, axis)))  # numpy gives a scalar for no dimension
        return self._results(values, number, [*states, *slices])

    def _results(self, values: Values, number: int, given: list[Array]) -> tuple[bool, list[Array], list[Array]]:
        repeat = self._repeat
        counts = [np.array(number, np.int64), np.array(True)] if repeat.counted else []
        found = self._body.run({**values, **dict(zip(repeat.given, [*counts, *given], strict=True))})
        results = [found[name] for name in repeat.body.outputs]
        condition = results.pop(0) if repeat.counted else None
        going = condition is None or repeat.condition is None or bool(_one(repeat, condition, "its condition"))
        return going, results[: len(repeat.states)], results[len(repeat.states) :]

    def _none(self, values: Values) -> list[Array]:
        """Return the results of a run on slices of zeros.

        The joined results of no runs take their types and shapes from it.
        """
        slices = []
        for name, along in self._repeat.sliced:
            shape = list(values[name].shape)
            del shape[self._axis(along, len(shape))]
            slices.append(np.zeros(shape, values[name].dtype))
        return self._results(values, 0, [*(values[name] for name in self._repeat.states), *slices])[2]

    def _empty(self, part: Array, along: Along) -> Array:
        self._axis(along, part.ndim + 1)
        return empty(part.shape, _dtype("result", part), along)

    def _joined(self, parts: list[Array], along: Along) -> Array:
        first = parts[0]
        for other in parts[1:]:
            if other.shape != first.shape:
                shapes = f"{list(first.shape)} and {list(other.shape)}"
                raise _error(self._repeat, f"its results of two runs have the shapes {shapes}")
        return np.stack(parts[::-1] if along.backward else parts, self._axis(along, first.ndim + 1))


def _one(step: Step, array: Array, what: str) -> bool | int:
    if array.size != 1:
        raise _error(step, f"{what} has {array.size} elements, not one")
    found: bool | int = array.reshape(-1)[0].item()
    return found


def _error(step: Step, reason: str) -> ModelError:
    operator = "branch" if isinstance(step, Branch) else "runs"
    return ModelError(step.name, [Problem(step.name, operator, reason, step.origin)])


def _dtype(name: str, array: Array) -> DType:
    found = dtype_of(array)
    if found is None:
        raise InternalError(f"value '{name}' is of type {array.dtype}")
    return found
