"""Inlining of intermediates into their readers: recomputed wherever they are read, and never stored.

It changes no bit.  A term of a reduction that reads outside the intermediate is left out.  So is a term whose value
reads an input at the same place along a dimension of the same size; there an intermediate may be inlined.  A product
that would become a term of a sum is rounded before it is added, as the intermediate was.  A reduction stays as it is if
its terms would no longer depend on one of its indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from opgen.graph.fusion.rewrite import with_children
from opgen.lower.repeated import always
from opgen.spec.model import model as m
from opgen.spec.model.polynomial import same
from opgen.spec.model.walk import index_names, operands, substitute_indices

Size = Callable[[str, int], m.Expr | None]
"""The size of a dimension of a tensor; None if it is unknown."""


def put_in(reader: m.Definition, let: m.Definition, size: Size) -> m.Definition:
    """Return the reader with its reads of an intermediate replaced by the intermediate's value, where that is legal.

    The intermediate has no reductions.
    """
    guarded = [_guards(let, axis, size) for axis in range(len(let.dims))]
    inner = _Inner(let, guarded)
    value = inner.within(reader.value, {r.name: r.extent for r in reader.indices}, False)
    return replace(reader, value=value)


def _guards(let: m.Definition, axis: int, size: Size) -> bool:
    """Return whether the value always reads some tensor at the same place along a dimension of the same size."""
    place, extent = let.subscripts[axis], let.dims[axis]
    return any(
        isinstance(n, m.Read)
        and n.outside is None
        and any(index == place and _is(size(n.tensor, at), extent) for at, index in enumerate(n.indices))
        for n in always(let.value)
    )


def _is(size: m.Expr | None, extent: m.Expr) -> bool:
    return size is not None and same(size, extent)


class _Inner:
    def __init__(self, let: m.Definition, guarded: list[bool]) -> None:
        self.let = let
        self.guarded = guarded

    def within(self, e: m.Expr, ranges: Mapping[str, m.Expr], summed: bool) -> m.Expr:
        """Return an expression under indices of these ranges, in a reduction or not."""
        if isinstance(e, m.Reduce):
            ranges, summed = {**ranges, **{r.name: r.extent for r in e.indices}}, True
        new = with_children(e, lambda o: self.within(o, ranges, summed))
        if isinstance(new, m.Reduce) and isinstance(e, m.Reduce):
            used = {n for o in operands(new) for n in index_names(o)}
            return self._rounded(new, e) if used >= {r.name for r in new.indices} else e
        if not isinstance(new, m.Read) or new.tensor != self.let.tensor or new.outside is not None:
            return new
        for subscript, extent, guarded in zip(new.indices, self.let.dims, self.guarded, strict=True):
            runs_over = isinstance(subscript, m.Index) and same(ranges[subscript.name], extent)
            if not runs_over and not (summed and guarded):
                return new
        names = [s.name for s in self.let.subscripts if isinstance(s, m.Index)]
        return substitute_indices(self.let.value, dict(zip(names, new.indices, strict=True)))

    def _rounded(self, new: m.Reduce, old: m.Reduce) -> m.Reduce:
        """Return a sum that rounds its terms if they became products, which are otherwise added without rounding."""
        was = isinstance(old.body, m.Operation) and old.body.op == "*"
        product = isinstance(new.body, m.Operation) and new.body.op == "*"
        if new.kind != "sum" or was or not product:
            return new
        return replace(new, body=m.Convert(self.let.dtype, new.body))
