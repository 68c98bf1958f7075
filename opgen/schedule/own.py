"""own: updates at data-dependent places, divided among owners of the updated elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from opgen.loop import build as b
from opgen.loop.nodes import INDEX, Buffer, Const, Expr, For, If, Kernel, Let, Load, Stmt, Store, Var
from opgen.loop.walk import loads, loops_in, map_expr, parts, reads_memory, walk_expr, with_parts
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import buffer_at, require_fresh, require_loops, with_body
from opgen.schedule.values import LoopName, Made

MOST = 1 << 20
"""Largest number of owners: each visits all updates."""


@primitive("loops", "own i 64 -> i_owner")
class Own(Step):
    """Updates at places that values determine: each of 64 owners goes through all of them and makes those of its
    elements, in their order.
    """

    loop: LoopName
    owners: int
    name: Annotated[str, Made("{loop}_owner")]

    def run(self, kernel: Kernel) -> Kernel:
        return own(kernel, self.loop, self.owners, self.name)


def own(kernel: Kernel, loop: str, owners: int, name: str) -> Kernel:
    """Visit the updates of a loop once for each owner, which makes only the updates of its own elements.

                                        for o in 0..64:
        for i in 0..n:                    for i in 0..n:
          y[p[i]] = y[p[i]] + v[i]  ->      let y_0 = p[i]
                                            if y_0 % 64 == o:
                                              y[y_0] = y[y_0] + v[i]

    Each element is updated in the order of `i`, so the result is the same.  The iterations of `o` are independent.  The
    loop must hold one store and nothing else, and may not write the data that determines the place.
    """
    require_loops(kernel, "own", [loop])
    if not 2 <= owners <= MOST:
        raise ScheduleError(f"own {loop}: {owners} owners are not from 2 to {MOST}")
    found = [s for s in loops_in(kernel.body) if s.var == loop]
    if len(found) != 1:
        raise ScheduleError(f"own {loop}: there are {len(found)} loops of that name")
    step = _Own.of(kernel, found[0], owners, name)
    require_fresh(kernel, "own", [name, *(place.name for place in step.places.values())])

    def visit(s: Stmt) -> Stmt:
        if s is found[0]:
            return For(name, Const(0), Const(owners), step.guarded(s))
        return with_parts(s, tuple(visit(p) for p in parts(s)))

    return with_body(kernel, visit(kernel.body))


@dataclass(frozen=True)
class _Own:
    store: Store
    buffer: Buffer
    owners: int
    name: str
    places: dict[int, Var]
    """The dimensions whose indices read memory, with names for these indices."""

    @staticmethod
    def of(kernel: Kernel, loop: For, owners: int, name: str) -> _Own:
        store = _only_store(loop)
        around = _expressions_around(loop)
        told = [k for k, i in enumerate(store.indices) if reads_memory(i)]
        others = [e for e in loads(store) if e.buffer == store.buffer and e.indices != store.indices]
        read = {n.buffer for e in (*around, *store.indices) for n in walk_expr(e) if isinstance(n, Load)}
        if others or store.buffer in read:
            raise ScheduleError(f"own {loop.var}: it reads other elements of '{store.buffer}' than it updates")
        if not told:
            raise ScheduleError(f"own {loop.var}: no values tell where '{store.buffer}' is updated")
        names = {k: Var(f"{store.buffer}_{name}_{k}", INDEX) for k in told}
        return _Own(store, buffer_at(kernel, store.buffer, loop), owners, name, names)

    def guarded(self, s: Stmt) -> Stmt:
        """Return a statement around the store in which the store runs only for its owner."""
        if s is not self.store:
            return with_parts(s, tuple(self.guarded(p) for p in parts(s)))
        first, *rest = self.places
        whole: Expr = self.places[first]
        for k in rest:
            whole = b.add(b.mul(whole, self.buffer.shape[k]), self.places[k])
        mine = b.compare("eq", b.mod(whole, self.owners), b.var(self.name))
        indices = tuple(self.places.get(k, i) for k, i in enumerate(self.store.indices))
        value = self._at(self.store.value, indices)
        body: Stmt = If(mine, Store(self.store.buffer, indices, value, self.store.mask))
        for k in reversed(self.places):
            body = Let(self.places[k], self.store.indices[k], body)
        return body

    def _at(self, e: Expr, indices: tuple[Expr, ...]) -> Expr:
        """Return a value that reads the element at its named place."""

        def moved(n: Expr) -> Expr:
            return Load(n.buffer, indices, n.dtype) if isinstance(n, Load) and n.buffer == self.store.buffer else n

        return map_expr(moved, e)


def _only_store(loop: For) -> Store:
    """Return the only store of a loop, inside serial loops, conditions and names."""
    s: Stmt = loop
    while isinstance(s, For | Let) or (isinstance(s, If) and s.otherwise is None):
        if isinstance(s, For) and s.kind != "serial":
            raise ScheduleError(f"own {loop.var}: the loop '{s.var}' is already {s.kind}")
        (s,) = parts(s)
    if not isinstance(s, Store):
        raise ScheduleError(f"own {loop.var}: it holds something else than one store")
    if s.mask is not None or s.value.type.lanes > 1:
        raise ScheduleError(f"own {loop.var}: the store to '{s.buffer}' has lanes")
    return s


def _expressions_around(s: Stmt) -> list[Expr]:
    """Return the expressions that decide whether and how often the store runs."""
    found: list[Expr] = []
    while not isinstance(s, Store):
        match s:
            case For():
                found += (s.start, s.stop)
            case If():
                found.append(s.condition)
            case Let():
                found.append(s.value)
        (s,) = parts(s)
    return found
