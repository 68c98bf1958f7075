"""Reads of dimensions that stretch: their size must not depend on the input that names it.

`input c: T[m | 1]` counts as if the caller had repeated a size of 1 to m.  If only stretching dimensions determine m,
it is the largest of their sizes.  An index that ranges over something else then leaves their extent open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opgen.spec.model import model as m
from opgen.spec.model.polynomial import same
from opgen.spec.model.walk import index_names, operands
from opgen.spec.resolve.dimensions import told_only_by_stretching
from opgen.spec.resolve.inside import inside
from opgen.spec.resolve.mathematics import show
from opgen.spec.syntax.report import Report


def check_stretched(report: Report, op: m.OpSpec, definitions: Iterable[m.Definition]) -> None:
    """Note reads along dimensions sized only by stretching inputs, at indices that range over other dimensions."""
    lets = {n for c in op.checks if isinstance(c, m.ShapeLet) for n in c.names}
    loose = told_only_by_stretching(op.inputs, lets)
    dims = {t.name: t.dims for t in op.tensors}
    for definition in definitions:
        ranges = {r.name: r.extent for r in definition.indices}
        for read, known in _reads(definition.value, ranges):
            for subscript, dim in zip(read.indices, dims.get(read.tensor, ()), strict=False):
                if dim.broadcast and dim.factors[0] in loose and not _spans(subscript, dim.size, known):
                    _note(report, read, dim, subscript, known)


def _spans(subscript: m.Expr, size: m.Expr, ranges: dict[str, m.Expr]) -> bool:
    """True if a subscript is proved inside, or contains an index that ranges over the dimension."""
    moves = any(same(ranges[n], size) for n in index_names(subscript) if n in ranges)
    return moves or inside(subscript, size, ranges, lambda atom: 0 if isinstance(atom, m.Symbol) else None)


def _note(report: Report, read: m.Read, dim: m.Dimension, subscript: m.Expr, ranges: dict[str, m.Expr]) -> None:
    name = dim.factors[0]
    message = f"how far '{read.tensor}' stretches is not told: only inputs that stretch have the dimension '{name}'"
    extent = ranges.get(subscript.name) if isinstance(subscript, m.Index) else None
    named = isinstance(extent, m.Symbol)
    help = f"write {show(extent)} | 1" if extent is not None and named else f"let another input tell '{name}'"
    if read.span is not None:
        report.add("S055", message, read.span, help)


def _reads(e: m.Expr, ranges: dict[str, m.Expr]) -> Iterator[tuple[m.Read, dict[str, m.Expr]]]:
    """Yield every read, with the ranges of the indices around it."""
    if isinstance(e, m.Read):
        yield e, ranges
    if isinstance(e, m.Reduce):
        ranges = ranges | {r.name: r.extent for r in e.indices}
    for o in operands(e):
        yield from _reads(o, ranges)
