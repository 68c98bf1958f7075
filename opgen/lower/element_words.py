"""Messages for elements that are not valid subscripts, the same in every language."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from opgen.lower.elements import ElementCheck, checked_definitions
from opgen.spec.model.model import AttrValue, Conditional, Convert, Expr, Number, Operation, OpSpec, Read
from opgen.spec.model.unparse_expression import Expressions
from opgen.spec.model.walk import reads, transform
from opgen.spec.syntax.pretty import render
from opgen.spec.syntax.print_expression import expression

_ONE_LINE = 2**16
"""Width of a line that is never broken."""


@dataclass(frozen=True)
class ElementWords:
    """Words about an element: `argument` is to blame; `tensor` has the subscripted dimension `axis`.

    `subject` is the subscript, if that is more than an element.  `wraps`: negative elements count from the end.
    """

    argument: str
    tensor: str
    axis: int
    subject: str
    wraps: bool

    def expected(self, size: int) -> str:
        """Return the text that completes "expected ..." if the dimension has a size."""
        if size == 0:
            return f"no elements, as dimension {self.axis} of '{self.tensor}' is empty"
        numbers = f"from {-size if self.wraps else 0} to {size - 1}"
        dimension = f"(dimension {self.axis} of '{self.tensor}' has {size})"
        if self.subject:
            return f"elements with which {self.subject} is {numbers} {dimension}"
        return f"integers {numbers} {dimension}"

    def given(self, value: int, size: int) -> str:
        """Return the description of the given value if a subscript is outside."""
        return f"{self.lead}{value - size if self.wraps and value < 0 else value}"

    @property
    def lead(self) -> str:
        """Return the words before the number that was given."""
        return "elements with which it is " if self.subject else ""


def words_of(op: OpSpec, check: ElementCheck) -> ElementWords:
    """Return the words for a check of an op."""
    e = _spelt_out(op, check.subscript)
    lists = _lists(op)
    wraps = _wraps(e, check.size)
    plain = wraps or isinstance(e, Read)
    subject = "" if plain else _text(op, transform(lambda n: _by_name(n, lists), _bare(check.subscript)))
    return ElementWords(_source(op, check), check.read.tensor, check.axis, subject, wraps)


def _text(op: OpSpec, e: Expr) -> str:
    return render(expression(Expressions({a.name: a for a in op.attrs}).of(e)), _ONE_LINE)


def _spelt_out(op: OpSpec, subscript: Expr) -> Expr:
    """Return a subscript without casts, with elements of intermediate tensors replaced by their definitions."""
    e = _bare(subscript)
    if isinstance(e, Read):
        let = next((d for d in checked_definitions(op) if d.tensor == e.tensor), None)
        if let is None or e.tensor in _lists(op):
            return e
        return e if not isinstance(found := _bare(let.value), Read | Conditional) else found
    return e


def _lists(op: OpSpec) -> dict[str, str]:
    """Return the intermediate tensors that hold a list attribute, and which."""
    found = {d.tensor: set(_chosen(_bare(d.value))) for d in checked_definitions(op)}
    return {tensor: attrs.pop() for tensor, attrs in found.items() if len(attrs) == 1 and "" not in attrs}


def _chosen(e: Expr) -> Iterator[str]:
    """Yield the lists whose elements a value is chosen from; "" if it is not an element of a list."""
    if isinstance(e, Conditional):
        yield from (*_chosen(e.if_true), *_chosen(e.if_false))
    else:
        yield e.attr if isinstance(e, AttrValue) and e.element else ""


def _by_name(e: Expr, lists: Mapping[str, str]) -> Expr:
    """Return a read of a list as an element of the attribute."""
    return replace(e, tensor=lists[e.tensor]) if isinstance(e, Read) and e.tensor in lists else e


def _bare(e: Expr) -> Expr:
    """Return an integer without the casts that make int64 of it."""
    return transform(lambda n: n.operand if isinstance(n, Convert) and n.to == "int64" else n, e)


def _wraps(e: Expr, size: Expr) -> bool:
    """Return True for `if k < 0 then k + size else k` of an element k."""
    match e:
        case Conditional(Operation("<", element, Number(0)), Operation("+", moved, added), otherwise):
            return isinstance(element, Read) and moved == element == otherwise and added == size
    return False


def _source(op: OpSpec, check: ElementCheck) -> str:
    """Return the input, or the list attribute, whose elements make a subscript, the first if there are several."""
    given = {t.name for t in op.tensors}
    lets = {d.tensor: d for d in checked_definitions(op)}
    lists = _lists(op)
    pending = [r.tensor for r in reads(check.subscript)]
    for name in pending:
        if name in given or name in lists:
            return lists.get(name, name)
        pending += [r.tensor for r in reads(lets[name].value) if r.tensor not in pending]
    return check.read.tensor
