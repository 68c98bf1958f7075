"""Checks that an output is written as a whole, so that a copy of it has no elements without a value."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from opgen.loop.nodes import Buffer, Const, Expr, For, If, Kernel, Let, Store, Var
from opgen.loop.walk import free_vars, stores, walk
from opgen.passes.unroll import constant_extent
from opgen.schedule.box import Box
from opgen.schedule.errors import ScheduleError


def require_written(kernel: Kernel, step: str, output: Buffer) -> None:
    """Refuse a step unless an output is written as a whole, so that every element of its copy has a value.

    It must be written by one unconditional store, along loops that count through each dimension.
    """
    found = [s for s in stores(kernel.body) if s.buffer == output.name]
    around = [s for s in walk(kernel.body) if isinstance(s, For | If | Let) and len(found) == 1 and found[0] in walk(s)]
    loops = {s.var: constant_extent(s) for s in around if isinstance(s, For) and s.start == Const(0)}
    whole = len(found) == 1 and found[0].mask is None and len(loops) == len(around)
    ends = {s.var: s.stop for s in around if isinstance(s, For)}
    if not whole or not Box.covered([found[0].indices], loops) or not _counts(found[0], loops, ends, output):
        raise ScheduleError(f"{step} {output.name}: it is not known to be written as a whole")


def _counts(store: Store, loops: Mapping[str, int | None], ends: Mapping[str, Expr], output: Buffer) -> bool:
    """Return True if each index takes as many values as the output has places."""
    return all(_is_whole(i, size, loops, ends) for i, size in zip(store.indices, output.shape, strict=True))


def _is_whole(index: Expr, size: Expr, loops: Mapping[str, int | None], ends: Mapping[str, Expr]) -> bool:
    if isinstance(index, Var) and ends.get(index.name) == size:
        return True
    names = free_vars(index)
    return names <= loops.keys() and Const(prod(loops[n] or 0 for n in names)) == size
