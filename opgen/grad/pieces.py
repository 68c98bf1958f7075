"""Contributions of reads to an adjoint, before their equations are solved, and the names of their indices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from opgen.grad.cases import cases
from opgen.spec.model.model import Expr, Index, IndexRange, OpSpec, Read
from opgen.spec.model.walk import index_names, reads


@dataclass(frozen=True)
class Piece:
    """A contribution before its equations are solved.

    It is `weight` summed over `ranges` where `conditions` hold and the reads `guards` are inside.
    """

    read: Read
    weight: Expr
    ranges: tuple[IndexRange, ...]
    conditions: tuple[Expr, ...]
    guards: tuple[Read, ...]
    preferred: frozenset[str]


def fixed_axes(piece: Piece, actual: Sequence[Expr | None]) -> list[int]:
    """Return the axes, without stretching ones, along which all iterations read the same element."""
    names = {r.name for r in piece.ranges}
    subscripts = enumerate(zip(piece.read.indices, actual, strict=True))
    return [axis for axis, (s, stretched) in subscripts if stretched is None and not index_names(s) & names]


def cases_of(piece: Piece) -> Iterator[Piece]:
    """Split a piece by the cases of its read."""
    read = piece.read
    for case, conditions in cases(read):
        guards = tuple(case if g == read else g for g in piece.guards)
        yield replace(piece, read=case, conditions=(*piece.conditions, *conditions), guards=guards)


def contiguous_last(ranges: tuple[IndexRange, ...], weight: Expr) -> tuple[IndexRange, ...]:
    """Order the indices of a sum with those that only run along last dimensions innermost.

    The order is part of the meaning.
    """
    walked: set[str] = set()
    elsewhere: set[str] = set()
    for read in reads(weight):
        for axis, subscript in enumerate(read.indices):
            (walked if axis == len(read.indices) - 1 else elsewhere).update(index_names(subscript))
    last = walked - elsewhere - {n for r in ranges for n in index_names(r.extent)}
    return tuple(sorted(ranges, key=lambda r: r.name in last))


def all_names(piece: Piece) -> set[str]:
    return {r.name for r in piece.ranges} | index_names(piece.weight)


def letter(op: OpSpec, tensor: str, axis: int) -> str:
    """Return a name for an index along a dimension: the layout's letter, or `z0`, `z1`, ..."""
    for t in op.tensors:
        if t.name == tensor and t.layout is not None:
            return op.attr(t.layout).values[0][axis].lower()
    return f"z{axis}"


def shown_names(hidden: list[str], taken: Collection[str]) -> dict[str, Expr]:
    """Return names for summed indices: those of the forward mathematics if they are free."""
    result: dict[str, Expr] = {}
    used = set(taken)
    for name in hidden:
        candidate = name.replace("'", "")
        while candidate in used:
            candidate += "_"
        used.add(candidate)
        result[name] = Index(candidate)
    return result


def name_of(e: Expr) -> str:
    assert isinstance(e, Index)
    return e.name
