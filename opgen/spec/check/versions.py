"""Versions of an op set in which each op is valid: `versions 7 to 12 of Add`."""

from __future__ import annotations

from collections.abc import Sequence

from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.fragments import Fragments, in_place
from opgen.spec.syntax.report import Report


def versions_of(report: Report, decls: Sequence[s.OpDecl], fragments: Fragments) -> tuple[m.Version, ...]:
    """Return the versions that ops declare; two ops with one name and the same first version are noted."""
    found: list[m.Version] = []
    begins: dict[tuple[str, int], str] = {}
    for decl in decls:
        given = [i for i in in_place(decl.items, fragments) if isinstance(i, s.VersionsDecl)]
        for extra in given[1:]:
            report.add("S066", "an op names its versions once", extra.span)
        for item in given[:1]:
            name = decl.name.name if item.op is None else item.op.name
            first = int(item.first[:9])
            last = None if item.last is None else int(item.last[:9])
            if last is not None and last < first:
                report.add("S066", f"no version is from {first} to {last}", item.span)
            other = begins.setdefault((name, first), decl.name.name)
            if other != decl.name.name:
                report.add("S066", f"'{name}' of version {first} is '{other}', too", item.span)
            each = "" if item.each is None else item.each.name
            if item.each is not None:
                items = in_place(decl.items, fragments)
                inputs = [i.name.name for i in items if isinstance(i, s.TensorDecl) and i.keyword == "input"]
                if each not in inputs:
                    report.unknown("input", each, item.each.span, inputs)
            found.append(m.Version(name, decl.name.name, first, last, each))
    return tuple(found)
