"""compute_at: an intermediate computed where it is used, a piece at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Annotated

from opgen.diagnostics import did_you_mean
from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Block, Buffer, Const, For, Kernel, Let, Load, Space, Stmt
from opgen.loop.walk import allocs_in, loads, loops_in, parts, skeleton, stores, walk_expr, with_parts
from opgen.passes.fold import fold_all
from opgen.passes.simplify import simplify_stmt
from opgen.passes.unroll import constant_extent
from opgen.schedule.box import SMALL, Box, accesses, at_most, bounding_box, is_too_large, redirected
from opgen.schedule.declaration import Option, Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_loops, rewrite_loops, with_body
from opgen.schedule.producer import Producer
from opgen.schedule.values import BufferName, LoopName, OneOf


@primitive("memory", "compute_at v at=y_b space=heap again=false")
class ComputeAt(Step):
    """Computes an intermediate in each iteration of a loop, as much as that iteration reads; nothing twice unless
    `again=true`.
    """

    buffer: BufferName
    at: Annotated[LoopName, Option(lacks="the loop to compute it in")]
    space: Annotated[Space, OneOf(("heap", "stack", "register")), Option("heap")] = "heap"
    again: Annotated[bool, Option("false")] = False

    def run(self, kernel: Kernel) -> Kernel:
        return compute_at(kernel, self.buffer, self.at, self.space, self.again)


def compute_at(kernel: Kernel, buffer: str, at: str, space: Space, again: bool) -> Kernel:
    """Compute, in each iteration of a loop, the part of an intermediate that the iteration reads.

        alloc t[n + 2]
        for i in 0..n + 2: t[i] = f(i)              for y in 0..n:
        for y in 0..n:                       ->       alloc t[3]
          for r in 0..3: use(t[y + r])                for i in 0..3: t[i] = f(y + i)
                                                      for r in 0..3: use(t[r])

    The intermediate must be written by one loop nest, whose loops run along its dimensions, and read inside that one
    loop only.  The region is the bounding box of the reads, whose indices must be affine.  Elements that several
    iterations read are computed by each of them: `again` allows this; without it, there must provably be none.
    """
    require_loops(kernel, "compute_at", [at])
    local = {o.name: (s, o) for s in allocs_in(kernel.body) for o in s.buffers}
    if buffer not in local:
        raise ScheduleError(f"compute_at {buffer}: there is no such local buffer", did_you_mean(buffer, local))
    return _ComputeAt(kernel, *local[buffer], at, space, again).run()


@dataclass(frozen=True)
class _ComputeAt:
    kernel: Kernel
    whole: Alloc
    buffer: Buffer
    at: str
    space: Space
    again: bool

    @property
    def name(self) -> str:
        return self.buffer.name

    def refuse(self, reason: str, help: str | None = None) -> ScheduleError:
        return ScheduleError(f"compute_at {self.name}: {reason}", help)

    def run(self) -> Kernel:
        self._require_one_loop()
        block, first, last = self._places(self.whole.body)
        nest = Producer.of(block.statements[first], self.name)
        if isinstance(nest, str):
            raise self.refuse(nest)
        self._require_unchanged(block.statements[first : last + 1])
        around = _loops_around(block.statements[last], self.at)
        self._require_other_names(block.statements[first], block.statements[last])
        rest = b.block(s for i, s in enumerate(block.statements) if i != first)

        def without(s: Stmt) -> Stmt:
            if s is self.whole:
                return b.alloc([o for o in s.buffers if o.name != self.name], without(s.body))
            return rest if s is block else with_parts(s, tuple(without(p) for p in parts(s)))

        kernel = with_body(self.kernel, without(self.kernel.body))
        return rewrite_loops(kernel, self.at, lambda s, context: self._moved(s, context, nest, around))

    def _require_one_loop(self) -> None:
        found = [s for s in loops_in(self.kernel.body) if s.var == self.at]
        if len(found) != 1:
            raise self.refuse(f"there are {len(found)} loops '{self.at}'", "partition it afterwards")
        inside, everywhere = (sum(e.buffer == self.name for e in loads(s)) for s in (found[0].body, self.kernel.body))
        if everywhere == 0:
            raise self.refuse("nothing reads it")
        if inside != everywhere:
            raise self.refuse(f"it is also read outside '{self.at}'", "choose a loop around all that reads it")

    def _places(self, s: Stmt) -> tuple[Block, int, int]:
        """Return the innermost block that writes the buffer before the loop, and the indices of both statements."""
        if isinstance(s, Block):
            writing = [i for i, p in enumerate(s.statements) if any(w.buffer == self.name for w in stores(p))]
            reading = [i for i, p in enumerate(s.statements) if self.at in _loop_names(p)]
            if len(writing) == len(reading) == 1 and writing[0] < reading[0]:
                return s, writing[0], reading[0]
            if writing != reading:
                raise self.refuse(f"it is not written by one nest before '{self.at}'")
            return self._places(s.statements[reading[0]])
        for p in parts(s):
            if self.at in _loop_names(p):
                return self._places(p)
        raise self.refuse(f"'{self.at}' is among the loops that write it")

    def _require_unchanged(self, statements: tuple[Stmt, ...]) -> None:
        """Refuse if data that the loop nest reads changes before the place where the nest is to run."""
        read = {e.buffer for e in loads(statements[0])}
        changed = sorted(read & {w.buffer for s in statements[1:] for w in stores(s)})
        if changed:
            raise self.refuse(f"it is made from '{changed[0]}', which is written before it would be made")

    def _require_other_names(self, nest: Stmt, consumer: Stmt) -> None:
        """Refuse if a name that the loop nest declares means something else where it goes."""
        taken = sorted(_declared(nest) & _names_around(consumer, self.at))
        if taken:
            raise self.refuse(
                f"the name '{taken[0]}' means another loop around '{self.at}'", "rename it: split it by 1"
            )

    def _moved(self, s: For, context: Context, nest: Producer, around: tuple[For, ...]) -> Stmt:
        if any(loop.kind not in ("serial", "parallel") for loop in (*around, s)):
            raise self.refuse(f"the loop '{s.var}' has lanes, is unrolled or stands in one that is", "do it before")
        inside = context.with_loop(s.var, s.start, s.stop)
        box = bounding_box(accesses(s.body, self.name), inside)
        if box is None:
            raise self.refuse(f"its indices inside '{s.var}' are not affine with known signs")
        self._require_known(box)
        box = nest.covering(box, self.buffer.shape)
        extents = tuple(at_most(e, inside) for e in box.extents) if self.space in SMALL else box.extents
        if self.space in SMALL and not all(isinstance(e, Const) for e in extents):
            raise self.refuse("the size of its region is not constant", "compute it in heap, or further in")
        region = Box(box.low, extents)
        self._require_once((*around, s), region)
        buffer = Buffer(self.name, self.buffer.dtype, extents, self.space)
        if is_too_large(buffer):
            raise self.refuse(f"it is too large for the {self.space}", "compute it in heap, or further in")
        made = simplify_stmt(nest.restricted(region, inside), inside)
        body = redirected(s.body, self.name, self.name, region.low, inside)
        return replace(s, body=_within(body, buffer, made))

    def _require_known(self, box: Box) -> None:
        """Refuse if the position of the region depends on data that the loop may change."""
        constant = {i.name for i in self.kernel.inputs}
        loaded = {n.buffer for e in (*box.low, *box.extents) for n in walk_expr(e) if isinstance(n, Load)}
        if loaded - constant:
            raise self.refuse(f"which part is read depends on the values of '{min(loaded - constant)}'")

    def _require_once(self, loops: tuple[For, ...], region: Box) -> None:
        """Refuse if all iterations together compute more elements than there are, unless `again` allows it."""
        if self.again:
            return
        count = [constant_extent(loop) for loop in loops]
        count += [int(e.value) if isinstance(e, Const) else None for e in region.extents]
        total = [int(e.value) if isinstance(e, Const) else None for e in map(fold_all, self.buffer.shape)]
        if None in count or None in total:
            raise self.refuse("it is not known that nothing is computed twice", "allow it with again=true")
        made, needed = prod(n or 0 for n in count), prod(n or 0 for n in total)
        if made > needed:
            raise self.refuse(f"{made} elements would be computed, of {needed}", "allow it with again=true")


def _within(s: Stmt, buffer: Buffer, first: Stmt) -> Stmt:
    """Return `first` and then `s`, with `buffer` allocated around both, inside the outermost allocations of `s`."""
    if isinstance(s, Alloc):
        return b.alloc(s.buffers, _within(s.body, buffer, first))
    return b.alloc(buffer, b.block((first, s)))


def _declared(s: Stmt) -> set[str]:
    """Return the names of the loops and values in a statement."""
    return _loop_names(s) | {p.var.name for p in skeleton(s) if isinstance(p, Let)}


def _names_around(s: Stmt, name: str) -> set[str]:
    """Return the names of a loop, and of the loops and values around it."""
    own = {s.var} if isinstance(s, For) else {s.var.name} if isinstance(s, Let) else set()
    inner = () if own == {name} else (p for p in parts(s) if name in _loop_names(p))
    return own.union(*(_names_around(p, name) for p in inner))


def _loop_names(s: Stmt) -> set[str]:
    return {p.var for p in loops_in(s)}


def _loops_around(s: Stmt, name: str) -> tuple[For, ...]:
    """Return the loops around the loop of that name, outermost first."""
    if isinstance(s, For) and s.var == name:
        return ()
    inner = next(p for p in parts(s) if name in _loop_names(p))
    return ((s,) if isinstance(s, For) else ()) + _loops_around(inner, name)
