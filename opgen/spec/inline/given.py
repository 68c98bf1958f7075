"""Attributes that one op passes to another: known values, or values that only a call of the calling op supplies."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from opgen.diagnostics import Span
from opgen.spec.call.arguments import AttrArgument, CallError, settle_attrs
from opgen.spec.call.environment import AttrStored
from opgen.spec.inline.passed import Bound, Given
from opgen.spec.model import model as m
from opgen.spec.resolve.kinds import BOOL, INT, NUMBER, REAL, number
from opgen.spec.resolve.resolve import Resolver
from opgen.spec.resolve.scope import Scope
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural


class Refused(Exception):
    """Refusal of a call; the reason is noted."""


def literal(scope: Scope, tree: s.Expression | s.Text) -> AttrArgument:
    """Return the value of a number, a word, a text or a list of them; None if only a call determines it."""
    match tree:
        case s.Text():
            return tree.value
        case s.Constant():
            return number(tree)
        case s.Unary(op="-", operand=s.Constant() as operand):
            value = number(operand)
            return None if value is None or isinstance(value, bool) else -value
        case s.Named():
            return None if tree.name in {*scope.known(), *scope.later, *scope.poisoned} else tree.name
        case s.Listed():
            items = [literal(scope, i) for i in tree.items]
            return None if any(i is None for i in items) else items
    return None


class Giving:
    """Checker of the attributes of one call; `bounds` are requirements on those that only a call determines."""

    def __init__(self, scope: Scope, caller: str, op: m.OpSpec, call: s.OpCall) -> None:
        self.scope = scope
        self.caller = caller
        self.op = op
        self.call = call
        self.bounds: list[Bound] = []

    def given(self, attr: m.Attr, keyword: s.Keyword | None) -> Given:
        """Return an attribute's value; its default if none is given."""
        if keyword is None:
            return self.settled(attr, self._settle(attr, None, self.call.call.span))
        value = literal(self.scope, keyword.value)
        if value is not None or isinstance(keyword.value, s.Text):
            if attr.payload is not None and (isinstance(value, list) or value == attr.payload[0]):
                self._refuse("S013", f"'{self._name(attr)}' takes a word here", keyword.value.span)
            return self.settled(attr, self._settle(attr, value, keyword.value.span))
        if attr.kind in ("enum", "layout"):
            return self._word(attr, keyword.value)
        return self._list(attr, keyword.value) if attr.shape else Given({(): self._scalar(attr, keyword.value, ())})

    def settled(self, attr: m.Attr, value: AttrStored) -> Given:
        """Return an attribute with a known value."""
        if isinstance(value, str):
            return Given(word=value)
        if not isinstance(value, tuple):
            return Given({(): m.Number(value, self.call.span)})
        if not value:
            return Given(present=m.Number(False))
        return Given({at: m.Number(v, self.call.span) for at, v in zip(_positions(attr), value, strict=True)})

    def _settle(self, attr: m.Attr, value: AttrArgument, span: Span) -> AttrStored:
        """Return the value of an attribute as in any call, lists in the caller's order."""
        alone = replace(attr, layout=None, payload=None, alias=None)
        holder = m.OpSpec(self.op.name, self.op.function_name, (), (), (), (alone,), (), (), ())
        try:
            return settle_attrs(holder, {} if value is None else {attr.name: value})[0][attr.name]
        except CallError as error:
            message = f"'{self.op.name}' in '{self.caller}': argument '{attr.name}': expected {error.expected}"
            self._refuse("S020", f"{message}, given {error.given}", span)

    def _refuse(self, code: str, message: str, span: Span, help: str | None = None) -> NoReturn:
        self.scope.report.add(code, message, span, help)
        raise Refused

    def _name(self, attr: m.Attr) -> str:
        return f"{attr.name}' of '{self.op.name}"

    # Values that only a call determines -----------------------------------------------------------

    def _attribute(self, tree: s.Expression | s.Text) -> m.Attr | None:
        """Return the attribute of the calling op that an expression names, or None."""
        return self.scope.attrs.get(tree.name) if isinstance(tree, s.Named) else None

    def _word(self, attr: m.Attr, tree: s.Expression | s.Text) -> Given:
        own = self._attribute(tree)
        if own is None or own.kind != attr.kind:
            self._refuse("S020", f"'{self._name(attr)}' is one of {', '.join(attr.values)}", tree.span)
        allowed = [v for v in attr.values if attr.payload is None or v != attr.payload[0]]
        extra = next((v for v in own.values if v not in allowed), None)
        if extra is not None:
            message = f"'{own.name}' may be {extra}, which '{self._name(attr)}' may not"
            self._refuse("S020", message, tree.span, f"it may be {', '.join(allowed)}")
        return Given(enum=own)

    def _list(self, attr: m.Attr, tree: s.Expression | s.Text) -> Given:
        own = self._attribute(tree)
        positions = _positions(attr)
        if own is not None:
            if own.kind != attr.kind or own.shape != attr.shape:
                self._refuse("S020", f"'{own.name}' is no list as '{self._name(attr)}' is", tree.span)
            values = {at: m.AttrValue(own.name, at, tree.span) for at in positions}
            for at, value in values.items():
                self._bound(attr, value, own, at)
            if own.optional and not attr.optional:
                self._refuse("S020", f"'{own.name}' may be absent, '{self._name(attr)}' may not", tree.span)
            return Given(values, present=m.Present(own.name, tree.span) if own.optional else m.Number(True))
        items = list(_flat(tree)) if isinstance(tree, s.Listed) else []
        if len(items) != len(positions):
            self._refuse("S020", f"'{self._name(attr)}' takes a list of {plural(len(positions), 'value')}", tree.span)
        return Given({at: self._scalar(attr, item, at) for at, item in zip(positions, items, strict=True)})

    def _scalar(self, attr: m.Attr, tree: s.Expression | s.Text, at: tuple[int, ...]) -> m.Expr:
        """Return a value that is an expression in the calling op."""
        resolver = Resolver(self.scope)
        if isinstance(tree, s.Text):
            self._refuse("S020", f"'{self._name(attr)}' takes no text", tree.span)
        found = resolver.resolve(tree)
        if found is None:
            raise Refused
        kinds = {"bool": (BOOL,), "float": (REAL,)}.get(attr.kind, (INT, NUMBER))
        value = found.expr if found.kind in kinds else None
        if attr.kind == "float" and not isinstance(value, m.AttrValue | m.Number):
            value = None
        if value is None:
            help = "give a number or an attribute" if attr.kind == "float" else None
            kind = {"float": "a float", "bool": "a condition"}.get(attr.kind, "an integer")
            self._refuse("S020", f"'{self._name(attr)}' takes {kind}", tree.span, help)
        self._bound(attr, value, self._attribute(tree), at)
        return value

    def _bound(self, attr: m.Attr, value: m.Expr, own: m.Attr | None, at: tuple[int, ...]) -> None:
        """Require a value to be within an attribute's bounds, unless those of `own` imply it."""
        shown = attr.name + "".join(f"[{i}]" for i in at)
        given: Mapping[str, int | None] = {"<=": attr.maximum, ">=": attr.minimum}
        known = {"<=": None if own is None else own.maximum, ">=": None if own is None else own.minimum}
        for op, limit in given.items():
            bound = known[op]
            if limit is None or (bound is not None and (bound <= limit if op == "<=" else bound >= limit)):
                continue
            condition = m.Operation("<=" if op == "<=" else ">=", value, m.Number(limit))
            self.bounds.append(Bound(condition, attr.name, (f"{shown} {op} {limit}",)))


def _positions(attr: m.Attr) -> list[tuple[int, ...]]:
    """Return the positions of a list's elements, in the caller's order."""
    return list(itertools.product(*map(range, attr.shape)))


def _flat(tree: s.Listed) -> list[s.Expression]:
    return [e for i in tree.items for e in (_flat(i) if isinstance(i, s.Listed) else [i])]
