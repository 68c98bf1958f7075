"""A call of a generic op on the command line: the plain op that it makes, and its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

from opgen.cli.arguments import Arguments, integers, names_known, type_name
from opgen.diagnostics import UserError
from opgen.dtypes import lookup
from opgen.spec.call.shapes import AttrArgument
from opgen.spec.generic import Argument, Instance, instance, known_sizes
from opgen.spec.generic.examples import examples_of
from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report

OPEN = "?"
"""A size that is left open: of an op with such sizes is the kernel for all of them."""


@dataclass(frozen=True)
class Given:
    """The options of a command: NAME=VALUE each."""

    dtypes: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    attrs: tuple[str, ...] = ()
    results: int | None = None


def read_form(module: m.Module, op: m.GenericOp, given: Given) -> tuple[m.Module, Arguments]:
    """Return the plain op of a call, in a module of its own, and the call's arguments for it.

    Raises UserError, naming the option, and CallError for a call that the op does not take.
    """
    form = Form(op, given)
    form.require_all()
    arguments = form.arguments()
    made = form.instance(module, given.results)
    alone = m.Module(module.name, (made.op,), made.functions)
    shapes = form.flat_shapes(arguments)
    known = {i.name: shapes[at] for i, at in zip(made.op.inputs, made.inputs, strict=True)}
    words = {a.name for a in made.op.attrs if a.kind in ("enum", "layout")}
    attrs = {n: v for n, v in made.attributes.items() if not form.open or n in words}
    types = {v.name: made.types[v.name] for v in made.op.type_variables}
    return alone, Arguments(made.op, types, {} if form.open else known, {}, attrs)


class Form:
    """Options given for a generic op."""

    def __init__(self, op: m.GenericOp, given: Given) -> None:
        self.op = op
        tensors = [i.name.name for i in op.inputs if isinstance(i, s.TensorDecl | s.SeveralDecl)]
        statics = [i.name.name for i in op.inputs if isinstance(i, s.StaticDecl)]
        self.shapes = _several("--shape", given.shapes, tensors)
        self.values = _several("--sizes", given.sizes, statics)
        self.attrs = _several("--attr", given.attrs, [a.name.name for a in op.attrs])
        self.types = _types(op, given.dtypes)
        self._once(("--shape", self.shapes), ("--sizes", self.values), ("--attr", self.attrs))
        marks = [OPEN in text for texts in self.shapes.values() for text in texts if text]
        self.open = bool(marks) and all(marks)
        if any(marks) and not self.open:
            raise UserError(f"--shape: the sizes of all inputs are open ({OPEN},{OPEN}), or none are")

    def _once(self, *options: tuple[str, Mapping[str, Sequence[str]]]) -> None:
        several = {i.name.name for i in self.op.inputs if isinstance(i, s.SeveralDecl)}
        for option, found in options:
            for name, texts in found.items():
                if len(texts) > 1 and name not in several:
                    raise UserError(f"{option} {name} is given twice")

    def require_all(self) -> None:
        """Raise an error with the missing parts of a call of the op, if there are any."""
        needed = self.missing()
        if needed:
            example = " ".join(f"{option} {quote(text)}" for option, text in first_example(self.op))
            such = f"; such a call is {example}" if example else ""
            message = f"'{self.op.name}' is generic: its kernels are those of calls"
            listed = " ".join(f"{option} {name}=..." for option, name in needed)
            raise UserError(f"{message}, and this one lacks {listed}{such}")

    def missing(self) -> list[tuple[str, str]]:
        """Return the missing parts of a call of the op: the option, and the name in it."""
        needed = [("--shape", n) for n in _needed(self.op, static=False) if n not in self.shapes]
        needed += [("--sizes", n) for n in _needed(self.op, static=True) if n not in self.values]
        return needed + [("--attr", a.name.name) for a in self.op.attrs if _is_missing(a, self.attrs)]

    def instance(self, module: m.Module, results: int | None) -> Instance:
        """Return the plain op of the call."""
        return instance(module, self.op.name, self.arguments(), self.attributes(), results)

    def arguments(self) -> list[Argument | None]:
        """Return the call's arguments, in order."""
        found: list[Argument | None] = []
        for decl in self.op.inputs:
            name = decl.name.name
            if isinstance(decl, s.StaticDecl):
                found.append(self._static(decl))
            elif isinstance(decl, s.TensorDecl | s.SeveralDecl):
                dtype = self._type_of(decl.dtype)
                some: list[Argument | None] = [
                    Argument(dtype, _rank(text), sizes=known_sizes(self.op, len(found), self._shape(name, text)))
                    for text in self.shapes.get(name, ())
                ]
                found += some or [None]
        return found

    def _shape(self, name: str, text: str) -> tuple[int, ...]:
        """Return the shape of an argument, as far as it is known."""
        return () if self.open else integers("--shape", name, text)

    def flat_shapes(self, arguments: Sequence[Argument | None]) -> list[tuple[int, ...]]:
        """Return the shape of each argument; empty if it is not a tensor, or omitted."""
        found: list[tuple[int, ...]] = []
        for decl in self.op.inputs:
            texts = () if isinstance(decl, s.StaticDecl) else self.shapes.get(decl.name.name, ())
            if self.open:
                found += [()] * max(1, len(texts))
            else:
                found += [integers("--shape", decl.name.name, text) for text in texts] or [()]
        return found[: len(arguments)]

    def attributes(self) -> dict[str, AttrArgument]:
        """Return the values of attributes; whether they fit is checked with the call."""
        decls = {a.name.name: a for a in self.op.attrs}
        return {name: _value(decls[name], text) for name, (text,) in self.attrs.items()}

    def _static(self, decl: s.StaticDecl) -> Argument | None:
        texts = self.values.get(decl.name.name)
        if not texts:
            return None
        floats = self._type_of(decl.dtype) == "float32"
        numbers = _floats(decl.name.name, texts[0]) if floats else integers("--sizes", decl.name.name, texts[0])
        dtype = "float32" if floats else "int64"
        if decl.scalar and len(numbers) == 1:
            return Argument(dtype, 0, numbers[0])
        return Argument(dtype, 1, numbers)

    def _type_of(self, ident: s.Ident) -> str:
        dtype = lookup(ident.name)
        return self.types.get(ident.name, ident.name if dtype is None else dtype.name)


def _several(option: str, given: Iterable[str], known: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for text in given:
        name, value = names_known(option, text, known)
        found.setdefault(name, []).append(value)
    return found


def _rank(text: str) -> int:
    return len([item for item in text.strip().removeprefix("[").removesuffix("]").split(",") if item.strip()])


def _types(op: m.GenericOp, given: Iterable[str]) -> dict[str, str]:
    """Return a type for each type variable: its own or the one for all, float32 if allowed, or the first allowed."""
    variables = {i.name.name: _allowed(i) for i in op.decl.items if isinstance(i, s.TypeDecl)}
    found = {name: "float32" if "float32" in allowed else allowed[0] for name, allowed in variables.items()}
    for text in sorted(given, key=lambda t: "=" in t):  # one for all goes first
        variable, equals, word = text.rpartition("=")
        name = type_name(text, word)
        if equals and variable not in variables:
            raise UserError(f"--dtype {text}: no type variable '{variable}'; there is {', '.join(variables) or 'none'}")
        fitting = [v for v, allowed in variables.items() if name in allowed and (not equals or v == variable)]
        if not fitting:
            which = variable if equals else next(iter(variables), "nothing")
            allowed = ", ".join(variables.get(which, ()))
            raise UserError(f"--dtype {text}: {which} is one of {allowed}")
        found |= dict.fromkeys(fitting, name)
    return found


def _allowed(decl: s.TypeDecl) -> list[str]:
    return [t.name for t in (lookup(i.name) for i in decl.allowed) if t is not None]


def _needed(op: m.GenericOp, static: bool) -> Iterator[str]:
    """Yield the inputs of a kind that a call has to give."""
    for decl in op.inputs:
        optional = isinstance(decl, s.TensorDecl | s.StaticDecl) and decl.optional
        if isinstance(decl, s.StaticDecl) == static and not optional:
            yield decl.name.name


def _is_missing(decl: s.AttrDecl, given: Mapping[str, object]) -> bool:
    return decl.default is None and not decl.compatibility and decl.name.name not in given


def _value(decl: s.AttrDecl, text: str) -> AttrArgument:
    name, kind = decl.name.name, decl.type.kind.name
    if kind in ("enum", "layout", "type"):
        words = [w.strip() for w in text.strip().removeprefix("[").removesuffix("]").split(",")]
        return words if decl.type.shape else text
    if kind == "equation":
        return text
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise UserError(f"--attr {name}={text}: expected true or false")
        return text.lower() == "true"
    values: tuple[float, ...] = _floats(name, text, "--attr") if kind == "float" else integers("--attr", name, text)
    return values if decl.type.shape or len(values) != 1 else values[0]


def _floats(name: str, text: str, option: str = "--sizes") -> tuple[float, ...]:
    items = [item for item in text.strip().removeprefix("[").removesuffix("]").split(",") if item.strip()]
    try:
        return tuple(map(float, items))
    except ValueError:
        raise UserError(f"{option} {name}={text}: expected numbers with commas between them") from None


# Examples ---------------------------------------------------------------------------------------


def first_example(op: m.GenericOp) -> Iterator[tuple[str, str]]:
    """Yield the arguments in an op's first example: the option, and NAME=VALUE; nothing if it has none."""
    found = next(iter(examples_of(Report(), op)), None)
    values = {} if found is None else found[1].values
    for decl in op.inputs:
        name = decl.name.name
        value = values.get(name)
        if value is None:
            continue
        if isinstance(decl, s.StaticDecl):
            yield "--sizes", f"{name}={_text(value)}"
        else:
            each = value if isinstance(decl, s.SeveralDecl) and isinstance(value, tuple) else (value,)
            yield from (("--shape", f"{name}={_text(_shape(v))}") for v in each)
    for attr in op.attrs:
        if attr.name.name in values:
            yield "--attr", f"{attr.name.name}={_text(values[attr.name.name])}"


def _shape(value: m.ExampleValue) -> tuple[int, ...]:
    return (len(value), *(_shape(value[0]) if value else ())) if isinstance(value, tuple) else ()


def _text(value: m.ExampleValue) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
