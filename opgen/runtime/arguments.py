"""Attributes of a call: what a caller may write for each, and the plain value that it stands for.

What is accepted:

* integers: `int`, numpy integers, whatever has `__index__`; not a bool, and never a float, not even 1.0, so that
  `n / 2` where `n // 2` was meant is found; within int32 unless the spec says otherwise;
* lists of integers: lists, tuples, other sequences and integer arrays;
* numbers: integers and floats, numpy's too;
* words: `str`, or `bytes` of the same letters; the case counts;
* booleans: `bool` and numpy's;
* `None` where there is a default, which it then means.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NoReturn, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from opgen.diagnostics import did_you_mean
from opgen.runtime.base import OpChecks

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1

Integers: TypeAlias = "Sequence[int] | npt.NDArray[np.integer]"
Numbers: TypeAlias = "Sequence[float] | npt.NDArray[np.floating]"
W = TypeVar("W", bound=str)


class AttributeChecks(OpChecks):
    """The checks of attributes.

    Every method takes the argument's name and what the caller gave, and returns plain Python values, or raises
    `ArgumentTypeError` for a value of the wrong kind and `ArgumentValueError` for one that does not fit.
    """

    def integer(
        self,
        argument: str,
        value: object,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
        default: int | None = None,
    ) -> int:
        """One integer."""
        if value is None and default is not None:
            return default
        number = _index(value)
        if number is None:
            raise self.wrong_type(argument, "an integer", value)
        self._check_bounds(argument, (number,), value, minimum, maximum)
        return number

    def integers(
        self,
        argument: str,
        value: object,
        count: int,
        *,
        minimum: int | None = None,
        maximum: int | None = None,
        default: tuple[int, ...] | None = None,
        optional: bool = False,
    ) -> tuple[int, ...]:
        """A list of `count` integers, or (if `optional`) none."""
        if value is None and default is not None:
            return default
        items = _items(value)
        numbers = None if items is None else [_index(v) for v in items]
        if numbers is None or not (found := [n for n in numbers if n is not None]) == numbers:
            raise self.wrong_type(argument, f"a list of {count} integers", value)
        if len(found) != count and not (optional and not found):
            raise self.wrong(argument, f"{count} integers", value)
        self._check_bounds(argument, found, value, minimum, maximum)
        return tuple(found)

    def pairs(
        self, argument: str, value: object, count: int, *, minimum: int | None = None, maximum: int | None = None
    ) -> tuple[int, ...]:
        """A list of `count` pairs of integers, flattened."""
        expected = f"a list of {count} pairs of integers"
        rows = _items(value)
        pairs = None if rows is None else [_items(row) for row in rows]
        if pairs is None or len(pairs) != count or any(p is None or len(p) != 2 for p in pairs):
            raise self.wrong(argument, expected, value)
        numbers = [_index(v) for p in pairs if p is not None for v in p]
        found = [n for n in numbers if n is not None]
        if found != numbers:
            raise self.wrong_type(argument, expected, value)
        self._check_bounds(argument, found, value, minimum, maximum)
        return tuple(found)

    def number(self, argument: str, value: object, *, default: float | None = None) -> float:
        """A number, as a float."""
        if value is None and default is not None:
            return default
        number = _number(value)
        if number is None:
            raise self.wrong_type(argument, "a number", value)
        return number

    def numbers(
        self,
        argument: str,
        value: object,
        count: int,
        *,
        default: tuple[float, ...] | None = None,
        optional: bool = False,
    ) -> tuple[float, ...]:
        """A list of `count` numbers, or (if `optional`) none."""
        if value is None and default is not None:
            return default
        items = _items(value)
        numbers = None if items is None else [_number(v) for v in items]
        if numbers is None or None in numbers:
            raise self.wrong_type(argument, f"a list of {count} numbers", value)
        found = tuple(n for n in numbers if n is not None)
        if len(found) != count and not (optional and not found):
            raise self.wrong(argument, f"{count} numbers", value)
        return found

    def boolean(self, argument: str, value: object, *, default: bool | None = None) -> bool:
        """True or False."""
        if value is None and default is not None:
            return default
        if not isinstance(value, bool | np.bool_):
            raise self.wrong_type(argument, "True or False", value)
        return bool(value)

    def word(self, argument: str, value: object, words: Sequence[W], *, default: W | None = None) -> W:
        """One of some words, exactly as written."""
        if value is None and default is not None:
            return default
        return self._word(argument, value, words, one_of(words))

    def _word(self, argument: str, value: object, words: Sequence[W], expected: str) -> W:
        if not isinstance(value, str | bytes):
            raise self.wrong_type(argument, expected, value)
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for word in words:
            if word == text:
                return word
        raise self.wrong(argument, expected, value, did_you_mean(text, words))

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
    ) -> tuple[W, tuple[int, ...]]:
        """One of some words; or a list of integers (of pairs, if `shape` has two numbers), which stands for
        `otherwise`.
        """
        if isinstance(value, str | bytes) or _items(value) is None:
            listed = f"a list of {shape[0]} {'pairs of integers' if len(shape) > 1 else 'integers'}"
            return self._word(argument, value, words, f"{', '.join(map(repr, words))} or {listed}"), ()
        if len(shape) > 1:
            return otherwise, self.pairs(argument, value, shape[0], minimum=minimum, maximum=maximum)
        return otherwise, self.integers(argument, value, shape[0], minimum=minimum, maximum=maximum)

    def alias(self, argument: str, value: object, alias: str, other: object) -> tuple[str, object]:
        """Whichever of an argument and its alias is given (the argument, as None, if neither is), by its name."""
        if value is not None and other is not None:
            raise self.wrong(alias, f"nothing beside '{argument}', for which it is another name", other)
        return (argument, value) if other is None else (alias, other)

    def name(self, value: object) -> None:
        """A name for the call: a string or None; it is accepted and has no effect."""
        if value is not None and not isinstance(value, str):
            raise self.wrong_type("name", "a string or None", value)

    def _check_bounds(
        self, argument: str, numbers: Sequence[int], value: object, minimum: int | None, maximum: int | None
    ) -> None:
        low, high = INT32_MIN if minimum is None else minimum, INT32_MAX if maximum is None else maximum
        if numbers and min(numbers) < low:
            self._out_of_bounds(argument, "at least", low, value)
        if numbers and max(numbers) > high:
            self._out_of_bounds(argument, "at most", high, value)

    def _out_of_bounds(self, argument: str, relation: str, bound: int, value: object) -> NoReturn:
        raise self.wrong(
            argument, f"{'integers' if _items(value) is not None else 'an integer'} {relation} {bound}", value
        )


def one_of(words: Sequence[str]) -> str:
    """`'SAME', 'VALID' or 'EXPLICIT'`, for a message."""
    quoted = [repr(str(w)) for w in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _index(value: object) -> int | None:
    """The integer that a value is, or None; bools and floats are none."""
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


def _number(value: object) -> float | None:
    """The float that a number is, or None; bools are none, and integers beyond a float's range neither."""
    if isinstance(value, float | np.floating):
        return float(value)
    number = _index(value)
    try:
        return None if number is None else float(number)
    except OverflowError:
        return None


def _items(value: object) -> Sequence[object] | None:
    """The elements of a list, a tuple, another sequence or an array; None for what is no sequence (a string is
    none).
    """
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, np.ndarray):
        return list(value) if value.ndim > 0 else None
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray) else None
