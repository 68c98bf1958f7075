"""A call written on the command line: types, shapes, sizes and attributes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opgen.diagnostics import UserError, did_you_mean
from opgen.dtypes import ALIASES, DTYPES, lookup
from opgen.spec.call.shapes import AttrArgument
from opgen.spec.model import model as m

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DIGITS = 18
"""Most characters of an integer: every one of them fits 64 bits."""


_ELSEWHERE = {
    **{f"{short}{bits}": f"float{bits}" for short in ("fp", "f") for bits in (16, 32, 64)},
    **{f"{short}{bits}": f"int{bits}" for short in ("i", "s") for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "byte": "uint8",
    "bf16": "bfloat16",
    "single": "float32",
    "long": "int64",
}
"""Other systems' names of the types, for a hint."""


@dataclass(frozen=True)
class Arguments:
    """Arguments given for an op; `types` is complete."""

    op: m.OpSpec
    types: Mapping[str, str]
    shapes: Mapping[str, tuple[int, ...]]
    sizes: Mapping[str, tuple[int, ...]]
    attrs: Mapping[str, AttrArgument]

    def refuse_beyond(self, structural: Mapping[str, str]) -> None:
        """Without shapes only structural attributes can be given (the kernel is generic in all others)."""
        for name in self.attrs:
            if name not in structural:
                inputs = " ".join(f"--shape {t.name}=..." for t in self.op.tensors)
                raise UserError(f"--attr {name}: the kernel for all sizes takes every value; give shapes too: {inputs}")
        for name, word in structural.items():
            given = self.attrs.get(name, word)
            if given != word or word not in self.op.attr(name).values:
                hint = did_you_mean(str(given), self.op.attr(name).values)
                known = hint or f"expected {' or '.join(self.op.attr(name).values)}"
                raise UserError(f"--attr {name}: there is no value '{given}'; {known}")


def read_arguments(
    op: m.OpSpec, dtypes: Iterable[str], shapes: Iterable[str], sizes: Iterable[str], attrs: Iterable[str]
) -> Arguments:
    """Reads the options; every mistake is a UserError that names the option."""
    tensors = [t.name for t in op.tensors]
    vectors = [i.name for i in op.inputs if isinstance(i, m.Sizes)]
    return Arguments(
        op,
        _types(op, dtypes),
        {n: integers("--shape", n, text) for n, text in _named("--shape", shapes, tensors).items()},
        {n: integers("--sizes", n, text) for n, text in _named("--sizes", sizes, vectors).items()},
        {n: _attribute(op, n, text) for n, text in _named("--attr", attrs, _attr_names(op)).items()},
    )


def _attr_names(op: m.OpSpec) -> list[str]:
    return [name for a in op.attrs for name in (a.name, a.alias) if name is not None]


def _named(option: str, given: Iterable[str], known: Sequence[str]) -> dict[str, str]:
    """NAME=TEXT pairs; a name must be known, and is given once."""
    found: dict[str, str] = {}
    for text in given:
        name, value = names_known(option, text, known)
        if name in found:
            raise UserError(f"{option} {name} is given twice")
        found[name] = value
    return found


def names_known(option: str, text: str, known: Sequence[str]) -> tuple[str, str]:
    """Return the name and the value of NAME=VALUE; the name must be known."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"{option} {text}: expected NAME=VALUE")
    if name not in known:
        hint = did_you_mean(name, known) or f"there is {', '.join(known) or 'none'}"
        raise UserError(f"{option} {text}: no such name '{name}'; {hint}")
    return name, value


def _types(op: m.OpSpec, given: Iterable[str]) -> dict[str, str]:
    """Return a type for each type variable: its own, the one for all, float32 if allowed, or the first allowed."""
    for_all: str | None = None
    for_one: dict[str, str] = {}
    for text in given:
        variable, equals, word = text.rpartition("=")
        name = type_name(text, word)
        if not equals:
            for_all = name
        elif op.type_variable(variable) is None:
            known = ", ".join(v.name for v in op.type_variables) or "none"
            raise UserError(f"--dtype {text}: no type variable '{variable}'; there is {known}")
        else:
            for_one[variable] = name
    return {v.name: _allowed(v, for_one.get(v.name, for_all)) for v in op.type_variables}


def type_name(text: str, word: str) -> str:
    """Return the scalar type that a word of an option's text names."""
    dtype = lookup(word)
    if dtype is None:
        known = _ELSEWHERE.get(word.lower())
        hint = f"did you mean '{known}'?" if known else did_you_mean(word, [*DTYPES, *ALIASES])
        raise UserError(f"--dtype {text}: no such type '{word}'" + (f"; {hint}" if hint else ""))
    return dtype.name


def _allowed(variable: m.TypeVariable, name: str | None) -> str:
    allowed = [t.name for t in variable.allowed]
    if name is None:
        return "float32" if "float32" in allowed else allowed[0]
    if name not in allowed:
        raise UserError(f"--dtype {name}: {variable.name} is one of {', '.join(allowed)}")
    return name


def integers(option: str, name: str, text: str) -> tuple[int, ...]:
    """Parse a list such as `1,8,8,3`, `[1, 8, 8, 3]` or nothing."""
    items = [item.strip() for item in text.strip().removeprefix("[").removesuffix("]").split(",")]
    if items == [""]:
        return ()
    if not all(_INTEGER.fullmatch(item) for item in items):
        raise UserError(f"{option} {name}={_shown(text)}: expected integers with commas between them")
    if any(len(item) > _DIGITS for item in items):
        raise UserError(f"{option} {name}={_shown(text)}: expected integers of at most {_DIGITS} digits")
    return tuple(int(item) for item in items)


def _shown(text: str) -> str:
    """Return a text as a message repeats it."""
    return text if len(text) <= 60 else f"{text[:57]}..."


def _attribute(op: m.OpSpec, name: str, text: str) -> AttrArgument:
    """Return the value that a text means for an attribute; whether it fits is checked with the call."""
    attr = next(a for a in op.attrs if name in (a.name, a.alias))
    if attr.kind in ("enum", "layout"):
        is_list = attr.payload is not None and text[:1] in ("[", "-", *"0123456789")
        return integers("--attr", name, text) if is_list else text
    if attr.kind == "bool":
        if text.lower() not in ("true", "false"):
            raise UserError(f"--attr {name}={_shown(text)}: expected true or false")
        return text.lower() == "true"
    if attr.kind == "float" and not attr.shape:
        try:
            return float(text)
        except ValueError:
            raise UserError(f"--attr {name}={_shown(text)}: expected a number") from None
    values = integers("--attr", name, text)
    return values if attr.shape or len(values) != 1 else values[0]


def partial_call(op: m.OpSpec, option: str, parts: Sequence[str]) -> m.Specialization:
    """Return the calls of `NAME=VALUE` parts: dimensions, attributes and type variables; the rest is open."""
    words = {v.name: [t.name for t in v.allowed] for v in op.type_variables}
    words |= {a.name: list(a.values) for a in op.attrs if a.values}
    lists = {a.name: a.shape for a in op.attrs if a.shape}
    known = {*words, *lists, *(a.name for a in op.attrs), *_dimensions(op)}
    values: list[tuple[str, m.SpecializedValue]] = []
    for part in parts:
        name, _, text = part.partition("=")
        if name not in known:
            hint = did_you_mean(name, known)
            raise UserError(f"{option}: no dimension, attribute or type '{name}'" + (f"; {hint}" if hint else ""))
        numbers = text.split(",")
        if name in words and text not in words[name]:
            raise UserError(f"{option}: {name} is one of {', '.join(words[name])}, not '{text}'")
        if name not in words and not all(_INTEGER.fullmatch(n.strip()) for n in numbers):
            raise UserError(f"{option}: expected an integer or integers with commas for {name}, not '{_shown(text)}'")
        if name not in words and any(len(n) > _DIGITS for n in numbers):
            raise UserError(f"{option}: expected integers of at most {_DIGITS} digits for {name}, not '{_shown(text)}'")
        if name not in words and (len(numbers),) != lists.get(name, (1,)):
            raise UserError(
                f"{option}: {name} has {' by '.join(map(str, lists.get(name, (1,))))} elements, not '{text}'"
            )
        whole = tuple(int(n) for n in numbers) if name not in words else ()
        values.append((name, text if name in words else whole if name in lists else whole[0]))
    return m.Specialization(tuple(values))


def _dimensions(op: m.OpSpec) -> set[str]:
    """Return the names of the op's dimensions."""
    dims = [d for t in (*op.tensors, *op.outputs) for d in t.dims]
    dims += [d for i in op.inputs if isinstance(i, m.Sizes) for form in i.forms for d in form]
    return {f for d in dims for f in d.factors if isinstance(f, str)}
