"""What a loop nest is, by its structure: what the automatic schedule goes by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.loop.analysis.polynomial import linear
from opgen.loop.nodes import Alloc, Block, Const, Expr, For, If, Let, Load, Stmt, Store
from opgen.loop.walk import free_vars, loads, stores, walk
from opgen.passes.unroll import constant_extent


@dataclass(frozen=True)
class Nest:
    """Loops each of which holds only the next, and what the last one holds."""

    loops: tuple[For, ...]
    core: Stmt

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(s.var for s in self.loops)

    def extent(self, name: str) -> int | None:
        """The number of iterations of one of the loops, if it is constant."""
        return next(constant_extent(s) for s in self.loops if s.var == name)

    @property
    def inner_loops(self) -> tuple[For, ...]:
        """The loops of the core, in program order."""
        return tuple(s for s in walk(self.core) if isinstance(s, For))

    @property
    def allocations(self) -> tuple[Alloc, ...]:
        return tuple(s for s in walk(self.core) if isinstance(s, Alloc))

    @property
    def outside_loads(self) -> tuple[Load, ...]:
        """Loads of what the core does not allocate."""
        own = {s.buffer.name for s in self.allocations}
        return tuple(e for e in loads(self.core) if e.buffer not in own)

    @property
    def results(self) -> tuple[Store, ...]:
        """Stores to what the core does not allocate."""
        own = {s.buffer.name for s in self.allocations}
        return tuple(s for s in stores(self.core) if s.buffer not in own)

    @property
    def conditions(self) -> tuple[Expr, ...]:
        return tuple(s.condition for s in walk(self.core) if isinstance(s, If))


def nests(s: Stmt) -> Iterator[Nest]:
    """The outermost nests of a statement, in program order."""
    match s:
        case For():
            yield _nest(s)
        case Block():
            for p in s.statements:
                yield from nests(p)
        case Let() | Alloc():
            yield from nests(s.body)
        case If():
            yield from nests(s.then)
            if s.otherwise is not None:
                yield from nests(s.otherwise)
        case _:
            return


def _nest(s: For) -> Nest:
    loops = [s]
    while isinstance(loops[-1].body, For):
        loops.append(loops[-1].body)
    return Nest(tuple(loops), loops[-1].body)


def is_contiguous(indices: tuple[Expr, ...], var: str) -> bool:
    """Whether consecutive values of a variable access consecutive elements."""
    if not indices or any(var in free_vars(i) for i in indices[:-1]):
        return False
    form = linear(indices[-1], var)
    return form is not None and form[0] == Const(1)


def depends(e: Expr | tuple[Expr, ...], var: str) -> bool:
    """Whether a variable occurs in an expression, or in one of several."""
    return any(var in free_vars(p) for p in (e if isinstance(e, tuple) else (e,)))


def contiguous_loop(nest: Nest) -> str | None:
    """The innermost loop along which all results lie consecutively in memory."""
    for name in reversed(nest.names):
        if nest.results and all(is_contiguous(s.indices, name) for s in nest.results):
            return name
    return None


def worth_lanes(nest: Nest, name: str) -> bool:
    """Whether lanes along a loop read mostly what lies consecutively, or read nothing of their own."""
    touched = [e for e in nest.outside_loads if depends(e.indices, name)]
    consecutive = sum(is_contiguous(e.indices, name) for e in touched)
    return not touched or 2 * consecutive > len(touched)


def reused_across(nest: Nest, vector: str) -> str | None:
    """The innermost other loop on which a consecutive read does not depend: tiling it reads that once a tile."""
    if not any(constant_extent(s) != 1 for s in nest.inner_loops):
        return None
    rows = [e for e in nest.outside_loads if is_contiguous(e.indices, vector)]
    for name in reversed(nest.names):
        if name != vector and any(not depends(e.indices, name) for e in rows):
            return name
    return None


def width_in_bytes(nest: Nest) -> int:
    """The size of the widest scalar that the nest computes with."""
    types = [s.value.type.dtype for s in stores(nest.core)] + [e.dtype for e in nest.outside_loads]
    return max((t.compute_type.bytes for t in types), default=4)
