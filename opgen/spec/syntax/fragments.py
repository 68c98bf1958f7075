"""Expansion of fragments: `use X` is replaced by the declarations of X."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import FRAGMENT_CHAIN, ITEMS
from opgen.spec.syntax.report import Report


class Fragments(dict[str, s.FragmentDecl]):
    """The fragments of a module by name; `placed` counts the declarations of its ops after expansion."""

    def __init__(self, decls: Iterable[s.FragmentDecl]) -> None:
        super().__init__({f.name.name: f for f in decls})
        self.placed = 0


def expand(report: Report, items: Iterable[s.Item], fragments: Fragments) -> list[s.Item]:
    """Expand the fragments among items, recursively; each is used once in an op.

    Raises DiagnosticError if a module has too many of them.
    """
    return _expand(report, items, fragments, (), set())


def in_place(items: Iterable[s.Item], fragments: Fragments) -> Iterator[s.Item]:
    """Expand the known fragments among items, each once."""
    waiting, used = list(items)[::-1], set[str]()
    while waiting:
        item = waiting.pop()
        name = item.fragment.name if isinstance(item, s.UseDecl) else ""
        if name not in fragments:
            yield item
        elif name not in used:
            used.add(name)
            waiting += fragments[name].items[::-1]


def _expand(
    report: Report,
    items: Iterable[s.Item],
    fragments: Fragments,
    chain: tuple[str, ...],
    used: set[str],
) -> list[s.Item]:
    expanded: list[s.Item] = []
    for item in items:
        if not isinstance(item, s.UseDecl):
            expanded.append(item)
            fragments.placed += 1
            report.stop_beyond(fragments.placed, ITEMS, "declarations with fragments in place", item.span)
            continue
        name, span = item.fragment.name, item.fragment.span
        if name not in fragments:
            report.unknown("fragment", name, span, fragments)
        elif name in chain:
            circle = " -> ".join([*chain[chain.index(name) :], name])
            report.add("S022", f"the fragment '{name}' uses itself: {circle}", span)
        elif name in used:
            report.add("S011", f"the fragment '{name}' is used twice", span)
        elif len(chain) >= FRAGMENT_CHAIN:
            report.add("S003", f"'{name}' is used through more than {FRAGMENT_CHAIN} fragments", span)
        else:
            used.add(name)
            expanded += _expand(report, fragments[name].items, fragments, (*chain, name), used)
    return expanded
