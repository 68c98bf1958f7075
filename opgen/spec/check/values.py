"""Literal values of examples."""

from __future__ import annotations

from opgen.spec.model import model as m
from opgen.spec.resolve.kinds import number
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report

_WORDS: dict[str, float | bool] = {
    "true": True, "false": False, "inf": float("inf"), "-inf": float("-inf"), "nan": float("nan"),
}  # fmt: skip


def example_of(report: Report, decl: s.ExampleDecl) -> m.Example:
    """Return the example that a declaration gives."""
    return m.Example(decl.title.value, example_values(report, decl), decl)


def example_values(report: Report, decl: s.ExampleDecl) -> tuple[tuple[str, m.ExampleValue], ...]:
    """Return the arguments and results of an example, with lists as nested tuples."""
    return tuple((entry.name.name, _value(report, entry.value)) for entry in decl.entries)


def _value(report: Report, tree: s.Value) -> m.ExampleValue:
    if isinstance(tree, s.ListValue):
        return tuple(_value(report, item) for item in tree.items)
    if isinstance(tree, s.Named):
        return _WORDS.get(tree.name, tree.name)
    if isinstance(tree, s.Text):
        return tree.value
    value = number(tree)
    if value is None:
        report.add("S004", f"{tree.text} is out of range", tree.span)
        return 0
    return value
