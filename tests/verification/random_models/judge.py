"""The tolerance of a model's values, and the comparison of results with it.

The tolerance is measured: the model is evaluated again, node by node, with every element that a node reads changed by
two units roundoff of its type, up or down by chance (Monte Carlo arithmetic: Stott Parker, 1997).  The movement of the
results tells how far rounding may move them, with conditions and cancellation.  An element whose kind changes (NaN, an
infinity, an integer, a condition) is not compared: rounding decides it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.verification.random_models.build import Array, Builder, UnusableError

SAMPLES = 6
"""Evaluations with changed operands."""
FACTOR = 16.0
"""Tolerance over the largest movement: a sum of n terms moves by about 2 sqrt(n) u in a sample, by n u at worst."""
ULPS = 8.0
"""Units in the last place that are allowed beside, for functions such as `exp` that libraries round differently."""


@dataclass(frozen=True)
class Expected:
    """A value in one binding: its elements, how far they may be off, and which are compared."""

    elements: Array
    tolerance: Array
    stable: Array


def expected(builder: Builder, binding: int, seed: int) -> dict[str, Expected]:
    """Return what each value of the model should be.  A value whose shape depends on rounding is left out."""
    known = {v.name: v.arrays[binding] for v in builder.values}
    rng = np.random.default_rng([seed, binding])
    samples = [_moved(builder, binding, rng) for _ in range(SAMPLES)]
    found: dict[str, Expected] = {}
    for name, elements in known.items():
        others = [s[name] for s in samples if name in s]
        if len(others) == SAMPLES and all(o.shape == elements.shape for o in others):
            found[name] = _expected(elements, others)
    return found


def exactly(elements: Array) -> Expected:
    """Return what a value should be that may be off by its own rounding alone."""
    return _expected(elements, [elements])


def difference(given: Any, wanted: Expected) -> str:
    """Return how a result differs from what is expected; empty if it does not."""
    given, elements = np.asarray(given), wanted.elements
    if given.dtype != elements.dtype or given.shape != elements.shape:
        return f"expected {elements.dtype}{list(elements.shape)}, got {given.dtype}{list(given.shape)}"
    bad = _apart(given, wanted) & wanted.stable
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return (
        f"{int(bad.sum())} of {bad.size} elements differ; at {list(at)}: expected {elements[at]} "
        f"within {wanted.tolerance[at]:.2g}, got {given[at]}"
    )


def _apart(given: Array, wanted: Expected) -> Array:
    elements = wanted.elements
    if elements.dtype.kind != "f":
        return np.asarray(given != elements)
    with np.errstate(all="ignore"):
        a, b = given.astype(np.float64), elements.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        return np.asarray(~same & ~(np.abs(a - b) <= wanted.tolerance))


def _moved(builder: Builder, binding: int, rng: np.random.Generator) -> dict[str, Array]:
    """All values of an evaluation with changed operands, without nodes that cannot be evaluated so and their users."""
    values: dict[str, Array] = {**builder.feeds(binding), **builder.constants}
    for step in builder.steps:
        if any(n not in values for n in step.reads):
            continue
        try:
            made = step.run({n: _changed(values[n], rng) for n in step.reads})
        except UnusableError:
            continue
        values |= zip(step.node.output, made, strict=True)
    return values


def _changed(array: Array, rng: np.random.Generator) -> Array:
    if array.dtype.kind != "f":
        return array
    unit = np.finfo(array.dtype).eps / 2
    with np.errstate(all="ignore"):
        return np.asarray(array * (1 + unit * 2 * rng.choice((-1, 1), array.shape)), array.dtype)


def _expected(elements: Array, others: Sequence[Array]) -> Expected:
    if elements.dtype.kind != "f":
        stable = np.all([o == elements for o in others], axis=0) if elements.size else np.ones(elements.shape, bool)
        return Expected(elements, np.zeros(elements.shape), np.asarray(stable))
    with np.errstate(all="ignore"):
        exact = elements.astype(np.float64)
        finite = np.isfinite(exact)
        stack = np.stack([o.astype(np.float64) for o in others])
        kinds = [(np.isfinite(o) == finite) & (finite | (o == exact) | (np.isnan(o) & np.isnan(exact))) for o in stack]
        moved = np.max(np.abs(stack - exact), axis=0, initial=0.0)
        moved = np.where(finite & np.isfinite(moved), moved, 0.0)
        typical = float(moved.mean()) if moved.size else 0.0
        tolerance = FACTOR * np.maximum(moved, typical) + ULPS * np.finfo(elements.dtype).eps * np.abs(exact)
        tolerance += 4 * float(np.finfo(elements.dtype).smallest_subnormal)
    return Expected(elements, np.where(finite, tolerance, 0.0), np.all(kinds, axis=0))
