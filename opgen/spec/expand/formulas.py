"""Functions that stand for expressions: `function cubed(x) = x * x * x`.

Each call is replaced by the function's value, with the call's arguments substituted for the parameters.  This happens
before any other check, so no later package has to handle them.  A value depends only on its parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, cast

from opgen.diagnostics import Span
from opgen.dtypes import lookup
from opgen.spec.resolve.kinds import SHAPE_FUNCTIONS
from opgen.spec.resolve.names import check_name
from opgen.spec.resolve.scalars import BIT_CAST, MULTIPLY_ADD, PAIR_FUNCTIONS, SCALAR_FUNCTIONS
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import FUNCTION_CHAIN, FUNCTION_STEPS, NODES, PARAMETERS
from opgen.spec.syntax.report import Report
from opgen.spec.syntax.strings import plural

N = TypeVar("N", bound=s.Node)

_TAKEN = {
    **dict.fromkeys(SCALAR_FUNCTIONS, 1),
    **dict.fromkeys((*PAIR_FUNCTIONS, *SHAPE_FUNCTIONS, BIT_CAST), 2),
    MULTIPLY_ADD: 3,
}
"""Number of arguments of each function of the language."""


def with_formulas(
    report: Report, items: Sequence[s.Declaration], formulas: Sequence[s.FormulaDecl]
) -> list[s.Declaration]:
    """Return the other declarations with calls of `formulas` expanded; mistakes are noted."""
    if not formulas:
        return list(items)
    known = _Formulas(report, formulas)
    return [known.placed_in(item) for item in items if not isinstance(item, s.FormulaDecl)]


@dataclass(frozen=True)
class _Formula:
    """Function whose value has the calls in it expanded.

    `uses` counts the uses of each parameter in the value, `own` its other expressions.
    """

    parameters: tuple[str, ...]
    value: s.Expression
    uses: Mapping[str, int]
    own: int


class _Formulas:
    """Functions of a module, each checked before its first call."""

    def __init__(self, report: Report, decls: Sequence[s.FormulaDecl]) -> None:
        self._report = report
        self._decls = {d.name.name: d for d in decls}
        self._made: dict[str, _Formula | None] = {}
        self._chain: list[str] = []
        self._placed = 0
        for name in self._decls:
            self._formula(name)

    def placed_in(self, node: N) -> N:
        """Return a tree with calls expanded.  Raises DiagnosticError if the module becomes too large."""
        changed: dict[str, Any] = {}
        for name in (f.name for f in fields(node)):
            before = getattr(node, name)
            after = self._placed_in_any(before)
            if after is not before:
                changed[name] = after
        made = replace(node, **changed) if changed else node
        if isinstance(made, s.Call) and made.function.name in self._decls:
            return cast(N, self._value_of(made))
        return made

    def _placed_in_any(self, value: object) -> object:
        if isinstance(value, s.Node):
            return self.placed_in(value)
        if isinstance(value, tuple):
            made = tuple(map(self._placed_in_any, value))
            return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
        return value

    def _value_of(self, call: s.Call) -> s.Expression:
        """Return the value of a call; a placeholder if the call is wrong, which is noted."""
        name, given = call.function.name, call.arguments
        nothing = given[0] if given else s.Constant(call.span, "0")
        formula = self._formula(name)
        if formula is None:
            return nothing
        if len(given) != len(formula.parameters):
            message = f"'{name}' takes {plural(len(formula.parameters), 'argument')}, {len(given)} given"
            self._report.add("S021", message, call.span, f"it takes ({', '.join(formula.parameters)})")
            return nothing
        for argument in given:
            if isinstance(argument, s.Expansion | s.Listed | s.Chain):
                self._report.add("S065", f"'{name}' takes single values", argument.span)
                return nothing
        arguments = dict(zip(formula.parameters, given, strict=True))
        cost = formula.own + sum(formula.uses[p] * _size(a) for p, a in arguments.items())
        if not self._report.at_most(cost, FUNCTION_STEPS, f"steps in a call of '{name}'", call.span):
            return nothing
        if not self._chain:
            self._placed += cost
            self._report.stop_beyond(self._placed, NODES, "expressions in calls of functions", call.span)
        return _substituted(formula.value, arguments, call.span)

    def _formula(self, name: str) -> _Formula | None:
        """Return a function by its name; None if it is invalid, which is noted."""
        decl = self._decls[name]
        if name in self._made:
            return self._made[name]
        if name in self._chain:
            circle = " -> ".join([*self._chain[self._chain.index(name) :], name])
            self._report.add("S022", f"the function '{name}' calls itself: {circle}", decl.name.span)
            return None
        if len(self._chain) >= FUNCTION_CHAIN:
            self._report.add("S003", f"'{name}' is called through more than {FUNCTION_CHAIN} functions", decl.name.span)
            return None
        self._chain.append(name)
        self._made[name] = made = self._checked(decl)
        self._chain.pop()
        return made

    def _checked(self, decl: s.FormulaDecl) -> _Formula | None:
        report, before = self._report, len(self._report)
        check_name(report, decl.name.name, decl.name.span)
        report.at_most(len(decl.parameters), PARAMETERS, "parameters", decl.name.span)
        names: dict[str, int] = {}
        for parameter in decl.parameters:
            name, span = parameter.name.name, parameter.name.span
            check_name(report, name, span)
            if name in names:
                report.add("S011", f"the parameter '{name}' is declared twice", span)
            if parameter.values:
                report.add("S013", f"'{name}' stands for an expression: it has no words", parameter.span)
            names[name] = 0
        self._check_names(decl.value, names)
        if len(report) > before:
            return None
        value = self.placed_in(decl.value)
        if len(report) > before:
            return None
        nodes = list(_everything_in(value))
        for node in nodes:
            if isinstance(node, s.Named) and node.name in names:
                names[node.name] += 1
        unused = [p for p in decl.parameters if not names[p.name.name]]
        for parameter in unused:
            report.add("S033", f"the parameter '{parameter.name.name}' is never used", parameter.name.span)
        return None if unused else _Formula(tuple(names), value, names, len(nodes) - sum(names.values()))

    def _check_names(self, tree: s.Expression, names: Mapping[str, int]) -> None:
        """Note expressions that depend on more than the parameters, and wrong calls."""
        report = self._report
        match tree:
            case s.Named() if tree.name not in names:
                report.unknown("name", tree.name, tree.span, names)
            case s.Subscripted() | s.Reduction():
                message = "a function that stands for an expression has no elements but those it is given"
                report.add("S013", message, tree.span)
                return
            case s.Member() | s.Expansion() | s.Listed() | s.Chain():
                report.add("S065", "packs and lists belong to the declarations of ops", tree.span)
                return
            case s.Call():
                self._check_call(tree)
        inside = tree.arguments[1:] if isinstance(tree, s.Call) and tree.function.name == BIT_CAST else _parts(tree)
        for part in inside:
            self._check_names(part, names)

    def _check_call(self, call: s.Call) -> None:
        name = call.function.name
        if name in self._decls:
            return
        taken = 1 if lookup(name) is not None else _TAKEN.get(name)
        if taken is None:
            self._report.unknown("function", name, call.function.span, [*self._decls, *_TAKEN])
        elif len(call.arguments) != taken:
            message = f"{name} takes {plural(taken, 'argument')}, {len(call.arguments)} given"
            self._report.add("S021", message, call.span)


def _substituted(tree: s.Expression, arguments: Mapping[str, s.Expression], span: Span) -> s.Expression:
    """Substitute arguments for names in an expression; all other nodes get the span of the call."""
    if isinstance(tree, s.Named) and tree.name in arguments:
        return arguments[tree.name]
    changed: dict[str, Any] = {"span": span}
    for name in (f.name for f in fields(tree)):
        value = getattr(tree, name)
        if isinstance(value, s.Ident):
            changed[name] = replace(value, span=span)
        elif isinstance(value, s.Node):
            changed[name] = _substituted(cast(s.Expression, value), arguments, span)
        elif isinstance(value, tuple):
            changed[name] = tuple(_substituted(v, arguments, span) for v in value)
    return replace(tree, **changed)


def _parts(tree: s.Node) -> Iterator[s.Expression]:
    """Yield the direct operands of an expression without ranges."""
    for name in (f.name for f in fields(tree)):
        value = getattr(tree, name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, s.Node) and not isinstance(part, s.Ident):
                yield cast(s.Expression, part)


def _everything_in(tree: s.Node) -> Iterator[s.Node]:
    waiting: list[s.Node] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _parts(node)


def _size(tree: s.Node) -> int:
    return sum(1 for _ in _everything_in(tree))
