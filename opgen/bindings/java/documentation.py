"""The documentation comments of generated classes, from the spec's text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opgen.bindings.cpp.attributes import optional_attrs
from opgen.bindings.cpp.documentation import (
    attribute_text,
    default_text,
    formula_texts,
    input_text,
    requirement_texts,
    tensor_text,
)
from opgen.bindings.formula import Formula
from opgen.bindings.java.names import ClassNames
from opgen.bindings.java.text import javadoc_text, paragraphs, wrapped
from opgen.spec.model.model import Attr, OpSpec

_TEXT = 110


def class_comment(op: OpSpec, generics: dict[str, str]) -> tuple[str, ...]:
    """Return the lines of a class's comment; `generics` are the type parameters of the type variables."""
    return tuple(_class_comment(op, generics))


def create_comment(
    op: OpSpec, names: ClassNames, form: Sequence[Attr], generics: dict[str, str], first: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the lines of the comment of the method that makes a call; `first` come before its parameters."""
    return tuple(_create_comment(op, names, form, generics, first))


def setter_comments(op: OpSpec) -> dict[str, tuple[str, ...]]:
    """Return the lines of each setter's comment, by the attribute's spelling."""
    comments: dict[str, tuple[str, ...]] = {}
    for attr in optional_attrs(op):
        default = default_text(attr)
        text = attribute_text(op, attr) + (f" {default}." if default is not None else "")
        comments[attr.name] = tuple(wrapped(javadoc_text(text), _TEXT - 4))
        if attr.alias is not None:
            text = f"Another name for `{attr.name}`: not beside it."
            comments[attr.alias] = tuple(wrapped(javadoc_text(text), _TEXT - 4))
    return comments


def output_comments(op: OpSpec) -> dict[str, tuple[str, ...]]:
    """Return the lines of each result's comment."""
    formula = Formula(op)
    return {o.name: tuple(wrapped(javadoc_text(f"{tensor_text(formula, o)} {o.doc}"), _TEXT - 2)) for o in op.outputs}


def _class_comment(op: OpSpec, generics: dict[str, str]) -> Iterator[str]:
    formula = Formula(op)
    yield from paragraphs(op.doc or op.name, _TEXT)
    yield from ("", "<p>Formula:", "", "<pre>")
    for text in formula_texts(op, formula):
        yield from wrapped(javadoc_text(text), _TEXT, "    ")
    yield "</pre>"
    requirements = list(requirement_texts(op, formula))
    if requirements:
        yield from ("", "<p>Required:", "", "<ul>")
        for text in requirements:
            yield from wrapped(f"<li>{javadoc_text(text)}", _TEXT, "    ")
        yield "</ul>"
    if generics:
        yield ""
        yield from _types(op, generics)


def _create_comment(
    op: OpSpec, names: ClassNames, form: Sequence[Attr], generics: dict[str, str], first: Sequence[str]
) -> Iterator[str]:
    formula = Formula(op)
    yield from wrapped(javadoc_text(f"A call of `{op.name}`."), _TEXT)
    yield ""
    yield from _types(op, generics)
    yield from first
    for given in op.inputs:
        yield from _parameter(names.parameters[given.name], input_text(formula, given))
    for attr in form:
        yield from _parameter(names.parameters[attr.name], attribute_text(op, attr))
    if optional_attrs(op):
        yield "@param options what else may be said, in any number"
    yield "@return the call"


def _types(op: OpSpec, generics: dict[str, str]) -> Iterator[str]:
    for v in op.type_variables:
        yield from wrapped(f"@param <{generics[v.name]}> {', '.join(t.name for t in v.allowed)}", _TEXT, "    ")


def _parameter(name: str, text: str) -> list[str]:
    return wrapped(f"@param {name} {javadoc_text(text)}", _TEXT - 2, "    ")
