"""List attributes read at indices: `perm[k]` in the mathematics reads an intermediate tensor that holds the list.

    let perm_list[e] = int64(if e < 2 then if e < 1 then perm[0] else perm[1] else perm[2]) where e < 3

So an element of a list is treated as an element of a tensor.  An integer in a subscript is examined before the
kernel runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from opgen.diagnostics import Span
from opgen.spec.model import model as m
from opgen.spec.model.literals import cast_leaves
from opgen.spec.resolve.scope import Readable, Scope


def table_of(scope: Scope, attr: m.Attr, span: Span) -> Readable:
    """Return the tensor that holds a list: int64, or floats of the op's first type variable (float64 if it has none).

    The tensor is added to `scope.tables`, whose definitions precede their readers.
    """
    if attr.name not in scope.tables:
        name = _untaken(scope, f"{attr.name}_list")
        indices = tuple(m.Index(_untaken(scope, f"{attr.name}_{letter}"), span) for letter in "ef"[: len(attr.shape)])
        dims = tuple(m.Number(size, span) for size in attr.shape)
        dtype = "int64" if attr.kind == "int" else next(iter(scope.type_variables), "float64")
        value = _chosen(attr, indices, (), span)
        value = m.Convert(dtype, value, span) if attr.kind == "int" else cast_leaves(value, dtype)
        ranges = tuple(m.IndexRange(i.name, d) for i, d in zip(indices, dims, strict=True))
        scope.tables[attr.name] = m.Definition(name, ranges, indices, value, dtype, dims, False, span)
        scope.tensors[name] = Readable(name, dtype, dims)
    return scope.tensors[scope.tables[attr.name].tensor]


def _untaken(scope: Scope, name: str) -> str:
    """Return a name that is free in the op."""
    plain = "_".join(part for part in name.split("_") if part)
    taken = {*scope.known(), *scope.later, *scope.later_tensors, *scope.poisoned, *scope.type_variables}
    found, count = plain, 2
    while found in taken:
        found, count = f"{plain}_{count}", count + 1
    return found


def _chosen(attr: m.Attr, indices: Sequence[m.Expr], at: tuple[int, ...], span: Span) -> m.Expr:
    """Return the element at `indices` below the positions `at`, selected by binary search."""
    if not indices:
        return m.AttrValue(attr.name, at, span)
    return _between(attr, indices, at, (0, attr.shape[len(at)]), span)


def _between(
    attr: m.Attr, indices: Sequence[m.Expr], at: tuple[int, ...], places: tuple[int, int], span: Span
) -> m.Expr:
    first, end = places
    if end - first == 1:
        return _chosen(attr, indices[1:], (*at, first), span)
    middle = (first + end) // 2
    below = m.Operation("<", indices[0], m.Number(middle, span), span)
    left, right = (_between(attr, indices, at, part, span) for part in ((first, middle), (middle, end)))
    return m.Conditional(below, left, right, span)
