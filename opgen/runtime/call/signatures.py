"""Several signatures of one op: the one that a call is written in, and the op's arguments that follow from it.

A generated function with several signatures passes on its named arguments, in the op's own order.  Last comes the tuple
of the positional ones, after those that all signatures begin with.  `Signatures` reads that by each signature.  A
reading that fits becomes a call in the op's own order.  If two fit and differ, or none does, an `ArgumentError` names
the alternatives.

A call is read once: operators remember calls as they are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from opgen.diagnostics.calls import ArgumentError, ArgumentTypeError, ArgumentValueError
from opgen.diagnostics.describe import describe
from opgen.runtime.call.arguments import index_of, items_of, number_of
from opgen.runtime.call.checks import Checks

NAME = "name"
"""The argument that names a call, without effect."""
_LONGEST = 1000
"""Length limit of an attribute's list."""


@dataclass(frozen=True, slots=True)
class Takes:
    """The values that an argument takes, as far as they distinguish signatures; `lengths` are those of lists."""

    words: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    flag: bool = False
    text: bool = False
    integer: bool = False
    number: bool = False

    def fits(self, value: object) -> bool:
        """Return True if the argument takes the value; bounds do not count."""
        if isinstance(value, str | bytes):
            return (self.text and isinstance(value, str)) or _text(value) in self.words
        if isinstance(value, bool | np.bool_):
            return self.flag
        items = items_of(value, _LONGEST)
        if items is not None:
            return len(items) in self.lengths
        return (self.integer and index_of(value) is not None) or (self.number and number_of(value) is not None)

    def is_near(self, value: object) -> bool:
        """Return True if the argument takes values of this kind, perhaps others."""
        if isinstance(value, str | bytes):
            return self.text or bool(self.words)
        if isinstance(value, bool | np.bool_):
            return self.flag
        if items_of(value, 0) is not None:
            return bool(self.lengths)
        return (self.integer or self.number) and number_of(value) is not None

    def __str__(self) -> str:
        kinds = ["true or false"] if self.flag else []
        kinds += [f"one of {', '.join(self.words)}"] if self.words else []
        kinds += ["a text"] if self.text else []
        kinds += ["a number"] if self.number else ["an integer"] if self.integer else []
        lengths = [str(n) for n in sorted(self.lengths) if n]
        kinds += [f"a list of {_alternatives(lengths)}"] if lengths else []
        return " or ".join(kinds)


Values: TypeAlias = "dict[str, object]"


@dataclass(frozen=True, slots=True)
class Elements:
    """A list in the order of `layout` (default: `order`) that may cover the dimensions `letters` alone.

    Then it is one integer for all of them, or one for each; the other elements are `fill`.
    """

    letters: str
    fill: int
    layout: str
    order: str

    def takes(self, own: Takes) -> Takes:
        """Return the type of an argument that may have this form."""
        return replace(own, integer=True, lengths=(*own.lengths, 1, len(self.letters)))

    def convert(self, op: str, argument: str, values: Values) -> Values:
        """Return the values with the whole list."""
        given, layout = values[argument], values.get(self.layout)
        items = items_of(given, _LONGEST)
        each = [given] if items is None else list(items)
        order = self.order if layout is None else _text(layout)
        fit = len(each) in (1, len(self.letters)) and all(index_of(v) is not None for v in each)
        if not fit or not set(self.letters) <= set(order):
            return values
        of = dict(zip(self.letters, each * len(self.letters) if len(each) == 1 else each, strict=True))
        return {**values, argument: [of.get(letter, self.fill) for letter in order]}


@dataclass(frozen=True, slots=True)
class InPlace:
    """A list `payload` of a shape that may replace one of `words`; it means the word `word`."""

    words: tuple[str, ...]
    word: str
    payload: str
    shape: tuple[int, ...]
    minimum: int | None = None
    maximum: int | None = None

    def takes(self, own: Takes) -> Takes:
        """Return the type of an argument that the list may replace."""
        return replace(own, words=self.words, lengths=(*own.lengths, self.shape[0]))

    def convert(self, op: str, argument: str, values: Values) -> Values:
        """Return the values with the word, and the list by its own name."""
        given = values[argument]
        rows = items_of(given, self.shape[0])
        is_word = isinstance(given, str | bytes) and _text(given) == self.word  # it stands for the missing list
        if is_word or (rows is not None and not self._is_shaped(rows)):
            raise Checks(op).wrong(argument, f"one of {', '.join(self.words)} or {self._listed}", given)
        if rows is None:
            return values
        word, numbers = Checks(op).word_or_list(
            argument, given, self.words, self.word, self.shape, minimum=self.minimum, maximum=self.maximum
        )
        return {**values, argument: word, self.payload: list(numbers)}

    def _is_shaped(self, rows: Sequence[object]) -> bool:
        widths = [items_of(row, width) for row in rows for width in self.shape[1:]]
        return len(rows) == self.shape[0] and all(w is not None and len(w) == self.shape[1] for w in widths)

    @property
    def _listed(self) -> str:
        return (
            f"{self.shape[0]} lists of {self.shape[1]} integers" if len(self.shape) > 1 else f"{self.shape[0]} integers"
        )


@dataclass(frozen=True, slots=True)
class Signature:
    """One order of arguments, by their names in the op; `forms` are the alternative forms of arguments."""

    label: str
    arguments: tuple[str, ...]
    forms: Mapping[str, Elements | InPlace] = field(default_factory=dict)
    defaults: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Misfit:
    """The first argument that does not fit a signature: its place, and True if its value has the right kind.

    `error` is set if the op itself would not refuse the call; `all` is the number of misfits of the signature.
    """

    place: int
    near: bool
    argument: str
    value: object
    error: ArgumentError | None = None
    all: int = 1

    @property
    def rank(self) -> tuple[int, bool, int]:
        """A rank: greater for a call that is closer to a valid one."""
        return self.place, self.near, -self.all


@dataclass(frozen=True, slots=True)
class _Reading:
    signature: Signature
    values: Values
    misfit: _Misfit | None


@dataclass(frozen=True, slots=True)
class Signatures:
    """The signatures of an op.

    `rest` are the op's arguments besides its tensors, in its own order.  `common` is the number of arguments, tensors
    included, that come first in all signatures.  `takes` has the kinds of values of each argument, and the arguments
    `needed` have no default.
    """

    op: str
    rest: tuple[str, ...]
    common: int
    needed: tuple[str, ...]
    takes: Mapping[str, Takes]
    signatures: tuple[Signature, ...]

    def read(self, written: tuple[object, ...]) -> tuple[object, ...]:
        """Return the arguments in the op's own order; unchanged if they are in it already (none is positional).

        Raises an ArgumentError if no signature fits, or several do that differ.
        """
        if len(written) == len(self.rest):
            return written
        *values, given = written
        named = {n: v for n, v in zip(self.rest, values, strict=True) if v is not None}
        by_position = given if isinstance(given, tuple) else ()
        own = self._reading(self.signatures[0], named, by_position)
        if own.misfit is None and not by_position:  # names mean the same in all signatures
            return tuple(values)
        readings = [own, *(self._reading(s, named, by_position) for s in self.signatures[1:])]
        fitting = [r for r in readings if r.misfit is None]
        reading = self._only(fitting) if fitting else self._nearest(readings)
        return self._converted(reading)

    # One signature ----------------------------------------------------------------------------------

    def _reading(self, signature: Signature, named: Values, given: tuple[object, ...]) -> _Reading:
        values = {**signature.defaults, **named}
        order = signature.arguments[self.common :]
        misfit = self._foreign(signature, named) or self._beyond(signature, given)
        for place, (name, value) in enumerate(zip(order, given, strict=False), self.common):
            if name in named:
                both = f"{describe(value)} by position and {describe(named[name])} by keyword"
                error = ArgumentTypeError(self.op, name, "one value", both)
                misfit = misfit or _Misfit(place, True, name, value, error)
            elif name == NAME and self._is_word(value):
                error = ArgumentTypeError(self.op, name, "a name that is not a word of an argument", describe(value))
                misfit = misfit or _Misfit(place, True, name, value, error)
            elif value is not None:
                values[name] = value
        return _Reading(signature, values, self._unfit(signature, values, misfit))

    def _is_word(self, value: object) -> bool:
        """Return True for a word of some argument: as a positional argument it is that word, and not a call's name."""
        return isinstance(value, str) and any(value in t.words for t in self.takes.values())

    def _unfit(self, signature: Signature, values: Values, misfit: _Misfit | None) -> _Misfit | None:
        """Return the first misfit of a signature, with the number of all; `misfit` is one that is already known."""
        found = [] if misfit is None else [misfit]
        for place, name in enumerate(signature.arguments):
            if name not in values:
                if name in self.needed:
                    found.append(_Misfit(place, False, name, None))
            elif name in self.takes:
                takes, value = self._takes(signature, name), values[name]
                if not takes.fits(value):
                    found.append(_Misfit(place, takes.is_near(value), name, value))
        return replace(min(found, key=lambda m: m.place), all=len(found)) if found else None

    def _foreign(self, signature: Signature, named: Values) -> _Misfit | None:
        """Return the misfit of a named argument that the signature does not have."""
        name = next((n for n in named if n not in signature.arguments), None)
        if name is None:
            return None
        error = ArgumentTypeError(self.op, name, f"no value, since '{signature.label}' lacks it", describe(named[name]))
        return _Misfit(-1, False, name, named[name], error)

    def _beyond(self, signature: Signature, given: tuple[object, ...]) -> _Misfit | None:
        """Return the misfit of more arguments than a signature has."""
        most = len(signature.arguments) - self.common
        if len(given) <= most:
            return None
        last = signature.arguments[-1]
        error = ArgumentTypeError(self.op, last, "no argument after it", describe(given[most]))
        return _Misfit(len(signature.arguments), False, last, given[most], error)

    def _takes(self, signature: Signature, name: str) -> Takes:
        form, own = signature.forms.get(name), self.takes[name]
        return own if form is None else form.takes(own)

    def _converted(self, reading: _Reading) -> tuple[object, ...]:
        values = reading.values
        for name, form in reading.signature.forms.items():
            if values.get(name) is not None:
                values = form.convert(self.op, name, values)
        return tuple(values.get(n) for n in self.rest)

    # All signatures ---------------------------------------------------------------------------------

    def _only(self, fitting: Sequence[_Reading]) -> _Reading:
        """Return the reading of a call that has only one."""
        first, *others = fitting
        for other in others:
            if self._differ(first, other):
                raise self._unclear(first, other)
        return first

    def _differ(self, first: _Reading, second: _Reading) -> bool:
        """Return True if two readings give an argument different values; a name has no effect."""
        pairs = zip(self.rest, self._converted(first), self._converted(second), strict=True)
        return any(n != NAME and a is not b and not (type(a) is type(b) and _equal(a, b)) for n, a, b in pairs)

    def _unclear(self, first: _Reading, second: _Reading) -> ArgumentValueError:
        shared = self._shared(first, second)
        ways, asked = [], []
        for reading in (first, second):
            own = [n for n in reading.signature.arguments if n in reading.values and n not in shared]
            shown = ", ".join(f"{n}={describe(reading.values[n])}" for n in own)
            ways.append(f"{shown or 'nothing'} ('{reading.signature.label}')")
            asked += [(n, reading.values[n]) for n in own]
        expected = f"a keyword, since two signatures fit: {ways[0]} or {ways[1]}"
        name, value = asked[0]
        return ArgumentValueError(self.op, name, expected, f"{describe(value)} by position")

    def _shared(self, first: _Reading, second: _Reading) -> set[str]:
        """Return the arguments that have the same value in two readings."""
        return {n for n, v in first.values.items() if n in second.values and second.values[n] is v}

    def _refused(self, nearest: Sequence[tuple[_Reading, _Misfit]]) -> _Reading:
        """Return a reading whose argument the op refuses; raise an error if the argument also has another form."""
        for reading, misfit in nearest:
            form = reading.signature.forms.get(misfit.argument)
            if isinstance(form, InPlace):
                return reading
            if form is not None:
                takes = self._takes(reading.signature, misfit.argument)
                kind = ArgumentTypeError if items_of(misfit.value, 0) is None else ArgumentValueError
                given = "nothing" if misfit.value is None else describe(misfit.value)
                raise kind(self.op, misfit.argument, f"{takes}", given)
        return nearest[0][0]

    def _nearest(self, readings: Sequence[_Reading]) -> _Reading:
        """Return the reading whose misfit comes last, which the op refuses; else raise its error, or that of ties."""
        misfits = [(r, r.misfit) for r in readings if r.misfit is not None]
        most = max(m.rank for _, m in misfits)
        nearest = [(r, m) for r, m in misfits if m.rank == most]
        reading, misfit = nearest[0]
        if misfit.error is not None:
            raise misfit.error
        others: dict[str, list[str]] = {}
        for r, m in nearest:
            others.setdefault(m.argument, []).append(r.signature.label)
        if len(others) == 1:
            return self._refused(nearest)
        expected = str(self._takes(reading.signature, misfit.argument))
        for r, m in nearest:
            labels = others.pop(m.argument, None)
            if labels is not None and m.argument != misfit.argument:
                named = f"'{m.argument}' ({', '.join(labels)})"
                expected += f", or, as {named}, {self._takes(r.signature, m.argument)}"
        raise ArgumentTypeError(self.op, misfit.argument, expected, describe(misfit.value))


def _alternatives(words: Sequence[str]) -> str:
    """Return `1, 2 or 4`."""
    return " or ".join([*([", ".join(words[:-1])] if len(words) > 1 else []), words[-1]])


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _equal(a: object, b: object) -> bool:
    """Return True if two values of one type are equal; arrays are equal only to themselves."""
    return isinstance(a, bool | int | float | str | list | tuple) and a == b
