"""Structure of a loop nest, on which the automatic scheduler bases its decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod

from opgen.diagnostics import InternalError
from opgen.locks import cached_property
from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Alloc, Binary, Block, Buffer, Compare, Const, Expr, For, If, Kernel, Let, Load, Stmt, Store
from opgen.loop.walk import (
    buffers_in,
    free_vars,
    holds_loop,
    loads,
    loops_in,
    parts,
    skeleton,
    stores,
    walk_expr,
)
from opgen.passes.unroll import constant_extent
from opgen.schedule.cost.calibration import FULL, PACKED_TERMS, SHORT_STEP
from opgen.schedule.cost.sizes import element_of, elements_of
from opgen.schedule.focus import focus_on_loops

Shapes = Mapping[str, tuple[Expr, ...]]


@dataclass(frozen=True)
class Nest:
    """Loops that each hold only the next, and the core of the last one; `shapes` are those of all buffers."""

    loops: tuple[For, ...]
    core: Stmt
    shapes: Shapes
    guards: tuple[Expr, ...] = ()
    """Conditions between the loops, such as tiles that do not divide leave behind."""
    roles: dict[str | None, object] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Operand roles and loop roles (`roles.py`), by the loop of lanes."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(s.var for s in self.loops)

    def extent(self, name: str) -> int | None:
        """Return the number of iterations of one of the loops, if it is constant."""
        return next(constant_extent(s) for s in self.loops if s.var == name)

    @cached_property
    def inner_loops(self) -> tuple[For, ...]:
        """Return the loops of the core, in program order."""
        return tuple(loops_in(self.core))

    @cached_property
    def allocations(self) -> tuple[Buffer, ...]:
        """Return the buffers that the core allocates."""
        return tuple(buffers_in(self.core))

    @cached_property
    def outside_loads(self) -> tuple[Load, ...]:
        """Return the loads of buffers that the core does not allocate."""
        own = {o.name for o in self.allocations}
        return tuple(e for e in loads(self.core) if e.buffer not in own)

    @cached_property
    def summed(self) -> tuple[Load, ...]:
        """Return those of the outside loads that the core's loops repeat: the terms of a sum.

        Operands that are applied to the sum, such as a bias or a residue, are left out.  Without loops, all loads are
        returned.
        """
        repeated = {e for s in self.inner_loops for e in loads(s)}
        return tuple(e for e in self.outside_loads if e in repeated or not repeated)

    def reads(self, buffer: str) -> bool:
        return any(e.buffer == buffer for e in self.outside_loads)

    @cached_property
    def results(self) -> tuple[Store, ...]:
        """Return the stores to buffers that the core does not allocate."""
        own = {o.name for o in self.allocations}
        return tuple(s for s in stores(self.core) if s.buffer not in own)

    @property
    def sums_wait(self) -> bool:
        """Return True if partial sums can be kept in the results: these have the sum's type."""
        types = {o.dtype for o in self.allocations} | {s.value.type.dtype for s in self.results}
        return len(types) == 1

    @cached_property
    def conditions(self) -> tuple[Expr, ...]:
        return (*self.guards, *(s.condition for s in skeleton(self.core) if isinstance(s, If)))

    @cached_property
    def borders(self) -> frozenset[str]:
        """Return the variables in conditions: those of loops that have a border, or phases."""
        return frozenset(n for c in self.conditions for n in free_vars(c))

    @cached_property
    def phases(self) -> Mapping[str, int]:
        """Return the loops whose value conditions `e % c == 0` restrict to a class modulo c, each with its c.

        The results of a strided window's gradient alternate so.
        """
        found: dict[str, int] = {}
        for condition in self.conditions:
            for e in walk_expr(condition):
                match e:
                    case Compare("eq", Binary("mod", inner, Const(int(step))), Const(0)):
                        found |= {n: step for n in self.names if coefficient(inner, n) in (1, -1)}
        return found


def nests(kernel: Kernel) -> list[Nest]:
    """Return the outermost loop nests of a kernel, in program order."""
    return list(_nests(kernel.body, _shapes(kernel)))


def inner_nests(kernel: Kernel) -> list[Nest]:
    """Return the loop nests as `nests` does, but descend into one whose last loop allocates memory of its own."""
    return [n for nest in nests(kernel) for n in _opened(nest)]


def nest_of(kernel: Kernel, *loops: str) -> Nest:
    """Return the loop nest that holds the given loops.  Earlier steps must have left it whole."""
    seen = focus_on_loops(kernel, loops)
    for nest in chain(inner_nests(seen), nests(seen), (loops_at(seen, s) for s in loops_in(seen.body))):
        if set(loops) <= set(nest.names):
            return nest
    raise InternalError(f"no nest holds the loops {', '.join(loops)} any more")


def recurrences(kernel: Kernel) -> list[Nest]:
    """Return the outermost loops over steps, or around such, each with those directly inside it."""
    found = [s for s in loops_in(kernel.body) if s.kind == "ordered" or is_around_steps(s)]
    return [loops_at(kernel, s) for s in found if not any(holds_loop(t.body, s.var) for t in found)]


def nest_around(kernel: Kernel, loop: str) -> Nest | None:
    """Return the outermost loop nest whose last loop holds the given loop, in a block; None if there is none."""
    return next((n for n in nests(kernel) if holds_loop(n.core, loop)), None)


def loops_at(kernel: Kernel, s: For) -> Nest:
    """Return a loop and those directly inside it; the last one may hold anything."""
    return _nest(s, _shapes(kernel))


def is_around_steps(s: Stmt) -> bool:
    """Return True if a loop only holds the steps of recurrences, one recurrence for each of its iterations."""
    while isinstance(s, For | Let | Alloc):
        if isinstance(s, For) and s.kind == "ordered":
            return True
        s = s.body
    return isinstance(s, Block) and any(p.kind == "ordered" for p in loops_in(s))


def in_steps(kernel: Kernel, loop: str) -> bool:
    """Return True if a loop is inside one over the steps of a recurrence, so that it is repeated."""
    return any(s.kind == "ordered" and holds_loop(s.body, loop) for s in loops_in(kernel.body))


def read_in_steps(kernel: Kernel, buffer: str) -> bool:
    """Return True if a buffer is read at each step of a recurrence."""
    return any(s.kind == "ordered" and any(e.buffer == buffer for e in loads(s.body)) for s in loops_in(kernel.body))


def _opened(nest: Nest) -> Iterator[Nest]:
    if not any(o.space == "heap" for o in nest.allocations):
        yield nest
        return
    for inner in _nests(nest.core, nest.shapes):
        yield from _opened(inner)


def _shapes(kernel: Kernel) -> Shapes:
    shapes = {buffer.name: buffer.shape for buffer in kernel.buffers}
    return shapes | {o.name: o.shape for o in buffers_in(kernel.body)}


def _nests(s: Stmt, shapes: Shapes) -> Iterator[Nest]:
    if isinstance(s, For) and s.kind != "ordered" and not is_around_steps(s):
        yield _nest(s, shapes)
    else:
        for p in parts(s):
            yield from _nests(p, shapes)


def _nest(s: For, shapes: Shapes) -> Nest:
    loops, guards, body = [s], [], s.body
    while isinstance(body, For) or (isinstance(body, If) and body.otherwise is None and isinstance(body.then, For)):
        if isinstance(body, For):
            loops.append(body)
        else:
            guards.append(body.condition)
        (body,) = parts(body)
    return Nest(tuple(loops), body, shapes, tuple(guards))


def conditional_loops(kernel: Kernel) -> set[str]:
    """Return the loops of the loop nests that run only under a condition on data: a condition that loads."""
    found = (s for s in _around_nests(kernel.body) if any(isinstance(e, Load) for e in walk_expr(s.condition)))
    return {loop.var for s in found for loop in loops_in(s)}


def _around_nests(s: Stmt) -> Iterator[If]:
    """Yield the conditions that are not in a loop."""
    if isinstance(s, If):
        yield s
    for p in () if isinstance(s, For) else parts(s):
        yield from _around_nests(p)


def is_contiguous(access: Load | Store, var: str, shapes: Shapes) -> bool:
    """Return True if consecutive values of a variable access consecutive elements.

    Dimensions of size 1 do not count.
    """
    indices = list(access.indices)
    for size in reversed(shapes.get(access.buffer, ())):
        if size != Const(1) or len(indices) < 2:
            break
        indices.pop()
    return bool(indices) and not depends(tuple(indices[:-1]), var) and coefficient(indices[-1], var) == 1


def coefficient(e: Expr, var: str) -> int | None:
    """Return the constant factor of a variable; None if it is not constant, or the expression is not linear."""
    form = linear(e, var)
    return int(form[0].value) if form is not None and isinstance(form[0], Const) else None


def depends(e: Expr | tuple[Expr, ...], var: str) -> bool:
    """Return True if a variable occurs in an expression, or in one of several."""
    return any(var in free_vars(p) for p in (e if isinstance(e, tuple) else (e,)))


def contiguous_loop(nest: Nest) -> str | None:
    """Return the innermost loop along which all results are contiguous in memory."""
    for name in reversed(nest.names):
        if nest.results and all(is_contiguous(s, name, nest.shapes) for s in nest.results):
            return name
    return None


def loop_across(nest: Nest, lanes: int) -> str | None:
    """Return a loop that suits lanes better than the one along which results are contiguous; None if there is none.

    That one needs masks if conditions depend on it, and wastes lanes if it is short.  Lanes are full along a loop that
    no condition depends on, and that only some reads follow.  Strided stores are then few beside the reads, except in
    sums of so few terms that packing the operands does not pay.
    """
    along = contiguous_loop(nest)
    mixed = _mixed(nest)
    if along is not None and along not in nest.borders:
        terms = prod(constant_extent(s) or PACKED_TERMS for s in nest.inner_loops)
        if filled(nest, along, lanes) > FULL or terms < PACKED_TERMS:
            return None
        fuller = [n for n in mixed if filled(nest, n, lanes) > filled(nest, along, lanes)]
        rows = [n for n in fuller if _is_row(nest, n)]
        return max(rows, key=lambda n: nest.extent(n) or 0, default=None)

    def suits(name: str) -> tuple[int, float]:
        """Return the number of whole vectors, and then how full they are."""
        extent = nest.extent(name) or 0
        return extent // lanes, extent / (max(1, -(-extent // lanes)) * lanes)

    return max(mixed, key=suits, default=None)


def loop_of_reads(nest: Nest) -> str | None:
    """Return the loop along which all reads are contiguous, if results are contiguous along none."""
    if contiguous_loop(nest) is not None or not nest.results:
        return None
    for loop in nest.names:
        reads = [e for e in nest.outside_loads if depends(e.indices, loop)]
        side_by_side = bool(reads) and all(is_contiguous(e, loop, nest.shapes) for e in reads)
        if side_by_side and all(own_axis(s, loop) is not None for s in nest.results):
            return loop
    return None


def consecutive_terms(nest: Nest) -> For | None:
    """Return the innermost loop of a reduction, if most of its reads are contiguous along it."""
    if not nest.inner_loops or len(nest.allocations) != 1:
        return None
    loop = nest.inner_loops[-1]
    return loop if mostly_consecutive(nest, loop.var) else None


def loops_instead(nest: Nest) -> list[str]:
    """Return the loops without conditions that only some reads follow, along a dimension of their own.

    The longest comes first.  They are for lanes if reads would have strides along the loop of contiguous results.
    """
    return sorted((n for n in _mixed(nest) if _is_row(nest, n)), key=lambda n: -(nest.extent(n) or 0))


def _mixed(nest: Nest) -> list[str]:
    """Return the loops that no condition depends on, and that only some reads follow."""
    free = [n for n in nest.names if n not in nest.borders]
    return [n for n in free if 0 < sum(depends(e.indices, n) for e in nest.summed) < len(nest.summed)]


def _is_row(nest: Nest, loop: str) -> bool:
    """Return True if a read follows a loop along a dimension of its own."""
    return any(own_axis(e, loop) is not None for e in nest.summed)


def count_of_terms(nest: Nest) -> int:
    """Return the number of terms that a loop nest adds up for all of its results; 0 if a size is not known."""
    results = prod(nest.extent(n) or 0 for n in nest.names)
    return results * prod(constant_extent(s) or 0 for s in nest.inner_loops)


def own_axis(access: Load | Store, loop: str) -> int | None:
    """Return the only dimension of an access that depends on a loop, if there is exactly one."""
    axes = [i for i, e in enumerate(access.indices) if depends(e, loop)]
    return axes[0] if len(axes) == 1 else None


def with_last(rank: int, axis: int) -> tuple[int, ...]:
    """Return the dimensions of a buffer in their order, except that `axis` is last."""
    return (*(d for d in range(rank) if d != axis), axis)


def filled(nest: Nest, name: str, lanes: int) -> float:
    """Return the share of busy lanes if a loop runs in vectors, overlapping or shorter ones at its end."""
    extent = nest.extent(name) or 1
    used = lanes
    while used > extent:
        used //= 2
    return extent / (-(-extent // used) * lanes)


def worth_lanes(nest: Nest, name: str) -> bool:
    """Return True if lanes along a loop have mostly contiguous reads, or no reads of their own.

    Gathers are left out: their places decide.
    """
    touched = [e for e in nest.summed if depends(e.indices, name) and not is_told(e, name)]
    consecutive = sum(is_contiguous(e, name, nest.shapes) for e in touched)
    return not touched or 2 * consecutive > len(touched)


def in_short_steps(nest: Nest, name: str, most: int = SHORT_STEP) -> bool:
    """Return True if the lanes along a loop read elements no more than a few elements apart."""
    return all(0 < _step(nest, e, name) <= most for e in nest.summed if depends(e.indices, name))


def _step(nest: Nest, access: Load, name: str) -> int:
    """Return the distance, in elements, between the reads of adjacent iterations; 0 if it is not known."""
    axis = own_axis(access, name)
    if axis is None:
        return 0
    return abs(coefficient(access.indices[axis], name) or 0) * elements_of(nest.shapes[access.buffer][axis + 1 :])


def is_told(access: Load, loop: str) -> bool:
    """Return True if the place of an access is determined by reads that follow a loop."""
    told = (n for i in access.indices for n in walk_expr(i) if isinstance(n, Load))
    return any(depends(n.indices, loop) for n in told)


def mostly_consecutive(nest: Nest, name: str) -> bool:
    """Return True if more than half of the reads that follow a loop are contiguous along it."""
    touched = [e for e in nest.outside_loads if depends(e.indices, name)]
    return 2 * sum(is_contiguous(e, name, nest.shapes) for e in touched) > len(touched)  # and something is read


def reduces(nest: Nest) -> bool:
    """Return True if the core repeats anything."""
    return any(constant_extent(s) != 1 for s in nest.inner_loops)


def updates(nest: Nest) -> bool:
    """Return True if loaded values determine the elements that are written: iterations may collide."""
    return any(isinstance(e, Load) for s in nest.results for i in s.indices for e in walk_expr(i))


def loops_of_reuse(nest: Nest, vector: str) -> list[str]:
    """Return the loops, innermost first, on which some read of the lanes does not depend.

    With such a loop tiled, that read is done once a tile.
    """
    rows = [e for e in nest.summed if is_contiguous(e, vector, nest.shapes)]
    others = [n for n in reversed(nest.names) if n != vector]
    return [n for n in others if any(not depends(e.indices, n) for e in rows)]


def touched_bytes(nest: Nest) -> int:
    """Return the bytes that a loop nest reads and writes; unknown dimensions are left out."""
    return _known_bytes(nest, (*nest.outside_loads, *nest.results))


def read_bytes(nest: Nest) -> int:
    """Return the bytes that a loop nest reads; unknown dimensions are left out."""
    return _known_bytes(nest, nest.outside_loads)


def _known_bytes(nest: Nest, accesses: Sequence[Load | Store]) -> int:
    """Return the size of all accessed buffers, without the dimensions that are not known."""
    return sum({e.buffer: elements_of(nest.shapes[e.buffer], 1) * element_of(e) for e in accesses}.values())


def places_read(nest: Nest) -> set[Load]:
    """Return the loads that determine the places of others."""
    return {n for e in nest.outside_loads for i in e.indices for n in walk_expr(i) if isinstance(n, Load)}


def copies_rows(nest: Nest, vector: str) -> bool:
    """Return True if whole rows are read at places given by values: a place is looked up once for a row."""
    places = places_read(nest)
    return bool(places) and not any(depends(e.indices, vector) for e in places) and len(nest.names) > 1


def width_in_bytes(nest: Nest, along: str | None = None) -> int:
    """Return the size of the widest scalar that the loop nest computes with.

    Loads of places that are the same for a whole loop `along` do not count.
    """
    places = {e for e in places_read(nest) if along is not None and not depends(e.indices, along)}
    read = [e for e in nest.outside_loads if e not in places]
    types = [s.value.type.dtype for s in stores(nest.core)] + [e.dtype for e in read]
    return max((t.compute_type.bytes for t in types), default=4)
