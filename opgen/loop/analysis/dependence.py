"""Independence of a loop's iterations: no iteration writes an element that another reads or writes.

Two iterations i < j of a loop are compared, each with its own copy of everything bound inside the loop.  For every pair
of accesses with at least one store, the proof shows that they touch different elements: some index differs, or the
offsets in the row-major buffer do.  The offsets see through indices that share one loop, `y[f // W, f % W]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from opgen.locks import cached_property
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.joined import whole_of
from opgen.loop.analysis.lanes import lane_variable, per_lane
from opgen.loop.analysis.polynomial import atom, polynomial
from opgen.loop.analysis.steps import steps_apart
from opgen.loop.nodes import (
    INDEX,
    Alloc,
    Barrier,
    Binary,
    Block,
    Compare,
    Const,
    Expr,
    For,
    If,
    Let,
    Load,
    Stmt,
    Store,
    Var,
)
from opgen.loop.walk import expressions, free_vars, map_expr, reads_memory, skeleton, substitute_expr, walk_expr


@dataclass(frozen=True)
class _Access:
    """One load or store, and the steps that enclose it within the loop."""

    buffer: str
    indices: tuple[Expr, ...]
    is_store: bool
    path: tuple[_Step, ...]


@dataclass(frozen=True)
class _Loop:
    var: str
    start: Expr
    stop: Expr
    lanes: int = 0  # of a vector, if the variable stands for its lane


@dataclass(frozen=True)
class _Guard:
    condition: Expr


@dataclass(frozen=True)
class _Name:
    var: Var
    value: Expr


_Step = _Loop | _Guard | _Name


def independent(loop: For, context: Context) -> bool:
    """Return True if the iterations of a loop are certain to be independent where `context` holds."""
    return why_dependent(loop, context) is None


def why_dependent(loop: For, context: Context) -> str | None:
    """Explain why iterations may depend on each other, in a sentence's words; None if they are certain not to."""
    if any(isinstance(s, Barrier) for s in skeleton(loop.body)):
        return f"a barrier stands in the loop over '{loop.var}'"
    iterations = _Iterations(loop, context)
    accesses = list(_accesses(loop.body, (), frozenset()))
    stored = {a.buffer for a in accesses if a.is_store}
    stored -= {buffer for buffer in stored if iterations.all_apart([a for a in accesses if a.buffer == buffer])}
    again = next((a for a in accesses if a.is_store and a.buffer in stored and iterations.repeat(a)), None)
    if again is not None:
        return _reason(loop, again, again)
    for number, first in enumerate(accesses):
        if first.buffer not in stored:
            continue
        for second in accesses[number:]:
            if second.buffer != first.buffer or not (first.is_store or second.is_store):
                continue
            if not (iterations.apart(first, second) and iterations.apart(second, first)):
                return _reason(loop, first, second)
    return None


def _reason(loop: For, first: _Access, second: _Access) -> str:
    if first.is_store and second.is_store:
        return f"two iterations of '{loop.var}' may store to the same element of '{first.buffer}'"
    return f"an iteration of '{loop.var}' may load an element of '{first.buffer}' that another stores"


def _accesses(s: Stmt, path: tuple[_Step, ...], local: frozenset[str]) -> Iterator[_Access]:
    """Yield the accesses in a loop's body to buffers that outlive an iteration."""
    for e in expressions(s):
        for n in walk_expr(e):
            if isinstance(n, Load) and n.buffer not in local:
                yield _access(n.buffer, n.indices, n.mask, False, path)
    match s:
        case Store() if s.buffer not in local:
            yield _access(s.buffer, s.indices, s.mask, True, path)
        case For():
            yield from _accesses(s.body, (*path, _Loop(s.var, s.start, s.stop)), local)
        case If():
            yield from _accesses(s.then, (*path, _Guard(s.condition)), local)
            if s.otherwise is not None:
                yield from _accesses(s.otherwise, (*path, _Guard(b.negate(s.condition))), local)
        case Let():
            yield from _accesses(s.body, (*path, _Name(s.var, s.value)), local)
        case Alloc():
            yield from _accesses(s.body, path, local.union([buffer.name for buffer in s.buffers]))
        case Block():
            for part in s.statements:
                yield from _accesses(part, path, local)


def _access(
    buffer: str, indices: tuple[Expr, ...], mask: Expr | None, is_store: bool, path: tuple[_Step, ...]
) -> _Access:
    """Return an access seen lane by lane: the lane is one more loop around it."""
    lanes = max((i.type.lanes for i in indices), default=1)
    if lanes > 1:
        path = (*path, _Loop(lane_variable(lanes).name, Const(0), Const(lanes), lanes))
    if mask is not None:
        path = (*path, _Guard(per_lane(mask)))
    return _Access(buffer, tuple(per_lane(i) for i in indices), is_store, path)


@dataclass
class _Iterations:
    """Two iterations of a loop, an earlier and a later one, compared with each other."""

    loop: For
    context: Context
    _decided: dict[tuple[Expr, Expr], bool] = field(default_factory=dict)

    @property
    def later(self) -> Var:
        return Var(_copied(self.loop.var), INDEX)

    @cached_property
    def both(self) -> Context:
        """Return the context in which the two iterations' variables are known, and nothing inside them."""
        inner = self.context.with_loop(self.loop.var, self.loop.start, self.loop.stop)
        return inner.with_loop(self.later.name, b.add(Var(self.loop.var, INDEX), 1), self.loop.stop)

    @cached_property
    def _single(self) -> bool:
        """Return True if there are seen to be no two iterations."""
        start, stop = self.loop.start, self.loop.stop
        if isinstance(start, Const) and isinstance(stop, Const) and stop.value - start.value > 1:
            return self.context.unreachable
        return self.both.unreachable

    def all_apart(self, accesses: list[_Access]) -> bool:
        """Return True if one index of all these accesses differs between iterations: quick, however many there are."""
        names = {name for access in accesses for step in access.path for name in _bound(step)}
        inside = [_ranges(access.path) for access in accesses]
        columns = list(zip(*(_spelt_out(access) for access in accesses), strict=True))
        for column in (*_whole(columns), *columns, *_owners(accesses, self.loop.var)):
            if all(i is column[0] or i == column[0] for i in column) and self._apart_outside(
                column[0], column[0], names
            ):
                return True
            resolved = [self.context.resolve(i) for i in column]
            if steps_apart(self.loop.var, list(zip(resolved, inside, strict=True))):
                return True
        return False

    def repeat(self, access: _Access) -> bool:
        """Return True if each of several iterations makes the same access: quick, and no proof would be found."""
        read = (*access.indices, *(e for step in access.path for e in _read(step)))
        return not any(self.loop.var in free_vars(e) for e in read) and not self._single

    def apart(self, early: _Access, late: _Access) -> bool:
        """Return True if `early` in one iteration and `late` in a later one always touch different elements."""
        inner_names = {name for step in early.path + late.path for name in _bound(step)}
        if any(self._apart_outside(i, j, inner_names) for i, j in zip(early.indices, late.indices, strict=True)):
            return True
        copies: dict[str, Expr] = {self.loop.var: self.later}
        for lanes in {step.lanes for step in late.path if isinstance(step, _Loop) and step.lanes}:
            copies[lane_variable(lanes).name] = Var(_copied(lane_variable(lanes).name), INDEX)
        inner = _enter(self.both, early.path)
        for step in late.path:
            copied, copies = _copy(step, copies)
            inner = _enter(inner, (copied,))
        first = tuple(inner.resolve(i) for i in early.indices)
        second = tuple(inner.resolve(_rename(self.context.resolve(i), copies, self.context)) for i in late.indices)
        if any(n.type.lanes > 1 for i in (*first, *second) for n in walk_expr(per_lane(i))):
            return False
        return _differ(inner, self.loop.var, first, second, self.context.shapes.get(early.buffer))

    def _apart_outside(self, i: Expr, j: Expr, inner_names: set[str]) -> bool:
        """Return True if two indices differ because of the loop's variable alone: quick, and the case of most loops."""
        for n in (*walk_expr(i), *walk_expr(j)):
            if isinstance(n, Load) or n.type.lanes > 1:
                return False
            if isinstance(n, Var) and (n.name in inner_names or n.name in self.context.values):
                return False
        if i is j or i == j:
            if self._strides(i):
                return True
            if self.loop.var not in free_vars(i):
                return self._single
        if (i, j) not in self._decided:
            moved = _rename(j, {self.loop.var: self.later})
            self._decided[i, j] = self.both.proves(b.compare("ne", i, moved))
        return self._decided[i, j]

    def _strides(self, i: Expr) -> bool:
        """Return True if an index is a multiple of the loop's variable plus something that stays the same."""
        whole, moving = polynomial(i), atom("var", Var(self.loop.var, INDEX))
        return (moving,) in whole.terms and sum(self.loop.var in a.variables for m in whole.terms for a in m) == 1


def _spelt_out(access: _Access) -> tuple[Expr, ...]:
    """Return the indices of an access with the names inside an iteration replaced by their values."""
    indices = access.indices
    for step in reversed(access.path):
        if isinstance(step, _Name):
            indices = tuple(substitute_expr(i, {step.var.name: step.value}) for i in indices)
    return indices


def _whole(columns: list[tuple[Expr, ...]]) -> Iterator[tuple[Expr, ...]]:
    """Yield the expressions whose quotient and remainder two indices of all accesses are, as in fused loops."""
    for quotients, rests in pairwise(columns):
        found = [whole_of(i, j) for i, j in zip(quotients, rests, strict=True)]
        divisors = {i.right for i in quotients if isinstance(i, Binary)}
        if None not in found and len(divisors) == 1:
            yield tuple(e for e in found if e is not None)


def _owners(accesses: list[_Access], loop: str) -> Iterator[tuple[Expr, ...]]:
    """Yield the owners of the elements of all accesses.

    If each access is guarded by `e == o`, and `e` is made of indices in the same way, then elements with different `o`
    are different.
    """
    first, *others = [_told(access, loop) for access in accesses]
    for place, owner in first.items():
        if all(place in told for told in others):
            yield (owner, *(told[place] for told in others))


def _told(access: _Access, loop: str) -> dict[Expr, Expr]:
    """Return, by number, the `o` of conditions `e == o` on an access whose `e` is made of its indices alone."""
    guards = [step.condition for step in access.path if isinstance(step, _Guard)]
    equal = [c for c in guards if isinstance(c, Compare) and c.op == "eq"]
    if not equal:
        return {}
    inside = {loop, *(name for step in access.path for name in _bound(step))}
    numbers = {i: Var(f"#{k}", INDEX) for k, i in enumerate(access.indices) if isinstance(i, Var)}
    found: dict[Expr, Expr] = {}
    for c in equal:
        place = map_expr(lambda n: numbers.get(n, n) if isinstance(n, Var) else n, c.left)
        if not reads_memory(place) and free_vars(place).isdisjoint(inside):
            found[place] = c.right
    return found


def _bound(step: _Step) -> tuple[str, ...]:
    """Return the name that a step of a path binds."""
    match step:
        case _Loop():
            return (step.var,)
        case _Name():
            return (step.var.name,)
        case _Guard():
            return ()


def _ranges(path: tuple[_Step, ...]) -> dict[str, tuple[int, int] | None]:
    """Return the names bound along a path, each with its least and greatest value where these are numbers."""
    found: dict[str, tuple[int, int] | None] = {}
    for step in path:
        found |= dict.fromkeys(_bound(step))
        if isinstance(step, _Loop) and isinstance(step.start, Const) and isinstance(step.stop, Const):
            found[step.var] = (int(step.start.value), int(step.stop.value) - 1)
    return found


def _read(step: _Step) -> tuple[Expr, ...]:
    """Return the expressions that a step of a path evaluates."""
    match step:
        case _Loop():
            return (step.start, step.stop)
        case _Name():
            return (step.value,)
        case _Guard():
            return (step.condition,)


def _differ(
    context: Context, var: str, first: tuple[Expr, ...], second: tuple[Expr, ...], shape: tuple[Expr, ...] | None
) -> bool:
    likely_first = sorted(zip(first, second, strict=True), key=lambda pair: var not in free_vars(pair[0]))
    if any(context.proves(b.compare("ne", i, j)) for i, j in likely_first):
        return True
    if shape is None or len(shape) != len(first) or len(first) < 2:
        return False
    return context.proves(b.compare("ne", _offset(first, shape), _offset(second, shape)))


def _offset(indices: tuple[Expr, ...], shape: tuple[Expr, ...]) -> Expr:
    offset = indices[0]
    for index, size in zip(indices[1:], shape[1:], strict=True):
        offset = b.add(b.mul(offset, size), index)
    return offset


def _enter(context: Context, path: tuple[_Step, ...]) -> Context:
    for step in path:
        match step:
            case _Loop():
                context = context.with_loop(step.var, step.start, step.stop)
            case _Guard():
                context = context.with_condition(step.condition)
            case _Name():
                context = context.with_let(step.var, step.value)
    return context


# The later iteration's copy ----------------------------------------------------------------------


def _copied(name: str) -> str:
    """Return the name of the later iteration's copy (no listing can declare a name with a space)."""
    return f"{name} later"


def _copy(step: _Step, copies: Mapping[str, Expr]) -> tuple[_Step, dict[str, Expr]]:
    """Return a step of the path with its variables renamed, and the renamings that hold after it."""
    match step:
        case _Loop():
            new = Var(_copied(step.var), INDEX)
            moved: _Step = _Loop(new.name, _rename(step.start, copies), _rename(step.stop, copies))
            return moved, {**copies, step.var: new}
        case _Guard():
            return replace(step, condition=_rename(step.condition, copies)), dict(copies)
        case _Name():
            name = Var(_copied(step.var.name), step.var.type)
            return _Name(name, _rename(per_lane(step.value), copies)), {**copies, step.var.name: name}


def _rename(e: Expr, copies: Mapping[str, Expr], context: Context | None = None) -> Expr:
    """Return the later iteration's copy of an expression; loads from buffers that change may give another value."""

    def renamed(n: Expr) -> Expr:
        if isinstance(n, Var):
            return copies.get(n.name, n)
        if isinstance(n, Load) and context is not None and n.buffer not in context.constant:
            return replace(n, buffer=_copied(n.buffer))
        return n

    return map_expr(renamed, e)
