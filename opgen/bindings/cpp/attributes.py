"""Attributes in C++: which a call must give, which have setters, and how each reaches the C library."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from opgen.bindings.c.names import OpNames, spellings
from opgen.bindings.c.text import string
from opgen.bindings.cpp.names import ClassNames
from opgen.diagnostics import InternalError
from opgen.spec.model.model import Attr, OpSpec

_INT32 = 2**31


@dataclass(frozen=True)
class SetterView:
    """An optional attribute: its setter's argument, where its value is kept, and its declaration there."""

    name: str
    argument: str
    storage: str
    declaration: str
    doc: tuple[str, ...]


@dataclass(frozen=True)
class FieldView:
    """An attribute as it is kept for the C library: the declaration, and the statement that hands it over."""

    name: str
    declaration: str
    put: str


@dataclass(frozen=True)
class ParameterView:
    """A parameter: its type and name, and the field that it fills (None for an input)."""

    type: str
    name: str
    field: str | None = None


def is_required(op: OpSpec, attr: Attr) -> bool:
    """Return True if a call must give the attribute, or (for a list that replaces a word) the other one."""
    if attr.carried_by is not None:
        return is_required(op, op.attr(attr.carried_by))
    return not (attr.has_default or attr.optional)


def required_attrs(op: OpSpec) -> tuple[Attr, ...]:
    """Return the attributes that are parameters, without lists that replace a word."""
    return tuple(a for a in op.attrs if a.carried_by is None and is_required(op, a))


def optional_attrs(op: OpSpec) -> tuple[Attr, ...]:
    return tuple(a for a in op.attrs if not is_required(op, a))


def choices(op: OpSpec) -> list[tuple[Attr, ...]]:
    """Return the required attributes of every form of a call: a word, or the list that may replace it."""
    forms: list[tuple[Attr, ...]] = [()]
    for attr in required_attrs(op):
        each = [attr] if attr.payload is None else [attr, op.attr(attr.payload[1])]
        forms = [(*form, a) for a in each for form in forms]
    return forms


def argument_type(attr: Attr) -> str:
    """Return the type of a parameter, as TensorFlow's generated classes have it."""
    if attr.shape:
        return f"const gtl::ArraySlice<{_element(attr)}>&"
    if attr.kind in ("enum", "layout"):
        return "StringPiece"
    return {"int": "std::int64_t", "float": "double", "bool": "bool"}[attr.kind]


def _element(attr: Attr) -> str:
    if attr.kind == "float":
        return "double"
    bounds = (attr.minimum or 0, attr.maximum or 0)
    return "int" if not attr.wide and all(-_INT32 <= b < _INT32 for b in bounds) else "std::int64_t"


def fields(op: OpSpec, names: OpNames) -> Iterator[FieldView]:
    """Yield the stored fields of a call's attributes; an unset list or word takes the C library's default."""
    for attr in op.attrs:
        for spelling in spellings(attr):
            field = names.fields[spelling]
            if spelling in names.lengths:
                put = f"{field}.Put(&fields.{field}, &fields.{names.lengths[spelling]});"
            elif _may_be_unset(op, attr):
                put = f"if ({field}) fields.{field} = *{field};"
            else:
                put = f"fields.{field} = {field};"
            yield FieldView(field, f"{_stored_type(op, attr)} {field}{_initial(op, attr, scalar_only=True)};", put)


def setters(op: OpSpec, names: ClassNames, docs: dict[str, tuple[str, ...]]) -> Iterator[SetterView]:
    """Yield the optional attributes; an alias has a setter of its own."""
    for attr in optional_attrs(op):
        for spelling in spellings(attr):
            storage = names.storage[spelling]
            stored = _stored_type(op, attr)
            initial = _initial(op, attr, scalar_only=False)
            yield SetterView(
                name=names.setters[spelling],
                argument=argument_type(attr),
                storage=storage,
                declaration=f"{stored} {storage}{initial};",
                doc=docs[spelling],
            )


def _may_be_unset(op: OpSpec, attr: Attr) -> bool:
    """Return True if "not given" differs from the default: with an alias, or with a list that replaces a word."""
    return attr.alias is not None or attr.payload is not None or attr.carried_by is not None


def _stored_type(op: OpSpec, attr: Attr) -> str:
    if attr.shape:
        return f"internal::List<{'double' if attr.kind == 'float' else 'std::int64_t'}>"
    if attr.kind in ("enum", "layout"):
        return "internal::Word"
    plain = argument_type(attr)
    return f"std::optional<{plain}>" if _may_be_unset(op, attr) else plain


def _initial(op: OpSpec, attr: Attr, *, scalar_only: bool) -> str:
    """Return the initializer of a stored field: the default, where it is known here."""
    scalar = not attr.shape and attr.kind in ("int", "float", "bool")
    if _may_be_unset(op, attr) or (scalar_only and not scalar):
        return ""
    if not attr.has_default or attr.default is None:
        return "{}"
    return f"{{{value(attr.default)}}}" if not isinstance(attr.default, tuple) else f"{value(attr.default)}"


def value(given: object) -> str:
    """Return C++ source for a bool, int, float or str, or for a list of such."""
    match given:
        case bool():
            return str(given).lower()
        case int():
            return str(given) if abs(given) < _INT32 else f"std::int64_t{{{given}}}"
        case float():
            return repr(given) if math.isfinite(given) else _special(given)
        case str():
            return string(given)
        case tuple():
            return f"{{{', '.join(value(v) for v in given)}}}"
    raise InternalError(f"no C++ literal for a {type(given).__name__}")


def _special(given: float) -> str:
    if math.isnan(given):
        return "std::numeric_limits<double>::quiet_NaN()"
    return f"{'-' if given < 0 else ''}std::numeric_limits<double>::infinity()"
