"""Window accesses: pairs of a loop of results and a loop of the reduction that share an index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from opgen.loop.nodes import Binary, Const, Expr, Load
from opgen.loop.walk import free_vars
from opgen.schedule.auto.nests import Nest, coefficient
from opgen.schedule.cost.sizes import elements_of


@dataclass(frozen=True)
class Walk:
    """Window access: an index `step*result + apart*term + ...` of `load`, or such an index divided.

    Results that differ in `result` read the elements that their neighbours read with another `term`.
    """

    load: Load
    result: str
    term: str
    step: int
    apart: int

    @property
    def factor(self) -> int | None:
        """Return the decrease of `term` for each step of `result` that reads the same element; None if it is
        fractional.
        """
        return self.step // self.apart if self.step % self.apart == 0 else None

    def reach(self, terms: int) -> int:
        """Return the number of results at either end whose terms leave the input, at least 1, if they are centred."""
        return max(1, (terms - 1) * abs(self.apart) // (2 * abs(self.step)))

    def reach_of_terms(self, results: int) -> int:
        """Return the number of terms at either end of a sum that lead out of the input, at least 1."""
        return max(1, (results - 1) * abs(self.step) // (2 * abs(self.apart)))

    def stride(self, nest: Nest) -> int:
        """Return the bytes from one element along this index to the next."""
        at = next(d for d, index in enumerate(self.load.indices) if self.result in free_vars(index))
        return elements_of(nest.shapes[self.load.buffer][at + 1 :], 1) * self.load.dtype.bytes

    def places(self, results: int, terms: int, phases: int = 1) -> int:
        """Return the number of distinct elements that `results` and `terms` read along this index."""
        rows, common = results * phases, gcd(self.step, self.apart)
        step, apart = abs(self.step) // common, abs(self.apart) // common
        again = max(0, rows - apart) * max(0, terms - step)  # `apart` results on is what is read `step` terms on
        return -(-(rows * terms - again) // phases)


def walks(nest: Nest) -> list[Walk]:
    """Return the window accesses of a nest's loads, outer dimensions first, each pair of loops once."""
    found: dict[tuple[str, str], Walk] = {}
    terms = [s.var for s in nest.inner_loops]
    for load in nest.outside_loads:
        for index in load.indices:
            walk = _walk(load, _undivided(index), nest.names, terms)
            if walk is not None:
                found.setdefault((walk.result, walk.term), walk)
    return list(found.values())


def _undivided(e: Expr) -> Expr:
    return e.left if isinstance(e, Binary) and e.op == "floordiv" and isinstance(e.right, Const) else e


def _walk(load: Load, index: Expr, results: Sequence[str], terms: Sequence[str]) -> Walk | None:
    names = free_vars(index)
    result, term = [n for n in results if n in names], [n for n in terms if n in names]
    if len(result) != 1 or len(term) != 1:
        return None
    step, apart = coefficient(index, result[0]), coefficient(index, term[0])
    return Walk(load, result[0], term[0], step, apart) if step and apart else None
