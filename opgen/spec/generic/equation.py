"""Ops defined by an equation in an attribute: a sum of products over subscripts, as in `ij,jk->ik`.

The attribute has the kind `equation`.  It is the only dimension of `inputs` and of the output, which has no definition
of its own.  A call's equation rewrites the declarations to those of a generic op:

* an input for each term, with a dimension for each letter and a stretching pack for `...`;
* intermediate tensors, if there are more than two terms;
* the definition of the output.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from opgen.diagnostics import Span
from opgen.spec.call.arguments import CallError, CallTypeError
from opgen.spec.generic.given import Call, Tensors
from opgen.spec.model.model import GenericOp
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural

KIND = "equation"
"""The kind of an attribute that holds an equation."""

MOST = 64
"""Greatest number of terms in an equation: the search for the cheapest pair compares all pairs."""

_REST = "..."
_TERM = re.compile(r"\.\.\.|[A-Za-z]")

Letters = tuple[str, ...]
"""The letters of a term, in order; `...` counts as one."""


@dataclass(frozen=True)
class Product:
    """A factor of the product: the expression that reads it, and the letters of its indices."""

    value: s.Expression
    letters: frozenset[str]


def attribute(op: GenericOp) -> s.AttrDecl | None:
    """Return the attribute that holds the equation, or None."""
    return next((a for a in op.attrs if a.type.kind.name == KIND), None)


def told(tensor: s.Item, name: str) -> bool:
    """Return True if this attribute gives the dimensions of a tensor."""
    if not isinstance(tensor, s.TensorDecl | s.SeveralDecl) or len(tensor.dims) != 1:
        return False
    dim = tensor.dims[0]
    return isinstance(dim.size, s.Named) and dim.size.name == name and dim.broadcast is None and not dim.each


def written_out(call: Call) -> Call:
    """Return the call of the op that an equation makes, or the call itself for other ops.  Raises CallError."""
    attr = attribute(call.op)
    if attr is None:
        return call
    name = attr.name.name
    several = next(i for i in call.op.inputs if isinstance(i, s.SeveralDecl) and told(i, name))
    given = call.inputs[several.name.name]
    terms, result = _terms(call, name, len(given.arguments))
    names = [f"{several.name.name}_{k}" for k in range(len(terms))]
    output = next(o for o in call.op.outputs if told(o, name))
    items: list[s.Item] = []
    for item in call.op.decl.items:
        if item is several:
            for term, each in zip(terms, names, strict=True):
                ident = s.Ident(several.name.span, each)
                dims = _dims(several.span, term, True)
                items.append(s.TensorDecl(several.span, "input", ident, several.dtype, dims, None, False, several.doc))
        elif item is output and isinstance(output, s.TensorDecl):
            items.append(dataclasses.replace(output, dims=_dims(output.span, result, False)))
        elif item is not attr:
            items.append(item)
    items += _Definitions(output.name, names, terms, result).all()
    inputs = {n: t for n, t in call.inputs.items() if n != several.name.name}
    for each, argument, position in zip(names, given.arguments, given.positions, strict=True):
        inputs[each] = Tensors((argument,), (position,))
    op = dataclasses.replace(call.op, decl=dataclasses.replace(call.op.decl, items=tuple(items)))
    attributes = {n: v for n, v in call.attributes.items() if n != name}
    return dataclasses.replace(call, op=op, inputs=inputs, attributes=attributes)


# The equation ---------------------------------------------------------------------------------------


def _terms(call: Call, name: str, count: int) -> tuple[list[Letters], Letters]:
    """Return the letters of each tensor and of the result.

    Without an arrow, the result has every letter that occurs once, in alphabetical order.
    """
    text = call.attributes[name]
    if not isinstance(text, str):
        given = "nothing" if text is None else repr(text)
        raise CallTypeError(call.op.name, name, "an equation, as 'ij,jk->ik'", given)

    def wrong(expected: str) -> CallError:
        return CallError(call.op.name, name, expected, repr(text))

    left, arrow, right = (part.replace(" ", "") for part in text.partition("->"))
    if left.count(",") + 1 != count or count > MOST:
        raise wrong(f"an equation of {plural(count, 'term')}" if count <= MOST else f"at most {MOST} terms")
    terms = [_letters(term) for term in left.split(",")]
    found = [letter for term in terms for letter in dict.fromkeys(term)]
    if arrow:
        result = _letters(right)
    else:
        once = {letter for letter in found if left.count(letter) == 1 and letter != _REST}
        result = (*([_REST] if _REST in found else []), *sorted(once))
    for term in (*terms, result):
        if "" in term or term.count(_REST) > 1:
            raise wrong("letters and at most one '...' in each term")
    if _REST not in found:
        result = tuple(letter for letter in result if letter != _REST)  # `...` stands for no dimensions
    if len(set(result)) < len(result):
        raise wrong("each letter of the result once")
    missing = next((c for c in result if c not in found), None)
    if missing is not None:
        raise wrong(f"'{missing}' of the result in a term before '->'")
    return terms, result


def _letters(term: str) -> Letters:
    """Return the letters of a term; an empty string among them marks an invalid term."""
    parts = _TERM.findall(term)
    return tuple(parts) if "".join(parts) == term else ("",)


# The op ---------------------------------------------------------------------------------------------


def _dims(span: Span, letters: Letters, stretching: bool) -> tuple[s.Dim, ...]:
    return tuple(
        s.Dim(span, s.Expansion(span, s.Named(span, "others")), "1" if stretching else None)
        if letter == _REST
        else s.Dim(span, s.Named(span, f"{letter}_size"), None)
        for letter in letters
    )


def _indices(span: Span, letters: Iterable[str]) -> tuple[s.Expression, ...]:
    return tuple(
        s.Expansion(span, s.Named(span, "other")) if letter == _REST else s.Named(span, f"at_{letter}")
        for letter in letters
    )


def _summed(span: Span, value: s.Expression, letters: Sequence[str]) -> s.Expression:
    """Return the sum of a value over some letters."""
    ranges = tuple(
        s.Range(span, s.Ident(span, "other"), s.Expansion(span, s.Named(span, "others")), True)
        if letter == _REST
        else s.Range(span, s.Ident(span, f"at_{letter}"), s.Named(span, f"{letter}_size"))
        for letter in letters
    )
    return s.Reduction(span, "sum", ranges, value) if ranges else value


class _Definitions:
    """The definitions of a result, two terms at a time.

    A letter is summed as soon as no other term has it.
    """

    def __init__(self, output: s.Ident, names: Sequence[str], terms: Sequence[Letters], result: Letters) -> None:
        self.output, self.span, self.result = output, output.span, result
        self.waiting = [self._read(name, term) for name, term in zip(names, terms, strict=True)]
        self.made: list[s.Item] = []

    def all(self) -> list[s.Item]:
        """Return the definitions of the intermediate tensors and of the result."""
        if len(self.waiting) > 1:
            self.waiting = [self._alone(product) for product in self.waiting]
        while len(self.waiting) > 2:
            one, other = min(combinations(self.waiting, 2), key=self._cost)
            self.waiting = [p for p in self.waiting if p is not one and p is not other]
            self.waiting.insert(0, self._between(self._product(one, other), self._needed(self.waiting)))
        last = self.waiting[0] if len(self.waiting) == 1 else self._product(*self.waiting)
        value = _summed(self.span, last.value, sorted(last.letters - set(self.result)))
        subscripts = _indices(self.span, self.result)
        return [*self.made, s.DefinitionDecl(self.span, False, self.output, subscripts, value, ())]

    def _read(self, name: str, letters: Letters) -> Product:
        value = s.Subscripted(self.span, s.Ident(self.span, name), _indices(self.span, letters), None)
        return Product(value, frozenset(letters))

    def _product(self, one: Product, other: Product) -> Product:
        return Product(s.Binary(self.span, "*", one.value, other.value), one.letters | other.letters)

    def _alone(self, product: Product) -> Product:
        """Sum a term over the letters that no other term has."""
        kept = self._needed(p for p in self.waiting if p is not product)
        return product if product.letters <= kept else self._between(product, kept)

    def _between(self, product: Product, kept: frozenset[str]) -> Product:
        """Define an intermediate tensor for a product, summed over all letters except `kept`."""
        name = f"{self.output.name}_{len(self.made)}"
        letters = tuple(sorted(product.letters & kept))
        value = _summed(self.span, product.value, sorted(product.letters - kept))
        ident, subscripts = s.Ident(self.span, name), _indices(self.span, letters)
        self.made.append(s.DefinitionDecl(self.span, True, ident, subscripts, value, ()))
        return self._read(name, letters)

    def _needed(self, others: Iterable[Product]) -> frozenset[str]:
        return frozenset(self.result).union(*(p.letters for p in others))

    def _cost(self, pair: tuple[Product, Product]) -> tuple[int, int]:
        """Estimate the cost of a product of two terms: its number of loops, then the rank of its result."""
        both = pair[0].letters | pair[1].letters
        return len(both), len(both & self._needed(p for p in self.waiting if p not in pair))
