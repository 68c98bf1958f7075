"""Parts of a kernel that a step concerns: the statements it names, and those that touch the same memory.

A kernel of a thousand loop nests takes ten thousand steps, and nearly every one concerns a nest or two.  Such a step,
or all steps of a nest, run on a kernel in which each run of other statements is one placeholder.  Afterwards the
statements are put back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opgen.loop import build as b
from opgen.loop.nodes import Alloc, Block, Buffer, Kernel, Prefetch, Stmt
from opgen.loop.walk import declared_in, holds_loop, mentioned, outermost, touched
from opgen.schedule.declaration import Step, form_of
from opgen.schedule.values import Buffered, Loop, Made

FEWEST = 12
"""Fewest statements of a kernel for which it pays to look for those that a step concerns."""


@dataclass(frozen=True)
class Focus:
    """The statements of a kernel that a step sees; the others are left out."""

    kernel: Kernel
    """With a mark for each run of statements that are left out."""
    left_out: Mapping[int, tuple[Stmt, ...]]
    """By the marks' identities."""

    def put_back(self, kernel: Kernel) -> Kernel | None:
        """Return the changed kernel with the left-out statements put back; None if their surroundings do not match."""
        before, after = self.kernel, kernel
        if any(getattr(before, f) != getattr(after, f) for f in ("inputs", "outputs", "parameters", "assumptions")):
            return None
        buffers, statements = outermost(after.body)
        marks = [id(s) for s in statements if id(s) in self.left_out]
        if marks != list(self.left_out) or not self._is_fresh(before.body, after.body):
            return None
        whole = b.block(p for s in statements for p in self.left_out.get(id(s), (s,)))
        return dataclasses.replace(after, body=_around(buffers, whole))

    def holds_all_of(self, step: Step) -> bool:
        """Return True if a step does not concern what was left out.

        A step that names a loop concerns the statements in that loop.  One that names only buffers concerns all
        statements that touch them.
        """
        if step.moves_past:
            return False
        form = form_of(type(step))
        if any(form.names(step, Loop)):
            return True
        buffers = frozenset(form.names(step, Buffered))
        return all(buffers.isdisjoint(touched(s)) for run in self.left_out.values() for s in run)

    def _is_fresh(self, before: Stmt, after: Stmt) -> bool:
        """Return True if no new name is already declared in the statements left out."""
        new = declared_in(after) - declared_in(before)
        return not new or all(new.isdisjoint(declared_in(s)) for run in self.left_out.values() for s in run)


def focus(kernel: Kernel, names: Iterable[str]) -> Focus | None:
    """Return the focus on statements with some names, and on those that touch the same local buffers or outputs.

    None if there is little to leave out.
    """
    buffers, statements = outermost(kernel.body)
    if len(statements) < FEWEST:
        return None
    wanted = frozenset(names)
    named = [s for s in statements if not wanted.isdisjoint(mentioned(s))]
    if not named:
        return None
    shared = frozenset().union(*map(touched, named)).difference(i.name for i in kernel.inputs)
    kept = {id(s) for s in named} | {id(s) for s in statements if not shared.isdisjoint(touched(s))}
    return _focused(kernel, buffers, statements, kept)


def focus_on_loops(kernel: Kernel, names: Iterable[str]) -> Kernel:
    """Return the kernel with only the statements that hold one of some loops, for inspection."""
    buffers, statements = outermost(kernel.body)
    if len(statements) < FEWEST:
        return kernel
    kept = {id(s) for s in statements if any(holds_loop(s, n) for n in names)}
    return _focused(kernel, buffers, statements, kept).kernel if kept else kernel


def _focused(kernel: Kernel, buffers: tuple[Buffer, ...], statements: Sequence[Stmt], kept: set[int]) -> Focus:
    left_out: dict[int, tuple[Stmt, ...]] = {}
    seen: list[Stmt] = []
    run: list[Stmt] = []
    for s in (*statements, None):
        if s is not None and id(s) not in kept:
            run.append(s)
            continue
        if run:
            seen.append(Prefetch("", ()))
            left_out[id(seen[-1])] = tuple(run)
            run = []
        seen += [] if s is None else [s]
    return Focus(dataclasses.replace(kernel, body=_around(buffers, Block(tuple(seen)))), left_out)


def _around(buffers: tuple[Buffer, ...], body: Stmt) -> Stmt:
    return Alloc(buffers, body) if buffers else body


def run(step: Step, kernel: Kernel) -> Kernel:
    """Return the kernel after a step; raises ScheduleError."""
    if step.moves_past:
        return step.run(kernel)
    found = focus(kernel, form_of(type(step)).names(step, Loop | Buffered | Made))
    after = None if found is None else found.put_back(step.run(found.kernel))
    return step.run(kernel) if after is None else after
