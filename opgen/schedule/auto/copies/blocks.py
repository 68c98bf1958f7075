"""Transposed copies in square blocks that are transposed in registers, and copies of whole rows by vectors."""

from __future__ import annotations

from collections.abc import Sequence

from opgen.loop import build as b
from opgen.loop.nodes import Buffer, Const, Expr
from opgen.loop.walk import buffers_in, loops_in
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import SMALLEST_SQUARE
from opgen.schedule.split import Tail
from opgen.schedule.steps import Pack, Parallel, Permute, Reorder, Split, Step, Transpose, Vectorize, Version


def transposed_blocks(
    trial: Trial, copy: str, vector_bytes: int, around: Sequence[str] | None = None, suffix: str = ""
) -> bool:
    """Make a copy in square blocks of at most a vector's elements, or row by row if rows are not transposed.

    Threads share its outer loops, or the loops `around` it, if any.  A panel of unknown sizes has blocks if these fill
    it; its loops then have a `suffix`.  Return False if that is illegal.
    """
    loops = {s.var: constant_extent(s) for s in loops_in(trial.kernel.body)}
    buffer = next(o for o in buffers_in(trial.kernel.body) if o.name == copy)
    rank = len(buffer.shape)
    outer = [n for n in (f"{copy}_{d}{suffix}" for d in range(rank - 2)) if loops.get(n, 1) != 1]
    last = [f"{copy}_{d}{suffix}" for d in range(rank - 2, rank)]
    edge = max(1, vector_bytes // buffer.dtype.bytes)
    filled = b.TRUE if around is None or suffix else _filled(trial, copy, buffer, edge)
    if filled != b.TRUE:
        whole = trial.take(Version(f"{copy}_0", filled, "whole"))
        return not whole or transposed_blocks(trial, copy, vector_bytes, around, "_whole")
    sizes = {n: e or edge for n in last if (e := loops.get(n)) is not None or (suffix and n in loops)}
    if _order(trial, copy)[-1:] in ((), (rank - 1,)):
        shared = _shared(trial, [*outer, last[0]] if around is None else around)
        return row_by_row(trial, last[1], sizes.get(last[1], 0), edge) and shared
    while sizes and edge > min(sizes.values()):
        edge //= 2
    if len(sizes) < 2 or edge < SMALLEST_SQUARE:
        return _shared(trial, [*outer, *last] if around is None else around)
    tails: dict[str, Tail] = {n: "exact" if loops[n] and e % edge == 0 else "overlap" for n, e in sizes.items()}
    first, second = sorted(last, key=lambda n: (tails[n] == "overlap", n == last[0]))  # read in consecutive streams
    blocked = trial.take(*_blocks(outer, first, second, edge, tails))
    if around is None:
        exact = [f"{n}_o" for n in (first, second) if tails[n] == "exact"]
        around = [*outer, *exact] if blocked else [*outer, *last]
    shared = _shared(trial, around)  # proved before blocks are transposed: there is less to look at
    if blocked:
        trial.take(Transpose(f"{second}_i", f"{first}_i"))
    return shared


def _filled(trial: Trial, copy: str, buffer: Buffer, edge: int) -> Expr:
    """Return the condition that squares fill the last two dimensions of a panel of unknown sizes.

    Parts of a known size are whole, others large enough.
    """
    found: Expr = b.TRUE
    for pack in (s for s in trial.steps if isinstance(s, Pack) and s.name == copy):
        shape = next((o.shape for o in trial.kernel.buffers if o.name == pack.buffer), ())
        for part, size in zip(buffer.shape[-2:], (shape[d] for d in pack.order[-2:] if shape), strict=False):
            divides, fits = b.compare("eq", b.mod(size, part), 0), b.compare("ge", size, edge)
            found = found if isinstance(size, Const) else b.both(found, divides if isinstance(part, Const) else fits)
    return found


def _shared(trial: Trial, loops: Sequence[str]) -> bool:
    """Share the first two of the given loops, if any, among threads; return False if that is illegal."""
    return not loops or trial.fused_prefix(loops[:2], Parallel)


def _order(trial: Trial, copy: str) -> tuple[int, ...]:
    """Return the argument's dimensions in the order of the copy's; empty if the order is unchanged."""
    made = (s for s in reversed(trial.steps) if isinstance(s, Pack | Permute))
    return next((s.order for s in made if copy == (s.name if isinstance(s, Pack) else s.buffer)), ())


def row_by_row(trial: Trial, loop: str, extent: int, lanes: int) -> bool:
    """Vectorise a row, with shorter vectors at its end; return False if that is illegal."""
    while lanes > max(1, extent):
        lanes //= 2
    tail: Tail = "exact" if extent % lanes == 0 else "overlap"
    return trial.take(Split(loop, lanes, tail, f"{loop}_o", f"{loop}_l"), Vectorize(f"{loop}_l"))


def _blocks(outer: Sequence[str], first: str, second: str, edge: int, tails: dict[str, Tail]) -> list[Step]:
    """Return the steps that cut two loops into square blocks.

    Overlapping tiles are split last, as they cannot be moved.
    """
    return [
        Reorder((*outer, first, second)),
        Split(first, edge, tails[first], f"{first}_o", f"{first}_i"),
        Reorder((f"{first}_o", second, f"{first}_i")),
        Split(second, edge, tails[second], f"{second}_o", f"{second}_i"),
    ]
