"""Attributes in calls of generic ops.

They are checked like a plain op's, as soon as the lengths of lists are known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from opgen.diagnostics import did_you_mean
from opgen.dtypes import lookup
from opgen.spec.call.arguments import AttrArgument, CallError, CallTypeError, settle_attrs, show
from opgen.spec.call.environment import AttrStored
from opgen.spec.check.attributes import build_attrs
from opgen.spec.model import model as m
from opgen.spec.model.model import GenericOp
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report

ANY = "..."
"""The spelling of an arbitrary length in a list type."""


def given_for(op: GenericOp, given: Mapping[str, object]) -> dict[str, AttrArgument]:
    """Map each attribute's name in the spec to the value that a call gives, or to None.

    Callers write `min` for an attribute `min_`.  Raises CallTypeError for an argument that the op does not have.
    """
    decls = {a.name.name: a for a in op.attrs}
    others = {a.alias.name: a.name.name for a in op.attrs if a.alias is not None}
    others |= {name[:-1]: name for name in decls if name.endswith("_")}
    found: dict[str, AttrArgument] = dict.fromkeys(decls)
    for name, value in given.items():
        target = name if name in decls else others.get(name, name)
        if target not in decls:
            near = did_you_mean(name, [*decls, *others])
            raise CallTypeError(op.name, name, "no such argument" + (f" ({near})" if near else ""), repr(value))
        if value is not None:
            found[target] = _plain(decls[target], value)
    return found


def _plain(decl: s.AttrDecl, value: object) -> AttrArgument:
    """Convert a given value for `settle_attrs`: arrays to lists, types to names, and 0 and 1 to bools.

    Callers write `max` for a word `max_` of an enumeration.
    """
    kind = decl.type.kind.name
    if kind == "type":
        name = value if isinstance(value, str) else getattr(value, "name", getattr(value, "__name__", str(value)))
        dtype = lookup(str(name))
        return str(name) if dtype is None else dtype.name
    plain = plain_value(value)
    if isinstance(plain, str) and any(w.name.name == f"{plain}_" for w in decl.type.words):
        return f"{plain}_"
    return bool(plain) if kind == "bool" and isinstance(plain, int) and plain in (0, 1) else plain


def plain_value(value: object) -> AttrArgument:
    """Convert a value to plain numbers, words and lists of them; any other object becomes its text."""
    listed = getattr(value, "tolist", None)
    if listed is not None:
        value = listed()
    if isinstance(value, list | tuple):
        return [plain_value(v) for v in value]
    return value if value is None or isinstance(value, int | float | bool | str) else str(value)


def is_list(decl: s.AttrDecl) -> bool:
    """Return True if an attribute is a list whose length depends on the form."""
    return len(decl.type.shape) == 1 and not (isinstance(decl.type.shape[0], str) and decl.type.shape[0] != ANY)


def concrete(decl: s.AttrDecl, length: int | None) -> s.AttrDecl:
    """Return the declaration for a list of this length, with a default as long; a type becomes an enumeration."""
    kind, default = decl.type, decl.default
    if kind.kind.name == "type":
        names = tuple(s.Word(w.span, s.Ident(w.name.span, _type_name(w.name.name)), None) for w in kind.words)
        kind = s.AttrType(kind.span, s.Ident(kind.kind.span, "enum"), kind.shape, names)
        if isinstance(default, s.Named):
            default = s.Named(default.span, _type_name(default.name))
    if length is not None:
        kind = dataclasses.replace(kind, shape=(str(length),) if length else ())
        if default is not None and not isinstance(default, s.ListValue):
            default = s.ListValue(default.span, (default,) * length)
    return dataclasses.replace(decl, type=kind, default=default, layout=None if length is not None else decl.layout)


def _type_name(name: str) -> str:
    dtype = lookup(name)
    return name if dtype is None else dtype.name


def settled(op: GenericOp, decl: s.AttrDecl, length: int | None, value: AttrArgument) -> AttrStored:
    """Return the value that a call gives an attribute, or its default; an absent list is empty.

    Raises CallError for an illegal value, and DiagnosticError if the attribute is declared wrongly.
    """
    name = decl.name.name
    if length == 0:
        if value not in (None, [], ()):
            raise CallError(op.name, name, "an empty list", show(value))
        return ()
    made = concrete(decl, length)
    if decl.type.kind.name == "type":
        return _type_of(op, made, value)
    report = Report()
    attrs = build_attrs(report, [dataclasses.replace(made, layout=None, alias=None)])
    report.raise_if_any()
    spec = _holder(op, attrs[0])
    return settle_attrs(spec, {} if value is None else {name: value})[0][name]


def _type_of(op: GenericOp, decl: s.AttrDecl, value: AttrArgument) -> str:
    """Return the name of the type that an attribute gives."""
    known = [w.name.name for w in decl.type.words]
    name = decl.default.name if value is None and isinstance(decl.default, s.Named) else value
    if not isinstance(name, str) or name not in known:
        error = CallTypeError if value is None else CallError
        raise error(op.name, decl.name.name, f"one of {', '.join(known)}", "nothing" if name is None else show(name))
    return name


def words_of(op: GenericOp, decl: s.AttrDecl, value: AttrArgument) -> tuple[str, ...]:
    """Return a list of words as long as the declared list.  Raises CallError for an illegal one."""
    length = int(str(decl.type.shape[0])) if decl.type.shape else 0
    known = [w.name.name for w in decl.type.words]
    given = (
        [i.name for i in decl.default.items if isinstance(i, s.Named)] if isinstance(decl.default, s.ListValue) else []
    )
    words = [str(v) for v in value] if isinstance(value, list | tuple) else [str(value)] if value is not None else given
    if len(words) != length or any(w not in known for w in words):
        expected = f"a list of {length}, each one of {', '.join(known)}"
        raise CallError(op.name, decl.name.name, expected, show(value))
    return tuple(words)


def _holder(op: GenericOp, attr: m.Attr) -> m.OpSpec:
    """Return an op with this single attribute, so that its value is checked as an op's attributes are."""
    return m.OpSpec(op.name, op.function_name, (), (), (), (attr,), (), (), ())
