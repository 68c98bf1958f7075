"""The order of the arguments of an op's function."""

from __future__ import annotations

from collections.abc import Sequence

from opgen.spec import model as m
from opgen.spec import syntax as s
from opgen.spec.report import Report


def signature_of(
    report: Report, items: Sequence[s.Item], inputs: Sequence[m.Tensor | m.Sizes], attrs: Sequence[m.Attr]
) -> tuple[str, ...]:
    """The signature as it is written; by default inputs, attributes without default, those with, aliases, `name`."""
    decls = [i for i in items if isinstance(i, s.SignatureDecl)]
    for extra in decls[1:]:
        report.add("S034", "an op has one signature", extra.span)
    if not decls:
        return default_signature(inputs, attrs)
    _check(report, decls[0], inputs, attrs)
    return tuple(n.name for n in decls[0].names)


def default_signature(inputs: Sequence[m.Tensor | m.Sizes], attrs: Sequence[m.Attr]) -> tuple[str, ...]:
    given = [a for a in attrs if a.carried_by is None]
    required = [a.name for a in given if not a.has_default and not a.counter]
    optional = [a.name for a in given if a.has_default]
    optional += [a.name for a in given if a.counter]
    aliases = [a.alias for a in given if a.alias is not None]
    return (*(i.name for i in inputs), *required, *optional, *aliases, "name")


def _check(
    report: Report, decl: s.SignatureDecl, inputs: Sequence[m.Tensor | m.Sizes], attrs: Sequence[m.Attr]
) -> None:
    optional = {a.name for a in attrs if a.has_default} | {a.alias for a in attrs if a.alias is not None} | {"name"}
    needed = [i.name for i in inputs] + [a.name for a in attrs if a.carried_by is None]
    carried = {a.name: a.carried_by for a in attrs if a.carried_by is not None}
    known = {*needed, *optional} - set(carried)
    seen: list[str] = []
    for ident in decl.names:
        name = ident.name
        if name in carried:
            report.add("S034", f"'{name}' is given in the place of '{carried[name]}'", ident.span)
        elif name not in known:
            report.unknown("argument", name, ident.span, known)
        elif name in seen:
            report.add("S034", f"'{name}' stands twice in the signature", ident.span)
        elif name not in optional and any(n in optional for n in seen):
            report.add("S034", f"'{name}' has no default and stands after '{seen[-1]}', which has one", ident.span)
        seen.append(name)
    for name in needed:
        if name not in seen:
            report.add("S034", f"the signature lacks '{name}'", decl.span)
