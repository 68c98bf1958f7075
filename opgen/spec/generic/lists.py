"""List functions on dimensions, indices, attributes and axes, evaluated when an op is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from struct import pack, unpack
from typing import TypeAlias

from opgen.diagnostics import Span
from opgen.spec.generic.values import Mistake, binary, integer, known_condition
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural

List: TypeAlias = tuple[s.Expression, ...]


class Misfit(Exception):
    """An error about lists, or numbers of elements, that do not fit each other."""


@dataclass(frozen=True)
class ListFunction:
    """A list function; `takes` gives the kind of each argument.

    The kinds are "list", "axes" (a list of known integers), "known" (a list of known numbers or conditions), "int"
    (known), "value", "tensor" (with known sizes) and "fill" (a list, or one value for all).
    """

    takes: tuple[str, ...]
    make: Callable[..., List]
    meaning: str


def _picked(what: List, axes: Sequence[int], span: Span) -> List:
    for axis in axes:
        if not 0 <= axis < len(what):
            raise Misfit(f"there is no element {axis} of {len(what)}")
    return tuple(what[a] for a in axes)


def pick(span: Span, what: List, axes: Sequence[int]) -> List:
    """Return the elements at some positions, in their order."""
    return _picked(what, axes, span)


def drop(span: Span, what: List, axes: Sequence[int]) -> List:
    """Return all elements except those at some positions."""
    _picked(what, axes, span)
    return tuple(e for at, e in enumerate(what) if at not in axes)


def place(span: Span, rest: List, picked: List, axes: Sequence[int]) -> List:
    """Invert `drop` and `pick`: return the list that they split into `rest` and `picked`."""
    size = len(rest) + len(axes)
    if len(picked) != len(axes) or len(set(axes)) != len(axes) or any(not 0 <= a < size for a in axes):
        raise Misfit(f"{len(picked)} elements do not go to the places {list(axes)} of {size}")
    at = dict(zip(axes, picked, strict=True))
    left = iter(rest)
    return tuple(at[i] if i in at else next(left) for i in range(size))


def positions(span: Span, count: int) -> List:
    """Return 0, 1, ... below a number."""
    return tuple(integer(i, span) for i in range(count))


def repeated(span: Span, what: s.Expression, count: int) -> List:
    """Return one value, repeated."""
    return (what,) * max(count, 0)


def reverse(span: Span, what: List) -> List:
    """Return the elements in reverse order."""
    return what[::-1]


def take(span: Span, what: List, count: int) -> List:
    """Return the first n elements; for -n, the last n."""
    if abs(count) > len(what):
        raise Misfit(f"there are {len(what)} elements, not {abs(count)}")
    return what[:count] if count >= 0 else what[len(what) + count :]


def skip(span: Span, what: List, count: int) -> List:
    """Return the elements that `take` omits."""
    taken = take(span, what, count)
    return what[len(taken) :] if count >= 0 else what[: len(what) - len(taken)]


def aligned(span: Span, what: List, count: int, fill: s.Expression) -> List:
    """Right-align the elements in a longer list, padded with a value."""
    if count < len(what):
        raise Misfit(f"{len(what)} elements do not go into a list of {count}")
    return (fill,) * (count - len(what)) + what


def starts(span: Span, what: List) -> List:
    """Return, for each element, the sum of those before it."""
    sums: list[s.Expression] = [integer(0, span)]
    for element in what[:-1]:
        sums.append(binary("+", sums[-1], element, span))
    return tuple(sums[: len(what)])


def _strides(span: Span, dims: List) -> List:
    """Return the row-major strides of dimensions, in elements."""
    sizes: list[s.Expression] = [integer(1, span)]
    for dim in dims[:0:-1]:
        sizes.append(binary("*", dim, sizes[-1], span))
    return tuple(sizes[::-1][: len(dims)])


def ravel(span: Span, indices: List, dims: List) -> List:
    """Return the row-major number of an element, as a list of one value."""
    if len(indices) != len(dims):
        raise Misfit(f"{len(indices)} indices do not go with {len(dims)} dimensions")
    number = integer(0, span) if not indices else indices[0]
    for index, dim in zip(indices[1:], dims[1:], strict=True):
        number = binary("+", binary("*", number, dim, span), index, span)
    return (number,)


def unravel(span: Span, number: s.Expression, dims: List) -> List:
    """Return the indices of the element with a row-major number."""
    found = []
    for at, (dim, stride) in enumerate(zip(dims, _strides(span, dims), strict=True)):
        quotient = binary("//", number, stride, span)
        found.append(quotient if at == 0 else binary("%", quotient, dim, span))
    return tuple(found)


def fractions(numbers: List) -> list[Fraction]:
    """Convert known numbers to fractions: for a float, the simplest that is the same number in float32."""
    found = []
    for number in numbers:
        negative = isinstance(number, s.Unary)
        literal = number.operand if isinstance(number, s.Unary) else number
        if not isinstance(literal, s.Constant) or literal.text in ("true", "false"):
            raise Misfit("these are not known when an op is made of a call")
        whole = literal.text.isdigit()
        value = Fraction(literal.text) if whole else _simplest(float(literal.text))
        if value is None:
            raise Misfit(f"{literal.text} is no number of float32")
        found.append(-value if negative else value)
    return found


_SIMPLE = 4096
"""Greatest denominator of a fraction that people mean when they write a float: 0.6 is 3 / 5."""


LARGEST = 3.4028234663852886e38
"""The greatest finite float32."""


def _simplest(number: float) -> Fraction | None:
    if not isfinite(number) or abs(number) > LARGEST:
        return None
    held = unpack("f", pack("f", number))[0]
    simple = Fraction(held).limit_denominator(_SIMPLE)
    return simple if unpack("f", pack("f", float(simple)))[0] == held else Fraction(held)


def numerators(span: Span, numbers: List) -> List:
    """Return the numerators of floats as fractions."""
    return tuple(integer(f.numerator, span) for f in fractions(numbers))


def denominators(span: Span, numbers: List) -> List:
    """Return the denominators of floats as fractions, each at least 1."""
    return tuple(integer(f.denominator, span) for f in fractions(numbers))


def chosen(span: Span, conditions: List) -> List:
    """Return the positions at which a condition holds."""
    decided = [known_condition(c) for c in conditions]
    if None in decided:
        raise Misfit("these are not known when an op is made of a call")
    return tuple(integer(at, span) for at, holds in enumerate(decided) if holds)


def units(span: Span, found: Sequence[int]) -> List:
    """Return the positions of an input's dimensions of size 1."""
    return tuple(integer(at, span) for at in found)


LISTS = {
    "pick": ListFunction(("list", "axes"), pick, "the elements at some positions"),
    "drop": ListFunction(("list", "axes"), drop, "the elements but those at some positions"),
    "place": ListFunction(("list", "fill", "axes"), place, "what drop and pick take apart"),
    "positions": ListFunction(("int",), positions, "0, 1, ... below a number"),
    "repeat": ListFunction(("value", "int"), repeated, "a value so many times"),
    "reversed": ListFunction(("list",), reverse, "the elements from last to first"),
    "take": ListFunction(("list", "int"), take, "the first elements"),
    "skip": ListFunction(("list", "int"), skip, "the elements but the first"),
    "aligned": ListFunction(("list", "int", "value"), aligned, "the elements at the right end of a longer list"),
    "starts": ListFunction(("list",), starts, "for each element, the sum of those before it"),
    "chosen": ListFunction(("known",), chosen, "the positions at which a condition holds"),
    "numerators": ListFunction(("known",), numerators, "floats as fractions: what is above the line"),
    "denominators": ListFunction(("known",), denominators, "floats as fractions: what is below the line"),
    "unravel": ListFunction(("value", "list"), unravel, "the indices of the element of a number"),
    "units": ListFunction(("tensor",), units, "the positions of a tensor's dimensions of size 1"),
    "normalised": ListFunction(("axes", "int"), pick, "axes counted from the end brought to the front"),
}
"""Functions whose results are lists; the evaluator handles `normalised`, to blame the right argument."""

SINGLE = {"ravel": ListFunction(("list", "list"), ravel, "the number of an element")}
"""Functions of lists whose result is one value."""


def list_function(call: s.Call) -> ListFunction:
    """Return the called function; raise Mistake for a wrong number of arguments."""
    name, given = call.function.name, len(call.arguments)
    function = (LISTS | SINGLE)[name]
    if given != len(function.takes):
        wanted = plural(len(function.takes), "argument")
        raise Mistake(f"'{name}' takes {wanted}, {given} given", call.span, f"it gives {function.meaning}")
    return function
