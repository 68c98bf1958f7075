"""Parser of a schedule's text: one step a line, `#` begins a comment.

split x 14 tail=min -> x_o, x_i reorder n, y, x_o, k_o, r, s, c, x_i, k_i unroll x_i vectorize k_i

The classes of steps declare the syntax of a line (`declaration.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from opgen.diagnostics import Source, Span, did_you_mean
from opgen.schedule.declaration import Field, Form, form_of
from opgen.schedule.errors import ScheduleError
from opgen.schedule.steps import PRIMITIVES, Step
from opgen.schedule.values import Condition, Word

_TOKEN = re.compile(r"->|[,=]|-?\d+|[A-Za-z_][\w.]*|\S")
_SIGN = re.compile(r"[^\dA-Za-z_]")
LINE = 4096
"""Largest number of characters in a line."""
STEPS = 500
"""Largest number of steps in a schedule: ten times as many as the automatic scheduler takes."""


@dataclass
class Line:
    """A parsed step: its command, arguments, `name=value` options, and names after the arrow."""

    command: Word
    arguments: list[Word] = field(default_factory=list)
    options: dict[str, Word] = field(default_factory=dict)
    made: list[Word] = field(default_factory=list)


def parse_steps(text: str, name: str = "<schedule>") -> tuple[Step, ...]:
    """Return the steps of a text; refuses with the place of the first mistake."""
    source = Source(name, text)
    result: list[Step] = []
    for number, row in enumerate(text.split("\n"), start=1):
        if len(row) > LINE:
            place = Span(source, number, LINE + 1, number, LINE + 2)
            raise ScheduleError(f"a line has more than {LINE} characters", span=place)
        words = _words(source, number, row)
        if words and len(result) == STEPS:
            raise ScheduleError(f"a schedule has more than {STEPS} steps", span=words[0].span)
        if words:
            result.append(_step(words))
    return tuple(result)


def _words(source: Source, number: int, row: str) -> list[Word]:
    code = row.split("#", 1)[0]
    found = _TOKEN.finditer(code)
    return [Word(m.group(), Span(source, number, m.start() + 1, number, m.end() + 1)) for m in found]


def _step(words: Sequence[Word]) -> Step:
    command = words[0]
    if command.text not in PRIMITIVES:
        known = sorted(PRIMITIVES)
        hint = did_you_mean(command.text, known) or f"the steps are {', '.join(known)}"
        raise ScheduleError(f"there is no step '{command.text}'", hint, command.span)
    make: Callable[..., Step] = PRIMITIVES[command.text]
    form = form_of(PRIMITIVES[command.text])
    line = _line(_with_condition(form, words))
    _require_shape(form, line)
    return make(**_values(form, line), span=command.span)


def _with_condition(form: Form, words: Sequence[Word]) -> Sequence[Word]:
    """Return the words, with those of a condition, which extends to the arrow, as one word."""
    at = next((n for n, f in enumerate(form.arguments, 1) if isinstance(f.value, Condition)), len(words))
    end = next((n for n, w in enumerate(words) if w.text == "->"), len(words))
    if at >= end:
        return words
    span = words[at].span.through(words[end - 1].span)
    text = span.source.line(span.line)[span.column - 1 : span.end_column - 1]
    return [*words[:at], Word(text, span), *words[end:]]


def _line(words: Sequence[Word]) -> Line:
    line, at, target = Line(words[0]), 1, None
    while at < len(words):
        word = words[at]
        if word.text == "->":
            target = line.made
        elif word.text == ",":
            pass
        elif at + 2 < len(words) and words[at + 1].text == "=":
            line.options[word.text] = words[at + 2]
            at += 2
        elif _SIGN.fullmatch(word.text):
            raise ScheduleError(f"'{word.text}' is not expected here", span=word.span)
        else:
            (line.arguments if target is None else target).append(word)
        at += 1
    return line


def _require_shape(form: Form, line: Line) -> None:
    """Refuse a line with the wrong number of parts."""
    command, usage = line.command, f"write {form.usage}"
    keys = [f.key for f in form.options]
    for name, word in line.options.items():
        if name not in keys:
            raise ScheduleError(f"{command.text} has no option '{name}'", usage, word.span)
    if not (_fits(line.arguments, form.arguments) and _are_named(line.made, form.made)):
        raise ScheduleError(f"{command.text} is not complete, or has too much", usage, command.span)
    for f in form.options:
        if f.option and f.option.lacks and f.key not in line.options:
            raise ScheduleError(f"{command.text} needs {f.option.lacks}", usage, command.span)


def _fits(words: Sequence[Word], fields: Sequence[Field]) -> bool:
    """Return True if there is a word for each field; a last field that is a list takes the rest, two words in all."""
    if fields and fields[-1].many:
        return len(words) >= max(2, len(fields))
    return len(words) == len(fields)


def _are_named(words: Sequence[Word], made: Sequence[Field]) -> bool:
    """Return True if there is a name for each made thing, or none and each has a default name."""
    if not words or (made and made[-1].many):
        return not any(f.is_unnamed for f in made)
    return len(words) == len(made)


def _values(form: Form, line: Line) -> dict[str, object]:
    """Return the values of the fields that a line gives, or that have a default in the text."""
    given = [*_by_field(form.arguments, line.arguments), *_by_field(form.made, line.made)]
    given += [(f, [line.options[f.key]]) for f in form.options if f.key in line.options]
    values = {f.name: f.read(words) for f, words in given}
    for f in form.fields:
        if f.name not in values and f.default is not None:
            values[f.name] = f.read([Word(f.default.format(**values), line.command.span)])
    return values


def _by_field(fields: Sequence[Field], words: Sequence[Word]) -> Iterator[tuple[Field, Sequence[Word]]]:
    for n, f in enumerate(fields):
        if f.many or n < len(words):
            yield f, words[n:] if f.many else words[n : n + 1]
