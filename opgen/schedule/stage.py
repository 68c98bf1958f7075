"""stage: a local copy of the data that one iteration touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Annotated

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Block, Buffer, Const, Expr, For, If, Kernel, Let, Load, Space, Stmt, Store
from opgen.loop.walk import buffers_in, free_vars, loads, loops_in, skeleton, stores, walk
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify_expr
from opgen.passes.unroll import constant_extent
from opgen.schedule.box import SMALL, Box, accesses, at_most, bounding_box, covering_box, is_too_large, redirected
from opgen.schedule.declaration import Option, Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.lanes import require_all_even
from opgen.schedule.loops import buffer_at, require_fresh, require_loops, rewrite_loops
from opgen.schedule.values import BufferName, LoopName, Made, OneOf


@primitive("memory", "stage input at=y space=stack pad=true -> input_local")
class Stage(Step):
    """Makes a local copy of what one iteration touches: copied in, out, or both ways."""

    buffer: BufferName
    at: Annotated[LoopName, Option(lacks="the loop at which to make the copy")]
    space: Annotated[Space, OneOf(("heap", "stack", "register")), Option("stack")]
    pad: Annotated[bool, Option("false")]
    name: Annotated[str, Made("{buffer}_local")]

    def run(self, kernel: Kernel) -> Kernel:
        return stage(kernel, self.buffer, self.at, self.space, self.pad, self.name)


def stage(
    kernel: Kernel, buffer: str, at: str, space: Space, pad: bool, name: str, order: Sequence[int] | None = None
) -> Kernel:
    """Work on a local copy of the region of a buffer that one iteration of a loop reads, or writes.

        for y in 0..h:                          for y in 0..h:
          for r in 0..3: use(x[y + r])     ->     alloc x_local[3]
                                                  for x_0 in 0..3: x_local[x_0] = x[y + x_0]
                                                  for r in 0..3: use(x_local[r])

    The region is the bounding box of the accesses, whose indices must be affine.  With `pad`, places of the box outside
    the buffer are 0 in the copy.  Without it, the copy ends where the buffer does (no access that runs is out of
    bounds).  A region that is written must be written as a whole, and is copied out after the iteration's work.  One
    that is read and written is copied both ways: in one thread, and only if the buffer is filled where it is allocated.
    Loops of the same name that do not touch the buffer stay.  With `order`, dimension d of the copy is dimension
    order[d] of the buffer, whole where no smaller box is known.
    """
    require_loops(kernel, "stage", [at])
    known = _buffers(kernel)
    if buffer not in known:
        raise ScheduleError(f"stage {buffer}: there is no such buffer", did_you_mean(buffer, known))
    counters = [f"{name}_{d}" for d in range(len(known[buffer].shape))]
    require_fresh(kernel, "stage", [name, *counters])
    whole = _Stage(known[buffer], name, counters, space, pad, None if order is None else tuple(order))

    found = [s for s in loops_in(kernel.body) if s.var == at]
    touching = [s for s in found if buffer in _touched(s)] or found

    def staged(s: For, context: Context) -> Stmt:
        return whole.checked(s, kernel).apply(s, context, kernel) if s in touching else s

    after = rewrite_loops(kernel, at, staged)
    require_all_even(after, f"stage {buffer}")
    return after


def _touched(s: For) -> set[str]:
    """Return the buffers that a loop's body reads or writes."""
    return {e.buffer for e in loads(s.body)} | {p.buffer for p in stores(s.body)}


def _buffers(kernel: Kernel) -> dict[str, Buffer]:
    local = {o.name: o for o in buffers_in(kernel.body)}
    return {**local, **{buffer.name: buffer for buffer in kernel.buffers}}


@dataclass(frozen=True)
class _Stage:
    whole: Buffer
    local: str
    counters: Sequence[str]
    space: Space
    pad: bool
    given_order: tuple[int, ...] | None

    @property
    def order(self) -> tuple[int, ...]:
        return self.given_order or tuple(range(len(self.whole.shape)))

    def _refuse(self, reason: str, help: str | None = None) -> ScheduleError:
        return ScheduleError(f"stage {self.whole.name}: {reason}", help)

    def checked(self, s: For, kernel: Kernel) -> _Stage:
        """Return the plan for a loop inside which the buffer is known; refuses one that allocates it."""
        if any(o.name == self.whole.name for o in buffers_in(s.body)):
            raise self._refuse(f"it is allocated inside '{s.var}'")
        if self.whole.name not in _touched(s):
            raise self._refuse(f"nothing inside '{s.var}' touches it")
        whole = buffer_at(kernel, self.whole.name, s)
        if len(whole.shape) != len(self.whole.shape):
            raise self._refuse("it does not have as many dimensions everywhere")
        return replace(self, whole=whole)

    def apply(self, s: For, context: Context, kernel: Kernel) -> Stmt:
        inside = context.with_loop(s.var, s.start, s.stop)
        name = self.whole.name
        reads = any(e.buffer == name for e in loads(s.body))
        writes = any(p.buffer == name for p in stores(s.body))
        if reads and writes:
            self._require_begun(s, kernel)
        found = accesses(s.body, name)
        packed = self.given_order is not None and not writes
        box = covering_box(found, self.whole.shape, inside) if packed else bounding_box(found, inside)
        named = {p.var.name for p in skeleton(s.body) if isinstance(p, Let)}
        if box is None or any(named & free_vars(e) for e in (*box.low, *box.extents)):
            raise self._refuse(f"its indices inside '{s.var}' are not affine with known signs")
        if reads and (writes or not self.pad):
            box = box if packed else box.within(self.whole.shape, inside)
        extents = tuple(simplify_expr(e, inside) for e in box.extents)
        if self.space in SMALL and reads:
            extents = tuple(at_most(e, inside) for e in extents)
        if self.space in SMALL and not all(isinstance(e, Const) for e in extents):
            raise self._refuse("the size of its region is not constant", "stage it in heap, or further in")
        if writes and not reads:
            self._require_covered(s.body)
        room = box.most or extents
        buffer = Buffer(self.local, self.whole.dtype, tuple(room[d] for d in self.order), self.space)
        if is_too_large(buffer):
            raise self._refuse(f"'{self.local}' is too large for the {self.space}", "stage it in heap, or further in")
        copies = {out: self._copy(Box(box.low, extents), inside, out) for out in (False, True) if (reads, writes)[out]}
        body = redirected(s.body, name, self.local, box.low, inside, self.order)
        steps = (*([copies[False]] if reads else []), body, *([copies[True]] if writes else []))
        return For(s.var, s.start, s.stop, b.alloc(buffer, b.block(steps)), s.kind)

    def _copy(self, box: Box, context: Context, out: bool) -> Stmt:
        """Return loops over the box: in from the buffer (0 outside it), or out to it."""
        counters = tuple(b.var(c) for c in self.counters)
        extents = tuple(box.extents[d] for d in self.order)
        for c, e in zip(self.counters, extents, strict=True):
            context = context.with_loop(c, Const(0), e)
        walked = dict(zip(self.order, counters, strict=True))
        places = tuple(fold_all(b.add(low, walked[d])) for d, low in enumerate(box.low))
        dtype = self.whole.dtype
        move: Stmt
        if out:
            move = Store(self.whole.name, places, Load(self.local, counters, dtype))
        else:
            move = Store(self.local, counters, Load(self.whole.name, places, dtype))
        inside = self._inside(places, context)
        if inside is not None:
            if out or not self.pad:
                raise self._refuse("its region is not known to lie inside it", None if out else "pad it")
            move = If(inside, move, Store(self.local, counters, b.const(0, dtype)))
        for c, e in zip(reversed(self.counters), reversed(extents), strict=True):
            move = For(c, Const(0), e, move)
        return move

    def _inside(self, places: tuple[Expr, ...], context: Context) -> Expr | None:
        """Return the bounds checks of the places that are not known to hold; None if all are."""
        result: Expr | None = None
        for place, size in zip(places, self.whole.shape, strict=True):
            for condition in (b.compare("ge", place, 0), b.compare("lt", place, size)):
                if not context.proves(condition):
                    result = condition if result is None else b.both(result, condition)
        return result

    def _require_begun(self, s: For, kernel: Kernel) -> None:
        """Refuse to copy both ways unless only one thread has the data, and all of it has a value."""
        around = [p for p in skeleton(kernel.body) if isinstance(p, For | Alloc) and any(q is s for q in skeleton(p))]
        if any(isinstance(p, For) and p.kind not in ("serial", "unroll") for p in around):
            raise self._refuse(f"one iteration of '{s.var}' both reads and writes it", "stage before loops get threads")
        if not any(_filled(p, self.whole.name) for p in around):
            raise self._refuse(
                f"one iteration of '{s.var}' both reads and writes it, and it is not known to have values before"
            )

    def _require_covered(self, body: Stmt) -> None:
        """Refuse unless every element of the box is written.

        The stores must be adjacent and unconditional, with a loop variable for each dimension.
        """
        found = [p for p in stores(body) if p.buffer == self.whole.name]
        around = [tuple(p for p in walk(body) if isinstance(p, For | If | Let) and s in walk(p)) for s in found]
        loops = {p.var: constant_extent(p) for p in around[0] if isinstance(p, For)}
        alike = len(loops) == len(around[0]) and all(p == around[0] for p in around)
        alike = alike and all(s.mask is None for s in found)
        if not alike or not Box.covered([s.indices for s in found], loops):
            raise self._refuse("its region is not known to be written as a whole")


def _filled(s: Stmt, name: str) -> bool:
    """Return True if a statement allocates a buffer and fills all of it before anything else."""
    if not isinstance(s, Alloc) or not isinstance(s.body, Block):
        return False
    whole = next((o for o in s.buffers if o.name == name), None)
    if whole is None:
        return False
    sizes: dict[str, int] = {}
    first = s.body.statements[0]
    while isinstance(first, For) and isinstance(extent := constant_extent(first), int) and first.start == Const(0):
        sizes[first.var], first = extent, first.body
    if not isinstance(first, Store) or first.buffer != name or first.mask is not None:
        return False
    if len(first.indices) != len(whole.shape) or not Box.covered([first.indices], sizes):
        return False
    shape = [int(e.value) if isinstance(e, Const) else -1 for e in whole.shape]
    counts = [prod(sizes[n] for n in free_vars(i) & set(sizes)) for i in first.indices]
    return counts == shape and not any(free_vars(i) - set(sizes) for i in first.indices)
