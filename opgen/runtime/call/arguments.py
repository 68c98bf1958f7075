"""Attributes of a call: the values that a caller may write for each, and their plain Python form.

Accepted values:

* integers: `int`, numpy integers, anything with `__index__`; not a bool, and never a float, not even 1.0, so that
  `n / 2` where `n // 2` was meant is found; within int32 unless the spec says otherwise;
* lists of integers: lists, tuples, other sequences and integer arrays;
* numbers: integers and floats, numpy's too;
* words: `str`, or `bytes` of the same letters; the case counts;
* booleans: `bool` and numpy's;
* `None` for an argument with a default, which it then means.

The messages are those of `opgen.spec.call.arguments`, which checks the values of examples and of graphs.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from opgen.diagnostics import did_you_mean
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.describe import describe
from opgen.runtime.call.base import OpChecks

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1

Integers: TypeAlias = "Sequence[int] | npt.NDArray[np.integer]"
Numbers: TypeAlias = "Sequence[float] | npt.NDArray[np.floating]"
W = TypeVar("W", bound=str)
_SHORT = 64
"""Lists longer than this, and than the expected length, are not read."""


class AttributeChecks(OpChecks):
    """The checks of attributes.

    Every method takes the argument's name and the caller's value, and returns plain Python values.  It raises
    `ArgumentTypeError` for a value of the wrong kind and `ArgumentValueError` for one that does not fit.
    """

    def integer(
        self,
        argument: str,
        value: object,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
        wide: bool = False,
        default: int | None = None,
    ) -> int:
        """Return one integer."""
        if value is None and default is not None:
            return default
        number = index_of(value)
        expected = _integer(minimum, maximum, wide)
        if number is None:
            raise self._wrong_kind(argument, expected, value)
        if not _inside((number,), minimum, maximum, wide):
            raise self.wrong(argument, expected, value)
        return number

    def integers(
        self,
        argument: str,
        value: object,
        count: int,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
        wide: bool = False,
        default: tuple[int, ...] | None = None,
        optional: bool = False,
    ) -> tuple[int, ...]:
        """Return a list of `count` integers, or (if `optional`) an empty one."""
        if value is None and default is not None:
            return default
        expected = _listed(count, _integer(minimum, maximum, wide), optional)
        items = self._listed(argument, value, expected, count)
        numbers = None if items is None else [index_of(v) for v in items]
        if numbers is None or None in numbers:
            raise self._wrong_kind(argument, expected, value)
        found = tuple(n for n in numbers if n is not None)
        if len(found) != count and (found or not optional):
            raise self.wrong(argument, expected, value)
        if not _inside(found, minimum, maximum, wide):
            raise self.wrong(argument, expected, value)
        return found

    def number(
        self,
        argument: str,
        value: object,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
        default: float | None = None,
    ) -> float:
        """Return a number, as a float."""
        if value is None and default is not None:
            return default
        number = number_of(value)
        expected = _bounded("a number", minimum, maximum)
        if number is None:
            raise self._wrong_kind(argument, expected, value)
        if _beyond((number,), minimum, maximum):
            raise self.wrong(argument, expected, value)
        return number

    def numbers(
        self,
        argument: str,
        value: object,
        count: int,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
        default: tuple[float, ...] | None = None,
        optional: bool = False,
    ) -> tuple[float, ...]:
        """Return a list of `count` numbers, or (if `optional`) an empty one."""
        if value is None and default is not None:
            return default
        expected = _listed(count, _bounded("a number", minimum, maximum), optional)
        items = self._listed(argument, value, expected, count)
        numbers = None if items is None else [number_of(v) for v in items]
        if numbers is None or None in numbers:
            raise self._wrong_kind(argument, expected, value)
        found = tuple(n for n in numbers if n is not None)
        if (len(found) != count and (found or not optional)) or _beyond(found, minimum, maximum):
            raise self.wrong(argument, expected, value)
        return found

    def boolean(self, argument: str, value: object, *, default: bool | None = None) -> bool:
        """Return True or False."""
        if value is None and default is not None:
            return default
        if not isinstance(value, bool | np.bool_):
            raise self._wrong_kind(argument, "true or false", value)
        return bool(value)

    def word(self, argument: str, value: object, words: Sequence[W], *, default: W | None = None) -> W:
        """Return one of some words, exactly as written."""
        if value is None and default is not None:
            return default
        return self._word(argument, value, words, f"one of {', '.join(words)}")

    def word_or_list(
        self,
        argument: str,
        value: object,
        words: Sequence[W],
        otherwise: W,
        shape: tuple[int, ...],
        *,
        minimum: int | None = None,
        maximum: int | None = None,
        wide: bool = False,
    ) -> tuple[W, tuple[int, ...]]:
        """Return one of some words; or `otherwise` and a list of integers (of rows, if `shape` has two numbers).

        The list is returned flat.
        """
        expected = f"one of {', '.join(words)} or a list of integers"
        count = int(np.prod(shape))
        items = self._listed(argument, value, expected, count)
        if items is None:
            if isinstance(value, str | bytes) and value in (otherwise, otherwise.encode()):
                raise self.wrong(argument, f"a list in place of '{otherwise}'", value)
            return self._word(argument, value, words, expected), ()
        listed = f"{expected}: {_listed(count, _integer(minimum, maximum, wide), False)}"
        flat = items if len(shape) == 1 else _flattened(items, shape[1])
        numbers = [index_of(v) for v in flat] if flat is not None else []
        found = tuple(n for n in numbers if n is not None)
        if len(found) != len(numbers):
            raise self.wrong_type(argument, listed, value)
        if len(found) != count or not _inside(found, minimum, maximum, wide):
            raise self.wrong(argument, listed, value)
        return otherwise, found

    def alias(self, argument: str, value: object, alias: str, other: object) -> object:
        """Return the given one of an argument and its alias (None if neither is given)."""
        if value is not None and other is not None:
            raise self.both(argument, alias)
        return value if other is None else other

    def both(self, argument: str, alias: str) -> ArgumentValueError:
        """Return the error for an argument that is given by two names, to be raised."""
        return ArgumentValueError(self.op, alias, f"only one of '{argument}' and '{alias}'", "both")

    def name(self, value: object) -> None:
        """Accept a name for the call, a string or None; it has no effect."""
        if value is not None and not isinstance(value, str):
            raise self.wrong_type("name", "a string or None", value)

    def _listed(self, argument: str, value: object, expected: str, count: int) -> Sequence[object] | None:
        """Return the elements of a sequence that is not much longer than `count`; None for other values."""
        most = max(count, _SHORT)
        items = items_of(value, most)
        if items is not None and len(items) > most:
            raise self.wrong(argument, expected, value)
        return items

    def _word(self, argument: str, value: object, words: Sequence[W], expected: str) -> W:
        if not isinstance(value, str | bytes):
            raise self._wrong_kind(argument, expected, value)
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for word in words:
            if word == text:
                return word
        near = did_you_mean(text, words) if len(text) < 100 else None
        raise self.wrong(argument, expected + (f" ({near})" if near else ""), value)

    def _wrong_kind(self, argument: str, expected: str, value: object) -> ArgumentTypeError:
        return ArgumentTypeError(self.op, argument, expected, "nothing" if value is None else describe(value))


def _integer(minimum: int | None, maximum: int | None, wide: bool) -> str:
    """Return `an integer >= 1 and <= 4`; the width implies a missing bound: `a 32-bit integer >= 1`."""
    if minimum is not None and maximum is not None:
        return _bounded("an integer", minimum, maximum)
    return _bounded(f"a {64 if _is_wide(minimum, maximum, wide) else 32}-bit integer", minimum, maximum)


def _bounded(what: str, minimum: int | None, maximum: int | None) -> str:
    """Return `an integer >= 1 and <= 4`."""
    bounds = [f">= {minimum}"] if minimum is not None else []
    bounds += [f"<= {maximum}"] if maximum is not None else []
    return f"{what} {' and '.join(bounds)}" if bounds else what


def _listed(count: int, each: str, optional: bool) -> str:
    return f"a list of {count}, each {each}{', or an empty one' if optional else ''}"


def _inside(numbers: Sequence[int], minimum: int | None, maximum: int | None, wide: bool) -> bool:
    """Return True if integers are within their bounds; int32's, unless a bound reaches further or they are `wide`."""
    low, high = (-(2**63), 2**63 - 1) if _is_wide(minimum, maximum, wide) else (INT32_MIN, INT32_MAX)
    return all((low if minimum is None else minimum) <= n <= (high if maximum is None else maximum) for n in numbers)


def _is_wide(minimum: int | None, maximum: int | None, wide: bool) -> bool:
    """Return True for integers of 64 bits: declared ones, or those with a bound that 32 bits do not hold."""
    return wide or any(b is not None and not INT32_MIN <= b <= INT32_MAX for b in (minimum, maximum))


def _beyond(numbers: Sequence[float], minimum: int | None, maximum: int | None) -> bool:
    """Return True if a number is outside its bounds; a NaN is not."""
    return any((minimum is not None and n < minimum) or (maximum is not None and n > maximum) for n in numbers)


def index_of(value: object) -> int | None:
    """Return a value as an integer, or None; bools and floats do not count."""
    if type(value) is int:
        return value
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        return None
    if isinstance(value, np.ndarray) and value.ndim > 0:
        return None
    try:
        return int(operator.index(value))
    except TypeError:
        return None


def number_of(value: object) -> float | None:
    """Return a value as a float, or None; bools do not count, nor do integers beyond a float's range."""
    if isinstance(value, float | np.floating):
        return float(value)
    number = index_of(value)
    try:
        return None if number is None else float(number)
    except OverflowError:
        return None


def items_of(value: object, most: int) -> Sequence[object] | None:
    """Return the elements of a list, a tuple, another sequence or an array; None for other values.

    At most one element beyond `most` is returned.  A string does not count, though Python calls it a sequence.
    """
    if isinstance(value, list | tuple):
        return value if len(value) <= most else value[: most + 1]
    if isinstance(value, np.ndarray):
        return list(value[: most + 1]) if value.ndim > 0 else None
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        return None
    try:
        return list(itertools.islice(value, most + 1))
    except Exception:  # foreign code may raise anything: not a sequence
        return None


def _flattened(rows: Sequence[object], width: int) -> list[object] | None:
    """Return the elements of rows of one width, in order; None if a row has another form."""
    found: list[object] = []
    for row in rows:
        items = items_of(row, width)
        if items is None or len(items) != width:
            return None
        found += items
    return found
