"""Copies of results of models that were not written straight to the caller's arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opgen.diagnostics.calls import ArgumentTypeError
from opgen.diagnostics.describe import describe
from opgen.graph.ir.values import Array


def own(results: Sequence[Array], given: Sequence[Array]) -> tuple[Array, ...]:
    """Return the results, copied where they are the caller's arrays, another result, or read-only."""
    found: list[Array] = []
    for result in results:
        shared = any(np.may_share_memory(result, other) for other in (*given, *found))
        found.append(result.copy() if shared or not result.flags.writeable else result)
    return tuple(found)


def into(model: str, names: Sequence[str], results: tuple[Array, ...], out: object) -> tuple[Array, ...]:
    """Return the results in the caller's arrays for them (one, or as many as there are results), if there are any."""
    if out is None:
        return results
    if len(results) == 1 and not isinstance(out, list | tuple):
        out = (out,)
    if not isinstance(out, list | tuple) or len(out) != len(results):
        expected = "a numpy array" if len(results) == 1 else f"a tuple of {len(results)} numpy arrays"
        raise ArgumentTypeError(model, "out", expected, describe(out))
    found = []
    for name, result, target in zip(names, results, out, strict=True):
        if target is None:
            found.append(result)
            continue
        fits = isinstance(target, np.ndarray) and target.shape == result.shape and target.dtype == result.dtype
        if not fits or not target.flags.writeable:
            expected = f"a numpy array of {result.dtype}{list(result.shape)} that can be written to, for '{name}'"
            raise ArgumentTypeError(model, "out", expected, describe(target))
        target[...] = result
        found.append(target)
    return tuple(found)
