"""Ranks of packs of dimensions, determined by the ranks of a call's arguments.

A rule `rank p = ...` comes first.  An input with a single open pack determines its rank.  If there are several, packs
with a bound (`rank p <= 1`) are filled first, from the left.  A stretching pack (`p... | 1`) takes its rank from an
input in which it does not stretch, else the largest one among the inputs that have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from opgen.spec.call.arguments import CallError
from opgen.spec.generic.trees import names_in
from opgen.spec.generic.values import Mistake
from opgen.spec.syntax import nodes as s


@dataclass(frozen=True)
class Given:
    """An input of a call: its name, its declared dimensions, and its rank."""

    name: str
    dims: tuple[s.Dim, ...]
    rank: int


Told = Callable[[s.RankRule], "int | None"]
Length = Callable[[s.Expression], "int | None"]


class RankSolver:
    """Solver for the ranks of packs; `ranks` holds the results.

    `told` evaluates a rule, or returns None while it depends on an unknown rank; `length` does the same for a pattern
    of dimensions.
    """

    def __init__(
        self, op: str, given: Sequence[Given], rules: Sequence[s.RankRule], told: Told, length: Length
    ) -> None:
        self.op, self.given, self.told, self.length = op, given, told, length
        self.most = {r.pack.name: int(r.most) for r in rules if r.most is not None}
        self.rules = [r for r in rules if r.value is not None]
        self.ranks: dict[str, int] = {}
        self.packs = {p for g in given for p in packs_in(g.dims)} | {r.pack.name for r in rules}

    def solve(self) -> None:
        """Fill `ranks`; raise CallError, naming an input whose rank does not fit."""
        while self._rule() or self._firm() or self._bounded() or self._stretched():
            pass
        for name, most in self.most.items():
            if self.ranks.get(name, 0) > most:
                blamed = next(g for g in self.given if any(self._pack(d) == name for d in g.dims))
                raise self._wrong(blamed, f"at most {self._others(blamed, name) + most}")
        for given in self.given:
            self._verify(given)

    def _rule(self) -> bool:
        for rule in self.rules:
            if rule.pack.name not in self.ranks:
                rank = self.told(rule)
                if rank is not None:
                    self.ranks[rule.pack.name] = rank
                    return True
        return False

    # Equations --------------------------------------------------------------------------------------

    def _unknown(self, given: Given) -> list[s.Dim]:
        unknown = [d for d in given.dims if isinstance(d.size, s.Expansion) and self._length(d) is None]
        for dim in unknown:
            if self._pack(dim) in self.ranks or not self._pack(dim):
                raise Mistake("nothing tells how many dimensions this stands for", dim.span)
        return unknown

    def _length(self, dim: s.Dim) -> int | None:
        return self.length(dim.size.pattern) if isinstance(dim.size, s.Expansion) else 1

    def _known(self, given: Given) -> int:
        """Return the number of known dimensions of an input; stretching packs count as 0."""
        return sum(self._length(d) or 0 for d in given.dims if not _stretches(d))

    def _firm(self) -> bool:
        """Solve for a pack that does not stretch, from an input in which everything else is known."""
        for given in self.given:
            unknown = self._unknown(given)
            if len(unknown) == 1 and not any(map(_stretches, given.dims)):
                self._set(unknown[0], given.rank - self._known(given), given)
                return True
        return False

    def _bounded(self) -> bool:
        for given in self.given:
            for dim in self._unknown(given):
                name = self._pack(dim)
                if name in self.most and not _stretches(dim):
                    self.ranks[name] = max(0, min(self.most[name], given.rank - self._known(given)))
                    return True
        return False

    def _stretched(self) -> bool:
        """Solve for a stretching pack: the largest number of dimensions that any input has for it."""
        waiting = {self._pack(d) for g in self.given for d in self._unknown(g) if not _stretches(d)}
        for given in self.given:
            for dim in self._unknown(given):
                if _stretches(dim) and self._pack(dim) not in waiting:
                    name = self._pack(dim)
                    reach = [g.rank - self._known(g) for g in self.given if self._has_stretching(g, name)]
                    self.ranks[name] = max(0, *reach)
                    return True
        return False

    def _has_stretching(self, given: Given, name: str) -> bool:
        return any(_stretches(d) and self._pack(d) == name for d in given.dims)

    def _pack(self, dim: s.Dim) -> str:
        """Return the pack of an expanded dimension: the first pack named in it."""
        return next((n for n in names_in(dim.size) if n in self.packs), "")

    def _set(self, dim: s.Dim, rank: int, given: Given) -> None:
        if rank < 0:
            raise self._wrong(given, f"at least {self._known(given)}")
        self.ranks[self._pack(dim)] = rank

    # Whether all fits -------------------------------------------------------------------------------

    def _verify(self, given: Given) -> None:
        unknown = self._unknown(given)
        if unknown:
            raise Mistake(f"nothing tells the rank of '{self._pack(unknown[0])}'", unknown[0].span)
        known = self._known(given)
        stretching = sum(self._length(d) or 0 for d in given.dims if _stretches(d))
        if any(map(_stretches, given.dims)):
            if given.rank < known:
                raise self._wrong(given, f"at least {known}")
            if given.rank > known + stretching:
                raise self._wrong(given, f"at most {known + stretching}")
        elif given.rank != sum(self._length(d) or 0 for d in given.dims):
            raise self._wrong(given, str(sum(self._length(d) or 0 for d in given.dims)))

    def _others(self, given: Given, name: str) -> int:
        return sum(self._length(d) or 0 for d in given.dims if self._pack(d) != name)

    def _wrong(self, given: Given, rank: str) -> CallError:
        return CallError(self.op, given.name, f"a tensor of rank {rank}", f"rank {given.rank}")


def _stretches(dim: s.Dim) -> bool:
    return dim.broadcast is not None and isinstance(dim.size, s.Expansion)


def packs_in(dims: Iterable[s.Dim]) -> Iterator[str]:
    """Yield the packs that are dimensions by themselves, `size...`."""
    for dim in dims:
        if isinstance(dim.size, s.Expansion) and isinstance(dim.size.pattern, s.Named):
            yield dim.size.pattern.name
