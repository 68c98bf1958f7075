"""Unrolling of a repeated model: the nodes of each run, one run after the other.

This needs a number of runs that is small and known before the model runs.  Else the model runs in parts
(`opgen.graph.build.parts`).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from opgen.diagnostics import UserError
from opgen.dtypes import DType
from opgen.graph.build import slices
from opgen.graph.build.inner import made_in, models_of, renamed
from opgen.graph.build.model import Along, Branch, Call, Model, Repeat
from opgen.graph.ir.values import Array, Value
from opgen.runtime.memory.buffers import numpy_dtype

RUNS = 64
"""Maximum number of unrolled runs: more take long to build and save little."""

CALLS = 1024
"""Maximum number of unrolled calls in one program, nested runs included, for the same reason."""


class UndecidedCallError(UserError):
    """A call that can only be resolved when the model runs; the text names the unknown."""


class Work(Protocol):
    """The graph under construction (`opgen.graph.build.resolve`)."""

    def known(self, name: str) -> Array | None:
        """Return the elements of a value, if they can be known.  Raises UserError."""

    def value(self, name: str) -> Value | None:
        """Return an existing value; None if a refused call would have made it."""

    def constant(self, name: str, array: Array) -> str:
        """Add a constant and return its name."""

    def spend(self, calls: int) -> bool:
        """Return whether this number of further calls may be unrolled (`CALLS` in all), and count them."""

    def free(self, name: str) -> str:
        """Return a name like this one that no value of the model has, and reserve it."""

    def model(self, model: Model) -> None:
        """Add the constants and steps of a model."""

    def call(self, call: Call) -> None:
        """Add a call."""

    def same(self, name: str, other: str) -> None:
        """Make a name an alias of another value."""


def unrolled(work: Work, repeat: Repeat) -> list[str]:
    """Add the nodes of all runs and return the names of the results, in order.

    Raises UserError for an impossible repetition, UndecidedCallError for one that is known only when the model runs.
    """
    return _Runs(work, repeat).results()


class _Runs:
    def __init__(self, work: Work, repeat: Repeat) -> None:
        self._work = work
        self._repeat = repeat
        self._size = 1 + len(repeat.sliced) + len(repeat.joined) + _size(repeat.body)
        self._states = list(repeat.states)
        self._parts: list[list[str]] = [[] for _ in repeat.joined]

    def results(self) -> list[str]:
        repeat, going = self._repeat, self._flag(self._repeat.condition)
        most = self._most()
        if most is None and repeat.condition is None:
            raise UserError("it has neither a number of runs nor a condition, so that it would never end")
        number = 0
        while going and (most is None or number < most):
            if number == RUNS or not self._work.spend(self._size):
                raise UndecidedCallError(f"it runs more than {number} times, which is more than is written out")
            condition, states, parts = self._run(number)
            if any(self._work.value(name) is None for name in (*states, *parts)):
                return [*states, *parts]
            self._states = states
            for known, part in zip(self._parts, parts, strict=True):
                known.append(part)
            number += 1
            going = repeat.condition is None or number == most or self._flag(condition)
        if number == 0 and repeat.joined:
            return [*self._states, *self._empty()]
        return [*self._states, *map(self._joined, self._parts, repeat.joined)]

    def _flag(self, name: str | None) -> bool:
        """Return whether there is a next run."""
        if name is None:
            return True
        if self._work.value(name) is None:
            return False
        found = self._work.known(name)
        if found is None:
            raise UndecidedCallError(f"its condition '{name}' is known only when the model runs")
        return bool(_one(found, "its condition"))

    def _most(self) -> int | None:
        """Return the upper bound on the number of runs; None if there is none."""
        found: list[int] = []
        if self._repeat.most is not None:
            number = self._work.known(self._repeat.most)
            if number is None:
                raise UndecidedCallError(
                    f"the number of its runs, '{self._repeat.most}', is known only when the model runs"
                )
            found.append(int(_one(number, "the number of its runs")))
        found += [self._length(name, along) for name, along in self._repeat.sliced]
        if len(set(found)) > 1:
            raise UserError(f"its tensors have {' and '.join(map(str, sorted(set(found))))} slices")
        return found[0] if found else None

    def _length(self, name: str, along: Along) -> int:
        value = self._work.value(name)
        shape = () if value is None else value.shape
        return shape[axis_of(along, len(shape))]

    def _run(self, number: int) -> tuple[str | None, list[str], list[str]]:
        """Add the nodes of one run.

        Return its condition for the next run, its states and its slices for the joined results.
        """
        work, repeat = self._work, self._repeat
        names = {name: work.free(f"{name}@{number}") for name in {*made_in(repeat.body), *repeat.given}}
        given = [*self._counts(number), *self._states, *(self._slice(n, a, number) for n, a in repeat.sliced)]
        for inside, outside in zip(repeat.given, given, strict=True):
            work.same(names[inside], outside)
        body = renamed(repeat.body, names)
        work.model(body)
        results = list(body.outputs)
        condition = results.pop(0) if repeat.counted else None
        return condition, results[: len(self._states)], results[len(self._states) :]

    def _counts(self, number: int) -> list[str]:
        if not self._repeat.counted:
            return []
        name = self._repeat.name
        return [
            self._work.constant(f"{name}@{number}", np.array(number, np.int64)),
            self._work.constant(f"{name}@going", np.array(True)),
        ]

    def _slice(self, name: str, along: Along, number: int) -> str:
        value = self._work.value(name)
        rank = 0 if value is None else len(value.shape)
        place = self._length(name, along) - 1 - number if along.backward else number
        at = self._work.constant(f"{name}@{number}", np.array(max(place, 0), np.int64))
        return self._made(slices.TAKEN, [name, at], axis_of(along, rank))

    def _joined(self, parts: list[str], along: Along) -> str:
        first = self._work.value(parts[0])
        for name in parts[1:]:
            value = self._work.value(name)
            if first is not None and value is not None and value.shape != first.shape:
                raise UserError(f"its results of two runs have the shapes {list(first.shape)} and {list(value.shape)}")
        rank = 1 + (0 if first is None else len(first.shape))
        axis = axis_of(along, rank)
        return self._made(slices.JOINED, parts[::-1] if along.backward else parts, axis)

    def _empty(self) -> list[str]:
        """Return the joined results of no runs; their types and shapes are those of a run that is never executed."""
        found = []
        for name, along in zip(self._run(0)[2], self._repeat.joined, strict=True):
            value = self._work.value(name)
            if value is not None:
                name = self._work.constant(f"{name}@none", empty(value.shape, value.dtype, along))
            found.append(name)
        return found

    def _made(self, op: str, inputs: list[str], axis: int) -> str:
        repeat = self._repeat
        name = self._work.free(f"{repeat.name}@{op}")
        call = Call(repeat.name, slices.module(), op, tuple(inputs), (name,), {"axis": axis}, repeat.origin)
        self._work.call(call)
        return name


def axis_of(along: Along, rank: int) -> int:
    """Return the axis, counted from the front.  Raises UserError if it is out of range."""
    if not -rank <= along.axis < rank:
        raise UserError(f"an axis is {along.axis}, of a tensor of {rank} dimensions")
    return along.axis % rank


def empty(shape: tuple[int, ...], dtype: DType, along: Along) -> Array:
    """Return the join of no slices of a shape."""
    axis = axis_of(along, len(shape) + 1)
    sizes: list[int] = [*shape[:axis], 0, *shape[axis:]]
    return np.empty(sizes, numpy_dtype(dtype))


def _one(array: Array, what: str) -> bool | int:
    if array.size != 1:
        raise UserError(f"{what} has {array.size} elements, not one")
    found: bool | int = array.reshape(-1)[0].item()
    return found


def _size(model: Model) -> int:
    """Count the calls of a model and its branches; repeated models inside it are counted when they are unrolled."""
    inner = (side for step in model.calls if isinstance(step, Branch) for side in models_of(step))
    return len(model.calls) + sum(map(_size, inner))
