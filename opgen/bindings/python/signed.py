"""The function of an op with several signatures: an overload for each, and the data by which calls are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from opgen.bindings.python.attributes import (
    ParameterView,
    annotation_of,
    parameters,
    plain_words,
    tuple_literal,
)
from opgen.bindings.python.scope import OpScope
from opgen.bindings.python.text import comment, literal
from opgen.bindings.signatures import other_functions, other_names
from opgen.spec.check.signatures import common
from opgen.spec.model.model import Attr, Elements, InPlace, OpSpec, Signature, SignatureArgument


@dataclass(frozen=True)
class OverloadView:
    """One signature for type checkers: a label, and the parameters; from `keyword_only` on they have no positions."""

    label: str
    parameters: tuple[ParameterView, ...]
    keyword_only: int


@dataclass(frozen=True)
class AliasView:
    """Another name of a parameter; `error` is the one of a call that gives both."""

    other: str
    parameter: str
    error: str


@dataclass(frozen=True)
class SignedView:
    """A function with several signatures.

    `positional` are the parameters that all signatures begin with, `keywords` the others by their names, `aliases` the
    lines that take values given by another name; `data` are the lines of the `Signatures` that read its calls.
    """

    overloads: tuple[OverloadView, ...]
    positional: tuple[ParameterView, ...]
    keywords: tuple[ParameterView, ...]
    aliases: tuple[AliasView, ...]
    data: str
    others: tuple[str, ...]


def signed_view(op: OpSpec, scope: OpScope, rest: tuple[str, ...]) -> SignedView | None:
    """Return the view of an op's function; None for one with one signature.

    `rest` are the arguments besides tensors.
    """
    if not op.signatures:
        return None
    count = common(op.signatures)
    own = dict(zip(op.signature, parameters(op, scope), strict=True))
    return SignedView(
        overloads=tuple(_overloads(op, own)),
        positional=tuple(_front(op, own, op.signature[:count])),
        keywords=tuple(
            [_optional(own[n].name, _annotation(op, own, n)) for n in op.signature[count:]]
            + [_optional(other, _annotation(op, own, of)) for other, of in other_names(op).items()]
        ),
        aliases=tuple(_alias(op, own[of].name, of, other) for other, of in other_names(op).items()),
        data=_data(op, count, rest),
        others=other_functions(op),
    )


# Parameters -----------------------------------------------------------------------------------------


def _optional(name: str, annotation: str) -> ParameterView:
    return ParameterView(name, _or_none(annotation), "None")


def _or_none(annotation: str) -> str:
    return annotation if annotation.endswith("| None") else f"{annotation} | None"


def _annotation(op: OpSpec, own: dict[str, ParameterView], name: str) -> str:
    """Return the types that an argument takes in any signature."""
    kinds = [_annotated(op, own, a) for s in op.signatures for a in s.arguments if a.name == name]
    parts = dict.fromkeys(part for kind in kinds for part in kind.split(" | "))
    words = next((p for p in parts if p.startswith("Literal[")), "")  # the op's own come first: all there are
    kept = [p for p in parts if p == words or not p.startswith("Literal[")]
    return " | ".join(sorted(kept, key="None".__eq__))


def _front(op: OpSpec, own: dict[str, ParameterView], names: tuple[str, ...]) -> Iterator[ParameterView]:
    """Yield the parameters by position: those that may be omitted, or be given by another name, are None then."""
    renamed = set(other_names(op).values())
    defaulted = {a.name for s in op.signatures for a in s.arguments if a.default is not None}
    optional = False
    for name in names:
        optional = optional or own[name].default is not None or name in renamed | defaulted
        annotation = _annotation(op, own, name)
        yield _optional(own[name].name, annotation) if optional else ParameterView(own[name].name, annotation)


def _overloads(op: OpSpec, own: dict[str, ParameterView]) -> Iterator[OverloadView]:
    """Yield an overload for each signature, and one for each with other names, which are given by keyword alone.

    No overload repeats calls that another one takes: type checkers refuse an overload that can never match.
    """
    positional: list[tuple[ParameterView, ...]] = []
    keywords: list[set[ParameterView]] = []
    for signature in op.signatures:
        views = tuple(_overload(op, own, a, a.name) for a in signature.arguments)
        if views not in positional:
            positional.append(views)
            yield OverloadView(comment(signature.label), views, len(views))
    for signature in op.signatures:
        named = [i for i, a in enumerate(signature.arguments) if a.called != (a.name,)]
        views = tuple(_overload(op, own, a, a.called[-1]) for a in signature.arguments)
        if named and not any(set(views) <= known for known in keywords):
            keywords.append(set(views))
            yield OverloadView(comment(signature.label), views, named[0])


def _overload(op: OpSpec, own: dict[str, ParameterView], argument: SignatureArgument, called: str) -> ParameterView:
    """Return an argument of a signature under one of its names."""
    name = own[argument.name].name if called == argument.name else called
    annotation = _annotated(op, own, argument)
    if argument.default is not None:
        return ParameterView(name, _or_none(annotation), literal(argument.default))
    return ParameterView(name, annotation, own[argument.name].default)


def _annotated(op: OpSpec, own: dict[str, ParameterView], argument: SignatureArgument) -> str:
    """Return the type that an argument takes in one signature."""
    plain = own[argument.name].annotation
    if isinstance(argument.form, Elements):
        return f"int | {plain}"
    if isinstance(argument.form, InPlace):
        attr = op.attr(argument.name)
        words = f"Literal[{', '.join(literal(w) for w in attr.values if w != argument.form.word)}]"
        pairs = len(op.attr(argument.form.payload).shape) > 1
        listed = "Sequence[Integers]" if pairs else "Integers"
        return plain.replace(annotation_of(op, attr), f"{words} | {listed}")
    return plain


def _alias(op: OpSpec, argument: str, name: str, other: str) -> AliasView:
    return AliasView(other, argument, f"Checks({literal(op.name)}).both({literal(name)}, {literal(other)})")


# The data -------------------------------------------------------------------------------------------


def _data(op: OpSpec, count: int, rest: tuple[str, ...]) -> str:
    """Return the `Signatures` of an op as source."""
    inputs = {i.name for i in op.inputs}
    names = [n for n in op.signature if n not in inputs]
    needed = tuple(n for n in names if (a := _attr(op, n)) is not None and n == a.name and not a.has_default)
    takes = ", ".join(f"{literal(n)}: {_takes(op, n)}" for n in names)
    signatures = ", ".join(_signature(op, s) for s in op.signatures)
    return (
        f"Signatures({literal(op.name)}, rest={tuple_literal(rest)}, common={count}, needed={tuple_literal(needed)}, "
        f"takes={{{takes}}}, signatures=({signatures}))"
    )


def _signature(op: OpSpec, signature: Signature) -> str:
    parts = [literal(signature.label), tuple_literal(signature.names)]
    forms = [f"{literal(a.name)}: {_form(op, a)}" for a in signature.arguments if a.form is not None]
    defaults = [f"{literal(a.name)}: {literal(a.default)}" for a in signature.arguments if a.default is not None]
    parts += [f"forms={{{', '.join(forms)}}}"] if forms else []
    parts += [f"defaults={{{', '.join(defaults)}}}"] if defaults else []
    return f"Signature({', '.join(parts)})"


def _form(op: OpSpec, argument: SignatureArgument) -> str:
    attr = op.attr(argument.name)
    if isinstance(argument.form, Elements):
        layout = op.attr(attr.layout or "")
        order = layout.default if layout.has_default else layout.values[0]
        given = (argument.form.letters, argument.form.fill, layout.name, order)
        return f"Elements({', '.join(map(literal, given))})"
    if argument.form is None:
        return ""
    payload = op.attr(argument.form.payload)
    words = tuple(w for w in attr.values if w != argument.form.word)
    bounds = [f"{n}={v}" for n, v in (("minimum", payload.minimum), ("maximum", payload.maximum)) if v is not None]
    given_ = [tuple_literal(words), literal(argument.form.word), literal(payload.name), tuple_literal(payload.shape)]
    return f"InPlace({', '.join([*given_, *bounds])})"


def _attr(op: OpSpec, name: str) -> Attr | None:
    return next((a for a in op.attrs if name in (a.name, a.alias)), None)


def _takes(op: OpSpec, name: str) -> str:
    """Return the values of an argument as source."""
    attr = _attr(op, name)
    if attr is None:
        return "Takes(text=True)"
    if attr.kind == "bool":
        return "Takes(flag=True)"
    if attr.kind in ("enum", "layout"):
        lists = "" if attr.payload is None else f", lengths=({op.attr(attr.payload[1]).shape[0]},)"
        return f"Takes(words={tuple_literal(plain_words(attr))}{lists})"
    if attr.shape:
        return f"Takes(lengths={tuple_literal((prod(attr.shape), *([0] if attr.optional else [])))})"
    return "Takes(number=True)" if attr.kind == "float" else "Takes(integer=True)"
