"""Outputs of ops as intermediate tensors of a larger one.

A `let` has single indices on its left side.  If an output's left side composes indices (`y[g * K + k]`), the
intermediate has an axis for each of them, and its readers use these axes.  An index over the whole dimension is split
into digits; any other subscript is split into quotient and remainder.

A subscript is outside its dimension exactly where its first digit is outside, because quotients round down and
remainders are never outside.  So a term that was left out of a reduction is still left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from opgen.graph.fusion.inline import Size, put_in
from opgen.graph.fusion.rewrite import in_order, indices_in, product_of, with_children
from opgen.graph.fusion.unify import CannotComposeError
from opgen.spec.model import model as m
from opgen.spec.model.polynomial import same
from opgen.spec.model.walk import operands, reads, reads_values, subexpressions, substitute_indices, transform

Digits = tuple[m.IndexRange, ...]
"""Indices of a composed dimension, most significant first."""


class Intermediates:
    """Definitions of a composed op, added one after the other.

    `between` are tensors that are outputs of parts and intermediates of the whole.  `copies` names for some of them the
    output with the same elements.  The values of `inlined` ones are inlined wherever they are read.  `size` returns the
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
        """Add the next definition of a part."""
        d = self._reading(d)
        for let in self.definitions:
            if let.tensor in self._inlined and not any(isinstance(n, m.Reduce) for n in subexpressions(let.value)):
                d = put_in(d, let, self._size_of)
        if self._stays(d):
            self.definitions.append(d)
            return
        let = self._let(d)
        self.definitions.append(let)
        if d.tensor in self._copies:
            value = m.Read(d.tensor, tuple(m.Index(r.name) for r in let.indices))
            self.definitions.append(replace(d, tensor=self._copies[d.tensor], value=value))

    def _stays(self, d: m.Definition) -> bool:
        """Return True for an output that is one of the whole, too."""
        return d.is_output and d.tensor not in self._between

    def _size_of(self, tensor: str, axis: int) -> m.Expr | None:
        let = next((d for d in self.definitions if d.tensor == tensor), None)
        return self._size(tensor, axis) if let is None else let.dims[axis]

    def _let(self, d: m.Definition) -> m.Definition:
        """Return a definition as that of an intermediate."""
        subscripts = tuple(m.Index(r.name) for r in d.indices)
        value = _typed(d.value, d.dtype)
        dims = tuple(r.extent for r in d.indices)
        return replace(d, subscripts=subscripts, dims=dims, is_output=False, value=value)

    def _reading(self, d: m.Definition) -> m.Definition:
        """Return a definition that reads intermediates at the digits of their dimensions."""
        whole = _whole(d)
        for read in [n for n in subexpressions(d.value) if isinstance(n, m.Read) and n.tensor in self._digits]:
            for subscript, digits in zip(read.indices, self._digits[read.tensor], strict=True):
                if len(digits) > 1 and isinstance(subscript, m.Index) and subscript.name not in whole:
                    d = _apart(d, subscript.name, digits)
        if not self._stays(d) and not all(isinstance(s, m.Index) for s in d.subscripts):
            extents = {r.name: r for r in d.indices}
            self._digits[d.tensor] = tuple(tuple(extents[n] for n in indices_in((s,))) for s in d.subscripts)
        return replace(d, value=self._at_digits(d.value, False))

    def _at_digits(self, e: m.Expr, reduced: bool) -> m.Expr:
        """Return an expression, in a reduction or not, whose reads of intermediates are at digits."""
        e = with_children(e, lambda o: self._at_digits(o, reduced or _is_term(e, o)))
        if not isinstance(e, m.Read) or e.tensor not in self._digits:
            return e
        indices: list[m.Expr] = []
        for subscript, digits in zip(e.indices, self._digits[e.tensor], strict=True):
            indices += _digits_of(subscript, digits)
        outside = e.outside
        if outside is None and any(isinstance(i, m.Operation) and reads_values(i) for i in indices):
            raise CannotComposeError(f"'{e.tensor}' is read at elements, which would be checked digit by digit")
        if outside is None and not reduced and any(isinstance(i, m.Operation) for i in indices):
            # The read was proved to be inside; for quotients of a size with a name of its own this is not proved.
            outside = m.Number(0)
        return replace(e, indices=tuple(indices), outside=outside)


def _is_term(e: m.Expr, operand: m.Expr) -> bool:
    """Return True if a read in an operand that is outside leaves out a term of the reduction `e`."""
    if isinstance(e, m.Scatter):
        return operand is not e.start
    return isinstance(e, m.Reduce) and operand is not e.place


def _whole(d: m.Definition) -> set[str]:
    """Return the indices that stay whole: those along which a definition reads or updates itself elsewhere."""
    if isinstance(d.value, m.Scatter):
        return {r.name for r in d.indices}
    return {
        index.name
        for read in reads(d.value)
        if read.tensor == d.tensor
        for index, place in zip(d.subscripts, read.indices, strict=True)
        if isinstance(index, m.Index) and index != place
    }


def _digits_of(subscript: m.Expr, digits: Digits) -> list[m.Expr]:
    """Return the digits of a subscript."""
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
    """Return the subscript composed of indices: `g * K + k`."""
    whole: m.Expr = indices[0]
    for index, digit in zip(indices[1:], digits[1:], strict=True):
        whole = m.Operation("+", m.Operation("*", whole, digit.extent), index)
    return whole


def _apart(d: m.Definition, name: str, digits: Digits) -> m.Definition:
    """Return a definition whose index over all of a composed dimension is split into digits."""
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
        found = split(e.indices) if isinstance(e, m.Reduce) and e.place is None else None
        if not isinstance(e, m.Reduce) or found is None:
            return e
        condition = None if e.condition is None else substitute_indices(e.condition, {name: composite})
        if isinstance(e, m.Scatter):
            e = replace(e, at=tuple(substitute_indices(i, {name: composite}) for i in e.at))
        return replace(e, indices=found, body=substitute_indices(e.body, {name: composite}), condition=condition)

    return replace(d, value=transform(within, d.value))


def _typed(e: m.Expr, dtype: str) -> m.Expr:
    """Return a value that determines its type; the body and the start of an update do so each by itself."""
    if isinstance(e, m.Scatter):
        return replace(e, body=_typed(e.body, dtype), start=_typed(e.start, dtype))
    return e if _has_type(e) else m.Convert(dtype, e)


def _has_type(e: m.Expr) -> bool:
    """Return whether something in a value determines its type: numbers take the type of their other operand."""
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
