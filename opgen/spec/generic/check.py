"""Checking generic ops: each is expanded for a few forms, whose mistakes are told once."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from opgen.spec import model as m
from opgen.spec import syntax as s
from opgen.spec.expand import Fragments, expand
from opgen.spec.model import GenericOp
from opgen.spec.names import check_function_name, check_name, snake_case
from opgen.spec.report import Report


def check_generics(
    report: Report, decls: Sequence[s.OpDecl], fragments: Fragments, functions: tuple[m.Function, ...]
) -> tuple[GenericOp, ...]:
    """The generic ops of a module; mistakes go to the report."""
    return tuple(_generic(report, decl, fragments, functions) for decl in decls)


def _generic(report: Report, decl: s.OpDecl, fragments: Fragments, functions: tuple[m.Function, ...]) -> GenericOp:
    check_name(report, decl.name.name, decl.name.span)
    check_function_name(report, decl.name.name, decl.name.span)
    placed = dataclasses.replace(decl, items=tuple(expand(report, decl.items, fragments)))
    doc = "" if decl.doc is None else decl.doc.value
    return GenericOp(decl.name.name, snake_case(decl.name.name), placed, functions, doc, decl.span)
