"""Symbolic specialisation: kernels whose sizes are open as far as a model's sizes vary, and no further.

A node's kernel takes the integers of a call: sizes, strides, values derived from them.  In one model most of them never
change, and most of those that do equal another one plus a number.  A kernel for all other calls has the former as
constants and the latter in terms of one parameter.  So its loops are almost those of a kernel for one call, and its
schedule is transferred from such a kernel (`transfer.py`).
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
"""Lower bounds that a kernel may assume of a parameter, tried in order.  Tiles should be full at least once."""

REMEMBERED = 32
"""Number of calls of a node that are remembered, to find constant differences between its integers."""


@dataclass(frozen=True)
class Opening:
    """The integers of a call that a kernel takes as parameters, and those derived from them.

    `free` are parameters, each with its least value (None: any); `told` are integers that equal a free one plus a
    number.  All others have their value in the call.  `like` are typical values of the free ones, for which the kernel
    is scheduled; they affect results only by rounding.
    """

    free: tuple[tuple[str, int | None], ...] = ()
    told: tuple[tuple[str, str, int], ...] = ()
    like: tuple[tuple[str, int], ...] = field(default=(), compare=False, repr=False)

    @property
    def names(self) -> frozenset[str]:
        """The integers whose values are not constants in the kernel."""
        return frozenset([name for name, _ in self.free] + [name for name, _, _ in self.told])

    def require(self, values: Mapping[str, float]) -> None:
        """Raise InternalError if the kernel is not for a call with these integers."""
        for name, least in self.free:
            if least is not None and values[name] < least:
                raise InternalError(f"a kernel for '{name}' of {least} and more is given {values[name]}")
        for name, other, offset in self.told:
            if values[name] != values[other] + offset:
                raise InternalError(f"a kernel for '{name}' of '{other}' + {offset} is given {values[name]}")


CLOSED = Opening()
"""The opening of a kernel for the sizes of one call."""


def opened(kernel: Kernel, values: Mapping[str, float], opening: Opening) -> Kernel:
    """Return the kernel of all calls that differ from these values only in the open integers.  Floats stay open."""
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
        """Note the integers of a call; of many calls the first and the last ones are kept."""
        self._calls = [call for call in self._calls if call != values] + [dict(values)]
        del self._calls[REMEMBERED // 2 : -REMEMBERED // 2]

    def opening(self) -> Opening:
        """Return the opening that covers the calls so far.  It holds for the call that was noted last."""
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
        # Odd sizes first: a schedule for a size that tiles do not divide rarely fits that size only.
        similar = [c for c in self._calls if [_least(c[name]) for name in free] == least]
        like = max(similar, key=lambda call: (sum(call[name] % 2 for name in free), sum(call[name] for name in free)))
        return Opening(tuple(zip(free, least, strict=True)), tuple(told), tuple((name, like[name]) for name in free))

    def _goes_with(self, name: str, other: str) -> bool:
        """Return True if an integer has always been another one plus the same number."""
        if (name, other) not in self._unlike and len({call[name] - call[other] for call in self._calls}) > 1:
            self._unlike.add((name, other))
        return (name, other) not in self._unlike


def _least(value: int) -> int | None:
    return next((least for least in LEAST if least <= value), None)
