"""Kernels whose sizes are open as far as a model's sizes vary, and no further.

What a node's kernel could be given are the integers of a call: sizes, strides, what follows from them.  In one model
most of them never change, and of those that do most are another one plus a number.  A kernel for all other calls has
the former in place and the latter in terms of one parameter, so that its loops are almost those of a kernel for one
call; its schedule is that of such a kernel, carried over (`transfer.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from opgen.diagnostics import InternalError
from opgen.loop import build as b
from opgen.loop.bind import bind, in_terms
from opgen.loop.nodes import Kernel
from opgen.passes.simplify import simplify

LEAST = (64, 16, 0)
"""What a kernel may count on of a parameter: that it is at least one of these.  Tiles want to be filled once."""

REMEMBERED = 32
"""How many calls of a node are remembered, to see what stays the same between its integers."""


@dataclass(frozen=True)
class Opening:
    """Which integers of a call a kernel is given, in the place of its own.

    `free` are parameters, each with the least value that it may have (None: any); `told` are other integers: each is a
    free one plus a number.  All else has the value that it has in the call.  `like` are values of the free ones in a
    typical call, for which the kernel is scheduled; no result depends on them but by roundings.
    """

    free: tuple[tuple[str, int | None], ...] = ()
    told: tuple[tuple[str, str, int], ...] = ()
    like: tuple[tuple[str, int], ...] = field(default=(), compare=False, repr=False)

    @property
    def names(self) -> frozenset[str]:
        """The integers whose values the kernel has not in it."""
        return frozenset([name for name, _ in self.free] + [name for name, _, _ in self.told])

    def require(self, values: Mapping[str, float]) -> None:
        """Raises InternalError if the kernel is not for a call with these integers."""
        for name, least in self.free:
            if least is not None and values[name] < least:
                raise InternalError(f"a kernel for '{name}' of {least} and more is given {values[name]}")
        for name, other, offset in self.told:
            if values[name] != values[other] + offset:
                raise InternalError(f"a kernel for '{name}' of '{other}' + {offset} is given {values[name]}")


CLOSED = Opening()
"""Of a kernel for the sizes of one call."""


def opened(kernel: Kernel, values: Mapping[str, float], opening: Opening) -> Kernel:
    """The kernel of all calls that differ from one with these integers in what is open alone.  Floats stay open."""
    kept = {p.name: values[p.name] for p in kernel.parameters if not p.dtype.is_float and p.name not in opening.names}
    told = {name: b.add(b.var(other), offset) for name, other, offset in opening.told}
    least = {name: least for name, least in opening.free if least is not None}
    return simplify(in_terms(bind(kernel, kept), told, least))


class History:
    """The integers of one node in the calls so far."""

    def __init__(self) -> None:
        self._calls: list[dict[str, int]] = []
        self._unlike: set[tuple[str, str]] = set()

    def add(self, values: Mapping[str, int]) -> None:
        """Note the integers of a call; of many calls the first and the last ones."""
        self._calls = [call for call in self._calls if call != values] + [dict(values)]
        del self._calls[REMEMBERED // 2 : -REMEMBERED // 2]

    def opening(self) -> Opening:
        """What has varied.  It holds for the call that was noted last."""
        last = self._calls[-1]
        free: list[str] = []
        told: list[tuple[str, str, int]] = []
        for name in last:
            if all(call[name] == last[name] for call in self._calls):
                continue
            other = next((o for o in free if self._goes_with(name, o)), None)
            if other is None:
                free.append(name)
            else:
                told.append((name, other, last[name] - last[other]))
        least = [_least(last[name]) for name in free]
        # Odd sizes first: the schedule of one that tiles do not divide is rarely for just one size.
        similar = [c for c in self._calls if [_least(c[name]) for name in free] == least]
        like = max(similar, key=lambda call: (sum(call[name] % 2 for name in free), sum(call[name] for name in free)))
        return Opening(tuple(zip(free, least, strict=True)), tuple(told), tuple((name, like[name]) for name in free))

    def _goes_with(self, name: str, other: str) -> bool:
        """Whether an integer has always been another one plus the same number."""
        if (name, other) not in self._unlike and len({call[name] - call[other] for call in self._calls}) > 1:
            self._unlike.add((name, other))
        return (name, other) not in self._unlike


def _least(value: int) -> int | None:
    return next((least for least in LEAST if least <= value), None)
