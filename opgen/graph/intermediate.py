"""Outputs of ops as intermediate tensors of a larger one.

A `let` has single indices on its left side.  An output whose left side composes indices (`y[g * K + k]`) becomes an
intermediate with an axis for each of them, and its readers read it at these: an index that runs over the whole
dimension is taken apart into the digits, any other subscript into quotient and remainder.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from opgen.graph.inline import Size, put_in
from opgen.graph.rewrite import in_order, indices_in, product_of
from opgen.spec import model as m
from opgen.spec.polynomial import same
from opgen.spec.walk import operands, subexpressions, substitute_indices, transform

Digits = tuple[m.IndexRange, ...]
"""The indices that a dimension is composed of, most significant first."""


class Intermediates:
    """The definitions of a whole, built one after the other.

    `between` are tensors that are outputs of parts and intermediates of the whole; `copies` says for some of them
    which output has the same elements.  The values of `inlined` ones stand wherever they are read; `size` gives the
    sizes of the whole's inputs.
    """

    def __init__(
        self, between: Collection[str], copies: Mapping[str, str], inlined: Collection[str], size: Size
    ) -> None:
        self.definitions: list[m.Definition] = []
        self._inlined = inlined
        self._size = size
        self._between = between
        self._copies = copies
        self._digits: dict[str, tuple[Digits, ...]] = {}

    def add(self, d: m.Definition) -> None:
        """Takes in the next definition of a part."""
        d = self._reading(d)
        for let in self.definitions:
            if let.tensor in self._inlined and not any(isinstance(n, m.Reduce) for n in subexpressions(let.value)):
                d = put_in(d, let, self._size_of)
        if d.is_output and d.tensor not in self._between:
            self.definitions.append(d)
            return
        let = self._let(d)
        self.definitions.append(let)
        if d.tensor in self._copies:
            value = m.Read(d.tensor, tuple(m.Index(r.name) for r in let.indices))
            self.definitions.append(replace(d, tensor=self._copies[d.tensor], value=value))

    def _size_of(self, tensor: str, axis: int) -> m.Expr | None:
        let = next((d for d in self.definitions if d.tensor == tensor), None)
        return self._size(tensor, axis) if let is None else let.dims[axis]

    def _let(self, d: m.Definition) -> m.Definition:
        """A definition as that of an intermediate."""
        if not all(isinstance(s, m.Index) for s in d.subscripts):
            extents = {r.name: r for r in d.indices}
            self._digits[d.tensor] = tuple(tuple(extents[n] for n in indices_in((s,))) for s in d.subscripts)
        subscripts = tuple(m.Index(r.name) for r in d.indices)
        value = _typed(d.value, d.dtype)
        dims = tuple(r.extent for r in d.indices)
        return replace(d, subscripts=subscripts, dims=dims, is_output=False, value=value)

    def _reading(self, d: m.Definition) -> m.Definition:
        """A definition that reads intermediates at the digits of their dimensions."""
        for read in [n for n in subexpressions(d.value) if isinstance(n, m.Read) and n.tensor in self._digits]:
            for subscript, digits in zip(read.indices, self._digits[read.tensor], strict=True):
                if len(digits) > 1 and isinstance(subscript, m.Index):
                    d = _apart(d, subscript.name, digits)
        return replace(d, value=transform(self._at_digits, d.value))

    def _at_digits(self, e: m.Expr) -> m.Expr:
        if not isinstance(e, m.Read) or e.tensor not in self._digits:
            return e
        indices: list[m.Expr] = []
        for subscript, digits in zip(e.indices, self._digits[e.tensor], strict=True):
            indices += _digits_of(subscript, digits)
        outside = e.outside
        if outside is None and any(isinstance(i, m.Operation) for i in indices):
            # Quotients are inside because the subscript is, which is not proved where its size has a name of its own.
            outside = m.Number(0)
        return replace(e, indices=tuple(indices), outside=outside)


def _digits_of(subscript: m.Expr, digits: Digits) -> list[m.Expr]:
    """The digits of a subscript."""
    names = list(indices_in((subscript,)))
    if len(names) == len(digits) and subscript == _composite(tuple(map(m.Index, names)), digits):
        return [m.Index(n) for n in names]
    found: list[m.Expr] = []
    for place in range(len(digits)):
        below = [r.extent for r in digits[place + 1 :]]
        quotient = m.Operation("//", subscript, product_of(below)) if below else subscript
        found.append(m.Operation("%", quotient, digits[place].extent) if place else quotient)
    return found


def _composite(indices: tuple[m.Expr, ...], digits: Digits) -> m.Expr:
    """`g * K + k`"""
    whole: m.Expr = indices[0]
    for index, digit in zip(indices[1:], digits[1:], strict=True):
        whole = m.Operation("+", m.Operation("*", whole, digit.extent), index)
    return whole


def _apart(d: m.Definition, name: str, digits: Digits) -> m.Definition:
    """A definition with an index that runs over all of a composed dimension taken apart into digits."""
    taken = {r.name for r in d.indices} | set(indices_in((d.value,)))
    names: list[str] = []
    for digit in digits:
        new = digit.name
        while new in taken:
            new += "_2"
        taken.add(new)
        names.append(new)
    ranges = tuple(m.IndexRange(n, r.extent) for n, r in zip(names, digits, strict=True))
    whole = product_of([r.extent for r in digits])
    composite = _composite(tuple(map(m.Index, names)), ranges)

    def split(given: tuple[m.IndexRange, ...]) -> tuple[m.IndexRange, ...] | None:
        fits = any(r.name == name and same(r.extent, whole) for r in given)
        return tuple(p for r in given for p in (ranges if r.name == name else (r,))) if fits else None

    own = split(d.indices)
    if own is not None:
        put = {name: composite}
        subscripts = tuple(substitute_indices(s, put) for s in d.subscripts)
        return replace(
            d, indices=in_order(own, subscripts), subscripts=subscripts, value=substitute_indices(d.value, put)
        )

    def within(e: m.Expr) -> m.Expr:
        found = split(e.indices) if isinstance(e, m.Reduce) else None
        if not isinstance(e, m.Reduce) or found is None:
            return e
        condition = None if e.condition is None else substitute_indices(e.condition, {name: composite})
        if isinstance(e, m.Scatter):
            e = replace(e, at=tuple(substitute_indices(i, {name: composite}) for i in e.at))
        return replace(e, indices=found, body=substitute_indices(e.body, {name: composite}), condition=condition)

    return replace(d, value=transform(within, d.value))


def _typed(e: m.Expr, dtype: str) -> m.Expr:
    """A value that tells its type; of updates, each by itself."""
    if isinstance(e, m.Scatter):
        return replace(e, body=_typed(e.body, dtype), start=_typed(e.start, dtype))
    return e if _has_type(e) else m.Convert(dtype, e)


def _has_type(e: m.Expr) -> bool:
    """Whether something in a value tells its type: numbers take that of what they are combined with."""
    match e:
        case m.Read() | m.Convert() | m.BitCast():
            return True
        case m.Operation("==" | "!=" | "<" | "<=" | ">" | ">=" | "and" | "or") | m.Not():
            return True
        case m.Conditional():
            return _has_type(e.if_true) or _has_type(e.if_false)
        case m.Reduce():
            return e.place is not None or _has_type(e.body)
        case m.Operation():
            return _has_type(e.left) or _has_type(e.right)
        case m.MultiplyAdd():
            return any(map(_has_type, operands(e)))
        case m.Negate():
            return _has_type(e.operand)
        case m.Apply():
            return e.function in m.PREDICATES or _has_type(e.argument)
        case _:
            return False
