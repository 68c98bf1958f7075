"""What a loop nest is, by its structure: what the automatic scheduler goes by."""

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
    """Loops each of which holds only the next, and what the last one holds; `shapes` are those of all buffers."""

    loops: tuple[For, ...]
    core: Stmt
    shapes: Shapes
    guards: tuple[Expr, ...] = ()
    """Conditions between the loops, as tiles that do not divide leave them."""
    roles: dict[str | None, object] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What `roles.py` found out, by the loop of lanes."""

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(s.var for s in self.loops)

    def extent(self, name: str) -> int | None:
        """The number of iterations of one of the loops, if it is constant."""
        return next(constant_extent(s) for s in self.loops if s.var == name)

    @cached_property
    def inner_loops(self) -> tuple[For, ...]:
        """The loops of the core, in program order."""
        return tuple(loops_in(self.core))

    @cached_property
    def allocations(self) -> tuple[Buffer, ...]:
        """What the core allocates."""
        return tuple(buffers_in(self.core))

    @cached_property
    def outside_loads(self) -> tuple[Load, ...]:
        """Loads of what the core does not allocate."""
        own = {o.name for o in self.allocations}
        return tuple(e for e in loads(self.core) if e.buffer not in own)

    @cached_property
    def summed(self) -> tuple[Load, ...]:
        """Of these what its loops repeat, the terms of a sum: not what is made of the sum (a bias, a residue); all of
        them where it has no loops.
        """
        repeated = {e for s in self.inner_loops for e in loads(s)}
        return tuple(e for e in self.outside_loads if e in repeated or not repeated)

    def reads(self, buffer: str) -> bool:
        return any(e.buffer == buffer for e in self.outside_loads)

    @cached_property
    def results(self) -> tuple[Store, ...]:
        """Stores to what the core does not allocate."""
        own = {o.name for o in self.allocations}
        return tuple(s for s in stores(self.core) if s.buffer not in own)

    @property
    def sums_wait(self) -> bool:
        """Whether what is summed so far can wait in the results: they have the sum's type."""
        types = {o.dtype for o in self.allocations} | {s.value.type.dtype for s in self.results}
        return len(types) == 1

    @cached_property
    def conditions(self) -> tuple[Expr, ...]:
        return (*self.guards, *(s.condition for s in skeleton(self.core) if isinstance(s, If)))

    @cached_property
    def borders(self) -> frozenset[str]:
        """The variables of which conditions speak: those of loops that have a border, or phases."""
        return frozenset(n for c in self.conditions for n in free_vars(c))

    @cached_property
    def phases(self) -> Mapping[str, int]:
        """The loops whose value must be of some class modulo a constant, by conditions `e % c == 0`, with that
        constant: the results of a strided window's gradient take turns so.
        """
        found: dict[str, int] = {}
        for condition in self.conditions:
            for e in walk_expr(condition):
                match e:
                    case Compare("eq", Binary("mod", inner, Const(int(step))), Const(0)):
                        found |= {n: step for n in self.names if coefficient(inner, n) in (1, -1)}
        return found


def nests(kernel: Kernel) -> list[Nest]:
    """The outermost nests of a kernel, in program order."""
    return list(_nests(kernel.body, _shapes(kernel)))


def inner_nests(kernel: Kernel) -> list[Nest]:
    """As `nests`, but of a nest whose last loop works in memory of its own the nests inside that loop."""
    return [n for nest in nests(kernel) for n in _opened(nest)]


def nest_of(kernel: Kernel, *loops: str) -> Nest:
    """The nest that holds some loops.  What the scheduler did before must have left it whole."""
    seen = focus_on_loops(kernel, loops)
    for nest in chain(inner_nests(seen), nests(seen), (loops_at(seen, s) for s in loops_in(seen.body))):
        if set(loops) <= set(nest.names):
            return nest
    raise InternalError(f"no nest holds the loops {', '.join(loops)} any more")


def recurrences(kernel: Kernel) -> list[Nest]:
    """The outermost loops over steps, or around such: each by itself, with those that stand directly in it."""
    found = [s for s in loops_in(kernel.body) if s.kind == "ordered" or is_around_steps(s)]
    return [loops_at(kernel, s) for s in found if not any(holds_loop(t.body, s.var) for t in found)]


def nest_around(kernel: Kernel, loop: str) -> Nest | None:
    """The outermost nest whose last loop holds other nests, of which one has a loop: a block; None if there is none."""
    return next((n for n in nests(kernel) if holds_loop(n.core, loop)), None)


def loops_at(kernel: Kernel, s: For) -> Nest:
    """A loop and those that stand directly in it, whatever the last one holds."""
    return _nest(s, _shapes(kernel))


def is_around_steps(s: Stmt) -> bool:
    """Whether a loop is there for nothing but the steps of recurrences, one for each of its iterations."""
    while isinstance(s, For | Let | Alloc):
        if isinstance(s, For) and s.kind == "ordered":
            return True
        s = s.body
    return isinstance(s, Block) and any(p.kind == "ordered" for p in loops_in(s))


def in_steps(kernel: Kernel, loop: str) -> bool:
    """Whether a loop stands in one over the steps of a recurrence: what is done there is done again and again."""
    return any(s.kind == "ordered" and holds_loop(s.body, loop) for s in loops_in(kernel.body))


def read_in_steps(kernel: Kernel, buffer: str) -> bool:
    """Whether a buffer is read at each step of a recurrence."""
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
    """The loops of the nests that run only if data say so: a condition around them loads."""
    found = (s for s in _around_nests(kernel.body) if any(isinstance(e, Load) for e in walk_expr(s.condition)))
    return {loop.var for s in found for loop in loops_in(s)}


def _around_nests(s: Stmt) -> Iterator[If]:
    """The conditions that stand in no loop."""
    if isinstance(s, If):
        yield s
    for p in () if isinstance(s, For) else parts(s):
        yield from _around_nests(p)


def is_contiguous(access: Load | Store, var: str, shapes: Shapes) -> bool:
    """Whether consecutive values of a variable access consecutive elements (dimensions of size 1 do not count)."""
    indices = list(access.indices)
    for size in reversed(shapes.get(access.buffer, ())):
        if size != Const(1) or len(indices) < 2:
            break
        indices.pop()
    return bool(indices) and not depends(tuple(indices[:-1]), var) and coefficient(indices[-1], var) == 1


def coefficient(e: Expr, var: str) -> int | None:
    """The constant by which a variable is multiplied; None if it is none, or the expression is not linear in it."""
    form = linear(e, var)
    return int(form[0].value) if form is not None and isinstance(form[0], Const) else None


def depends(e: Expr | tuple[Expr, ...], var: str) -> bool:
    """Whether a variable occurs in an expression, or in one of several."""
    return any(var in free_vars(p) for p in (e if isinstance(e, tuple) else (e,)))


def contiguous_loop(nest: Nest) -> str | None:
    """The innermost loop along which all results lie consecutively in memory."""
    for name in reversed(nest.names):
        if nest.results and all(is_contiguous(s, name, nest.shapes) for s in nest.results):
            return name
    return None


def loop_across(nest: Nest, lanes: int) -> str | None:
    """A loop that suits lanes better than the one along which results lie consecutively; None if there is none.

    That one needs masks if conditions speak of it, and wastes lanes if it is short.  Along a loop of which no condition
    speaks, and which only some reads follow, lanes are full; what they store apart is little beside what is read, but
    of sums of so few terms that it does not pay to pack what is read.
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
        """The most whole vectors, and of as many the fullest."""
        extent = nest.extent(name) or 0
        return extent // lanes, extent / (max(1, -(-extent // lanes)) * lanes)

    return max(mixed, key=suits, default=None)


def loop_of_reads(nest: Nest) -> str | None:
    """The loop along which all that is read lies side by side, where there is none along which results do."""
    if contiguous_loop(nest) is not None or not nest.results:
        return None
    for loop in nest.names:
        reads = [e for e in nest.outside_loads if depends(e.indices, loop)]
        side_by_side = bool(reads) and all(is_contiguous(e, loop, nest.shapes) for e in reads)
        if side_by_side and all(own_axis(s, loop) is not None for s in nest.results):
            return loop
    return None


def consecutive_terms(nest: Nest) -> For | None:
    """The innermost loop of a reduction, if most of what it reads lies consecutively along it."""
    if not nest.inner_loops or len(nest.allocations) != 1:
        return None
    loop = nest.inner_loops[-1]
    return loop if mostly_consecutive(nest, loop.var) else None


def loops_instead(nest: Nest) -> list[str]:
    """The loops that only some reads follow, along a dimension of their own, and of which no condition speaks, the
    longest first: for lanes where those along which results lie would read with strides.
    """
    return sorted((n for n in _mixed(nest) if _is_row(nest, n)), key=lambda n: -(nest.extent(n) or 0))


def _mixed(nest: Nest) -> list[str]:
    """The loops of which no condition speaks, and which only some reads follow."""
    free = [n for n in nest.names if n not in nest.borders]
    return [n for n in free if 0 < sum(depends(e.indices, n) for e in nest.summed) < len(nest.summed)]


def _is_row(nest: Nest, loop: str) -> bool:
    """Whether a read follows a loop along a dimension of its own."""
    return any(own_axis(e, loop) is not None for e in nest.summed)


def count_of_terms(nest: Nest) -> int:
    """How many terms a nest adds up for all of its results together; 0 if a size is not known."""
    results = prod(nest.extent(n) or 0 for n in nest.names)
    return results * prod(constant_extent(s) or 0 for s in nest.inner_loops)


def own_axis(access: Load | Store, loop: str) -> int | None:
    """The dimension of an access that a loop alone walks along, if there is one."""
    axes = [i for i, e in enumerate(access.indices) if depends(e, loop)]
    return axes[0] if len(axes) == 1 else None


def with_last(rank: int, axis: int) -> tuple[int, ...]:
    """The dimensions of a buffer in their order, but one of them last."""
    return (*(d for d in range(rank) if d != axis), axis)


def filled(nest: Nest, name: str, lanes: int) -> float:
    """The share of lanes at work when a loop runs in vectors, overlapping or shorter ones at its end."""
    extent = nest.extent(name) or 1
    used = lanes
    while used > extent:
        used //= 2
    return extent / (-(-extent // used) * lanes)


def worth_lanes(nest: Nest, name: str) -> bool:
    """Whether lanes along a loop read mostly what lies consecutively, or read nothing of their own.

    What is read where other reads say, in gathers, is as these are.
    """
    touched = [e for e in nest.summed if depends(e.indices, name) and not is_told(e, name)]
    consecutive = sum(is_contiguous(e, name, nest.shapes) for e in touched)
    return not touched or 2 * consecutive > len(touched)


def in_short_steps(nest: Nest, name: str, most: int = SHORT_STEP) -> bool:
    """Return True if all that lanes along a loop read lies no more than a few elements apart."""
    return all(0 < _step(nest, e, name) <= most for e in nest.summed if depends(e.indices, name))


def _step(nest: Nest, access: Load, name: str) -> int:
    """How many elements apart a loop reads; 0 if that is not known."""
    axis = own_axis(access, name)
    if axis is None:
        return 0
    return abs(coefficient(access.indices[axis], name) or 0) * elements_of(nest.shapes[access.buffer][axis + 1 :])


def is_told(access: Load, loop: str) -> bool:
    """Whether reads that follow a loop tell where an access is."""
    told = (n for i in access.indices for n in walk_expr(i) if isinstance(n, Load))
    return any(depends(n.indices, loop) for n in told)


def mostly_consecutive(nest: Nest, name: str) -> bool:
    """Whether more than half of all that is read along a loop lies consecutively along it."""
    touched = [e for e in nest.outside_loads if depends(e.indices, name)]
    return 2 * sum(is_contiguous(e, name, nest.shapes) for e in touched) > len(touched)  # and something is read


def reduces(nest: Nest) -> bool:
    """Whether the core repeats anything."""
    return any(constant_extent(s) != 1 for s in nest.inner_loops)


def updates(nest: Nest) -> bool:
    """Whether what is loaded tells which elements are written: several iterations may write one."""
    return any(isinstance(e, Load) for s in nest.results for i in s.indices for e in walk_expr(i))


def loops_of_reuse(nest: Nest, vector: str) -> list[str]:
    """The loops, innermost first, on which some read of the lanes does not depend: tiling them reads that once a
    tile.
    """
    rows = [e for e in nest.summed if is_contiguous(e, vector, nest.shapes)]
    others = [n for n in reversed(nest.names) if n != vector]
    return [n for n in others if any(not depends(e.indices, n) for e in rows)]


def touched_bytes(nest: Nest) -> int:
    """The size of all that a nest reads and stores to, as far as it is known."""
    return _known_bytes(nest, (*nest.outside_loads, *nest.results))


def read_bytes(nest: Nest) -> int:
    """The size of all that a nest reads, as far as it is known."""
    return _known_bytes(nest, nest.outside_loads)


def _known_bytes(nest: Nest, accesses: Sequence[Load | Store]) -> int:
    """The size of all buffers that are accessed; dimensions that are not known are left out."""
    return sum({e.buffer: elements_of(nest.shapes[e.buffer], 1) * element_of(e) for e in accesses}.values())


def places_read(nest: Nest) -> set[Load]:
    """The loads that tell where others read."""
    return {n for e in nest.outside_loads for i in e.indices for n in walk_expr(i) if isinstance(n, Load)}


def copies_rows(nest: Nest, vector: str) -> bool:
    """Whether whole rows are read at places that values tell: a place is looked up once for a row."""
    places = places_read(nest)
    return bool(places) and not any(depends(e.indices, vector) for e in places) and len(nest.names) > 1


def width_in_bytes(nest: Nest, along: str | None = None) -> int:
    """The size of the widest scalar that the nest computes with; what only tells where all of a loop is read does not
    count.
    """
    places = {e for e in places_read(nest) if along is not None and not depends(e.indices, along)}
    read = [e for e in nest.outside_loads if e not in places]
    types = [s.value.type.dtype for s in stores(nest.core)] + [e.dtype for e in read]
    return max((t.compute_type.bytes for t in types), default=4)
