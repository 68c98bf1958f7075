"""Fragments: `use X` is replaced by what X declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opgen.spec import syntax as s
from opgen.spec.report import Report


def expand(report: Report, items: Iterable[s.Item], fragments: Mapping[str, s.FragmentDecl]) -> list[s.Item]:
    """The items with those of the fragments they use in place; fragments may use others, each one once in an op."""
    return _expand(report, items, fragments, (), set())


def _expand(
    report: Report,
    items: Iterable[s.Item],
    fragments: Mapping[str, s.FragmentDecl],
    chain: tuple[str, ...],
    used: set[str],
) -> list[s.Item]:
    expanded: list[s.Item] = []
    for item in items:
        if not isinstance(item, s.UseDecl):
            expanded.append(item)
            continue
        name, span = item.fragment.name, item.fragment.span
        if name not in fragments:
            report.unknown("fragment", name, span, fragments)
        elif name in chain:
            circle = " -> ".join([*chain[chain.index(name) :], name])
            report.add("S022", f"the fragment '{name}' uses itself: {circle}", span)
        elif name in used:
            report.add("S011", f"the fragment '{name}' is used twice", span)
        elif len(chain) >= 16:
            report.add("S003", f"'{name}' is used through more than 16 fragments", span)
        else:
            used.add(name)
            expanded += _expand(report, fragments[name].items, fragments, (*chain, name), used)
    return expanded
