"""Argument orders of an op's function: the op's own, and the others that it takes in Python."""

from __future__ import annotations

from collections.abc import Sequence

from opgen.spec.check.signatures import Arguments, SignatureBuilder, check_together
from opgen.spec.model import model as m
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.report import Report


def signature_of(
    report: Report, items: Sequence[s.Item], inputs: Sequence[m.Tensor | m.Sizes], attrs: Sequence[m.Attr]
) -> tuple[str, ...]:
    """Return the op's own signature, the first that is written.

    By default: inputs, attributes without default, those with, aliases, `name`.
    """
    own = next((i for i in items if isinstance(i, s.SignatureDecl)), None)
    return default_signature(inputs, attrs) if own is None else tuple(a.name.name for a in own.arguments)


def signatures_of(
    report: Report, items: Sequence[s.Item], inputs: Sequence[m.Tensor | m.Sizes], attrs: Sequence[m.Attr]
) -> tuple[m.Signature, ...]:
    """Return all signatures of an op, its own first; empty if it has only that one.  Mistakes go to the report."""
    decls = [i for i in items if isinstance(i, s.SignatureDecl)]
    arguments = Arguments(tuple(inputs), tuple(attrs))
    before = len(report)
    built = [SignatureBuilder(report, arguments, decl, own=i == 0).build() for i, decl in enumerate(decls)]
    if len(decls) < 2:
        return ()
    if len(report) == before:
        check_together(report, arguments, decls, built)
    return tuple(built)


def default_signature(inputs: Sequence[m.Tensor | m.Sizes], attrs: Sequence[m.Attr]) -> tuple[str, ...]:
    """Return the order of the arguments of an op that declares none."""
    given = [a for a in attrs if a.carried_by is None]
    required = [a.name for a in given if not a.has_default and not a.counter]
    optional = [a.name for a in given if a.has_default]
    optional += [a.name for a in given if a.counter]
    aliases = [a.alias for a in given if a.alias is not None]
    return (*(i.name for i in inputs), *required, *optional, *aliases, "name")
