"""Estimated time of a kernel once it is scheduled, computed from its loops before scheduling.

Arithmetic runs at the machine's rate in full vectors.  Data comes once from the nearest cache that holds it, one cache
line per element where access is strided.  Intermediates that are computed block by block stay in L2.  Schedules reach
these figures, which serve to choose between kernels, not to predict one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from math import log2, prod

from opgen.loop.analysis.places import at_places
from opgen.loop.nodes import (
    Alloc,
    Block,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    Stmt,
    Store,
)
from opgen.loop.walk import buffers_in, free_vars, loads, stores, walk_expr
from opgen.machine import Machine
from opgen.passes.unroll import constant_extent
from opgen.schedule.auto.nests import (
    Nest,
    contiguous_loop,
    depends,
    is_contiguous,
    loop_of_reads,
    nests,
    own_axis,
    reduces,
)
from opgen.schedule.cost.calibration import NEST, PRICED_PLACES, SHUFFLES, TRANSPOSED
from opgen.schedule.cost.memory import Memory
from opgen.schedule.cost.sizes import bytes_of, elements_of, float_operations


def seconds(kernel: Kernel, machine: Machine) -> float:
    """Return the estimated seconds of a kernel on one core; its sizes must be constant.

    Code that runs only for some data does not count.
    """
    buffers = {b.name: b for b in (*kernel.buffers, *buffers_in(kernel.body))}
    counted = list(_nests(kernel.body))
    found = [n for n in nests(kernel) if n.loops[0] in counted]
    crossed = sum(_crossed(nest, buffers, machine) for nest in found)
    heap = {name for name, b in buffers.items() if b.space == "heap"}
    ways = [_made_in_blocks(found, heap, along) for along in (False, True)]
    near = max(ways, key=lambda names: sum(bytes_of(buffers[n], 1) for n in names))
    return crossed + sum(_nest(nest, buffers, near, machine) for nest in counted)


def _nests(s: Stmt) -> Iterable[Stmt]:
    match s:
        case Block():
            for p in s.statements:
                yield from _nests(p)
        case Alloc() | Let():
            yield from _nests(s.body)
        case If():
            yield from () if any(isinstance(e, Load) for e in walk_expr(s.condition)) else _nests(s.then)
        case For():
            yield s


def _crossed(nest: Nest, buffers: Mapping[str, Buffer], machine: Machine) -> float:
    """Return the extra seconds of strided reads beside contiguous results, or the reverse, without a reduction."""
    along = contiguous_loop(nest)
    if reduces(nest):
        return 0
    if along is None:
        return 0 if loop_of_reads(nest) is None else _accessed_across(nest.results, nest, buffers, machine)
    reads = dict.fromkeys(e for e in nest.outside_loads if depends(e.indices, along))
    across = [e for e in reads if not is_contiguous(e, along, nest.shapes)]
    return _accessed_across(across, nest, buffers, machine)


def _accessed_across(
    found: Sequence[Load | Store], nest: Nest, buffers: Mapping[str, Buffer], machine: Machine
) -> float:
    """Return the seconds for strided accesses.

    If another loop runs along the accessed dimension, or the whole buffer is accessed, square blocks are transposed in
    registers, once for all accesses of a buffer.  Otherwise each element takes a cache line.
    """
    executed = prod(nest.extent(n) or 1 for n in nest.names)
    total = 0.0
    for name, times in Counter(e.buffer for e in found).items():
        own, buffer = [e for e in found if e.buffer == name], buffers[name]
        whole = executed * times >= elements_of(buffer.shape, 1)
        if any(is_contiguous(e, n, nest.shapes) or (whole and _last(e, n)) for e in own for n in nest.names):
            lanes = max(1, machine.vector_bytes // buffer.dtype.bytes)
            vectors = min(executed * times, elements_of(buffer.shape, 1)) / lanes
            total += (TRANSPOSED + log2(lanes)) * vectors / (SHUFFLES * machine.fma_per_second)
        else:
            total += executed * times * machine.l1.line / machine.l2.bytes_per_second
    return total


def _last(access: Load | Store, loop: str) -> bool:
    """Return True if a loop runs along the last dimension of an access and no other."""
    return own_axis(access, loop) == len(access.indices) - 1


def _made_in_blocks(found: Sequence[Nest], heap: Set[str], along: bool) -> set[str]:
    """Return the intermediates that are computed in parts, one for each block.

    A block is an iteration of a result's outermost loop, or (`along`) of its contiguous loop, or of a sum for something
    that is needed as a whole.  Blocks of contiguous loops do not pay if an input is contiguous along them too: it would
    be read in short pieces.
    """
    parts: dict[str, set[int]] = {name: set() for name in heap}
    scattered: set[str] = set()
    for nest in reversed(found):
        loops: set[str] = set()
        for s in nest.results:
            if s.buffer in heap:
                loops.update(*(free_vars(s.indices[d]) for d in parts[s.buffer]))
            else:
                last = contiguous_loop(nest) if along else None
                loops.update([last] if last else [n for n in nest.names if nest.extent(n) != 1][:1])
        if not loops:
            loops = {s.var for s in nest.inner_loops}
        for e in nest.outside_loads:
            if e.buffer in heap:
                parts[e.buffer].update(d for d, index in enumerate(e.indices) if free_vars(index) & loops)
            elif along and e.indices and free_vars(e.indices[-1]) & loops:
                scattered |= {s.buffer for s in nest.results}
    return {name for name, dimensions in parts.items() if dimensions} - scattered


def _nest(nest: Stmt, buffers: dict[str, Buffer], near: Set[str], machine: Machine) -> float:
    touched = {e.buffer for e in loads(nest)} | {s.buffer for s in stores(nest)}
    outside = [buffers[n] for n in sorted(touched) if buffers[n].space in ("global", "streamed", "heap")]
    arithmetic = _operations(nest, {}) / (machine.fma_per_second * machine.vector_bytes)
    together = sum(bytes_of(b, 1) for b in outside)
    kept = sum(bytes_of(b, 1) for b in outside if b.name in near)
    slow = Memory(machine).rate(together)
    fast = max(slow, machine.l2.bytes_per_second)
    return NEST + arithmetic + (together - kept) / slow + kept / fast


def _operations(s: Stmt, loops: Mapping[str, range]) -> float:
    """Return the multiply-adds and other float operations inside some loops, each times the bytes of its type."""
    match s:
        case Store():
            return sum(e.type.dtype.bytes for e in float_operations(s.value))
        case For():
            extent = constant_extent(s) or 1
            first = int(s.start.value) if isinstance(s.start, Const) else 0
            return extent * _operations(s.body, {**loops, s.var: range(first, first + extent)})
        case If():
            then = _operations(s.then, loops)
            otherwise = 0 if s.otherwise is None else _operations(s.otherwise, loops)
            share = _share(s.condition, loops) if then != otherwise else None
            return max(then, otherwise) if share is None else share * then + (1 - share) * otherwise
        case Let() | Alloc():
            return _operations(s.body, loops)
        case Block():
            return sum(_operations(p, loops) for p in s.statements)
        case _:
            return 0


def _share(condition: Expr, loops: Mapping[str, range]) -> float | None:
    """Return the share of iterations in which a condition holds; None if unknown, or if there are too many to try."""
    names = sorted(free_vars(condition))
    if any(n not in loops for n in names) or not 0 < prod(len(loops[n]) for n in names) <= PRICED_PLACES:
        return None
    found = at_places(condition, {n: loops[n] for n in names})
    return None if found is None else float(found.mean())
