"""Records of runs: each call, and its kernels with their times.

    with opgen.record() as calls:
        y = nn_ops.op(x)
    print(calls)

A block records the calls of its context (`contextvars`), also those of threads that are started with a copy of it.
While any block is open, calls of all threads take a slower path that notifies this module.  Otherwise a call does not
check for records at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import overload

from opgen.diagnostics import UserError
from opgen.runtime.call.call import Typed, Value
from opgen.runtime.kernels import launcher
from opgen.runtime.kernels.ran import KernelRun


@dataclass(frozen=True, slots=True)
class CallRun:
    """A call that ran: of an op, by one kernel, or of a model, with a kernel for each node that is not a view.

    `op` is the op's name or the model's; `attributes` are complete and in plain values.  `seconds` is the time of the
    kernels, excluding checks and memory for results.
    """

    op: str
    tensors: tuple[Typed, ...]
    attributes: Mapping[str, Value | str]
    results: tuple[Typed, ...]
    device: str
    seconds: float
    kernels: tuple[KernelRun, ...]

    def __str__(self) -> str:
        return _table([self])


class Calls(Sequence[CallRun]):
    """The calls of a block, in the order in which they ended; `print` shows a table."""

    def __init__(self, outer: Calls | None = None) -> None:
        self._outer = outer
        self._found: list[CallRun] = []

    @overload
    def __getitem__(self, index: int) -> CallRun: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CallRun]: ...
    def __getitem__(self, index: int | slice) -> CallRun | Sequence[CallRun]:
        return self._found[index]

    def __len__(self) -> int:
        return len(self._found)

    def __str__(self) -> str:
        return _table(self._found)

    def __repr__(self) -> str:
        return f"<{len(self)} recorded call{'' if len(self) == 1 else 's'}>"

    @property
    def kernels(self) -> tuple[KernelRun, ...]:
        """All runs of kernels."""
        return tuple(k for call in self._found for k in call.kernels)

    def add(self, call: CallRun) -> None:
        """Record a call, also for the blocks around this one."""
        _last.set(call)
        for calls in self.around():
            calls._found.append(call)

    def around(self) -> Iterator[Calls]:
        """Yield this block, and those around it."""
        calls: Calls | None = self
        while calls is not None:
            yield calls
            calls = calls._outer


_block: ContextVar[Calls | None] = ContextVar("opgen_record", default=None)
_last: ContextVar[CallRun | None] = ContextVar("opgen_last_call", default=None)

recording = _block.get
"""The calls of the innermost open block; None outside of blocks."""


def _after_fork() -> None:
    """Forget the blocks of threads that a forked child does not have."""
    calls = recording()
    launcher.keep(() if calls is None else calls.around())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def record() -> Iterator[Calls]:
    """List the calls of generated functions and models inside, kernel by kernel, with times.

    A recorded run of a model goes through an entry of its own, which notes the time at each node; making it takes some
    milliseconds at a program's first recorded run.
    """
    calls = Calls(_block.get())
    token = _block.set(calls)
    launcher.hold(calls)
    try:
        yield calls
    finally:
        launcher.release(calls)
        with suppress(ValueError):  # a generator may close the block in another context
            _block.reset(token)


def last_call() -> CallRun:
    """Return the last call that was recorded in this context.  Raises UserError if none was."""
    found = _last.get()
    if found is None:
        raise UserError("no call has been recorded: make it inside `with opgen.record():`")
    return found


# Tables ----------------------------------------------------------------------------------------------------------

_HEAD = ("op", "algorithm", "us", "threads", "made for", "from", "kernel", "code", "tensors")
_RIGHT = ("us", "threads")


def _table(calls: Sequence[CallRun]) -> str:
    """Return calls as text: a row for each, and below a model's the rows of its nodes."""
    rows = [_HEAD, *(row for call in calls for row in _rows(call))]
    widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD))]
    lines = []
    for row in rows:
        cells = zip(_HEAD, row, widths, strict=True)
        lines.append("  ".join(c.rjust(w) if name in _RIGHT else c.ljust(w) for name, c, w in cells).rstrip())
    return "\n".join(lines)


def _rows(call: CallRun) -> Iterator[tuple[str, ...]]:
    taken = ", ".join(f"{t.name} {t}" for t in call.tensors)
    if len(call.kernels) == 1 and call.kernels[0].node is None:
        yield (call.op, *_cells(call.kernels[0], call.seconds), taken)
        return
    yield (
        call.op,
        "",
        _microseconds(call.seconds),
        "",
        "",
        "",
        f"{len(call.kernels)} kernel{'' if len(call.kernels) == 1 else 's'}",
        "",
        taken,
    )
    for k in call.kernels:
        yield (f"  {k.op}", *_cells(k, k.seconds), "" if k.node is None else f"node {k.node}")


def _cells(k: KernelRun, seconds: float | None) -> tuple[str, ...]:
    made_for = "these sizes" if k.specialized else "any sizes"
    origin = "built" if k.built else "cache"
    return (k.algorithm or "", _microseconds(seconds), str(k.threads), made_for, origin, k.kernel, k.code_hash[:12])


def _microseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{1e6 * seconds:.1f}"
