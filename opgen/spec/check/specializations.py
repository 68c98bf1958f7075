"""Specializations (`specialize`): calls that get kernels of their own in a library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opgen.spec.check.interface import Interface
from opgen.spec.model import model as m
from opgen.spec.resolve.kinds import number
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report


def specializations(
    report: Report, items: Sequence[s.Item], built: Interface, symbols: set[str]
) -> tuple[m.Specialization, ...]:
    """Return the specializations of an op; mistakes are noted."""
    checker = _Checker(report, built, symbols)
    return tuple(m.Specialization(tuple(checker.values(i))) for i in items if isinstance(i, s.SpecializeDecl))


class _Checker:
    def __init__(self, report: Report, built: Interface, symbols: set[str]) -> None:
        self.report = report
        self.attrs = {a.name: a for a in built.attrs}
        self.types = {v.name: v for v in built.type_variables}
        self.symbols = symbols

    def values(self, decl: s.SpecializeDecl) -> Iterator[tuple[str, m.SpecializedValue]]:
        seen: set[str] = set()
        for entry in decl.entries:
            name = entry.name.name
            if name in seen:
                self.report.add("S064", f"'{name}' stands twice", entry.name.span)
            seen.add(name)
            value = self._value(entry)
            if value is not None:
                yield name, value

    def _value(self, entry: s.Entry) -> m.SpecializedValue | None:
        name = entry.name.name
        if name in self.types:
            return self._word(entry, [t.name for t in self.types[name].allowed])
        attr = self.attrs.get(name)
        if attr is not None and attr.values:
            return self._word(entry, attr.values)
        if attr is not None and attr.shape:
            return self._list(entry, attr)
        if name not in self.symbols and attr is None:
            known = {*self.types, *self.attrs, *self.symbols}
            self.report.unknown("dimension, attribute or type variable", name, entry.name.span, known)
            return None
        return self._integer(entry.value, 0 if attr is None else attr.minimum)

    def _word(self, entry: s.Entry, allowed: Sequence[str]) -> str | None:
        if isinstance(entry.value, s.Named) and entry.value.name in allowed:
            return entry.value.name
        self.report.add("S064", f"'{entry.name.name}' is one of {', '.join(allowed)}", entry.value.span)
        return None

    def _list(self, entry: s.Entry, attr: m.Attr) -> tuple[int, ...] | None:
        if not isinstance(entry.value, s.ListValue) or (len(entry.value.items),) != attr.shape:
            shape = " by ".join(map(str, attr.shape))
            self.report.add("S064", f"'{attr.name}' is a list of {shape} integers", entry.value.span)
            return None
        found = [self._integer(v, attr.minimum) for v in entry.value.items]
        numbers = tuple(v for v in found if v is not None)
        return numbers if len(numbers) == len(found) else None

    def _integer(self, tree: s.Value, least: int | None) -> int | None:
        value = number(tree) if isinstance(tree, s.Constant) else None
        if isinstance(value, bool) or not isinstance(value, int) or (least is not None and value < least):
            self.report.add("S064", f"expected an integer{'' if least is None else f' >= {least}'}", tree.span)
            return None
        return value
