"""Scopes: the meanings of names in an expression."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from opgen.diagnostics import Span
from opgen.spec.model import model as m
from opgen.spec.model.polynomial import Polynomial
from opgen.spec.syntax.report import Report


@dataclass
class Binding:
    """Index in scope, with its extent as written (`explicit`) or inferred from its uses (`bare`, `composite`)."""

    name: str
    span: Span
    explicit: m.Expr | None = None
    bare: list[tuple[m.Expr, Span]] = field(default_factory=list)
    composite: list[tuple[m.Expr, Span]] = field(default_factory=list)
    used: bool = False


@dataclass(frozen=True)
class Readable:
    """Tensor that the mathematics may name; `dims` is None for an output or an invalid declaration."""

    name: str
    dtype: str
    dims: tuple[m.Expr, ...] | None
    shape_only: bool = False
    output: bool = False


@dataclass
class Scope:
    """Names visible to an expression, grouped by kind; `dims` are the symbols that are sizes, never negative."""

    report: Report
    functions: Mapping[str, m.Function | None]
    ops: Collection[str] = ()
    symbols: dict[str, Span] = field(default_factory=dict)
    dims: set[str] = field(default_factory=set)
    later: dict[str, Span] = field(default_factory=dict)
    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    attrs: dict[str, m.Attr] = field(default_factory=dict)
    tensors: dict[str, Readable] = field(default_factory=dict)
    later_tensors: set[str] = field(default_factory=set)
    type_variables: dict[str, m.TypeVariable] = field(default_factory=dict)
    indices: dict[str, Binding] = field(default_factory=dict)
    poisoned: set[str] = field(default_factory=set)
    constants: dict[str, m.Constant] = field(default_factory=dict)
    tables: dict[str, m.Definition] = field(default_factory=dict)
    """Definitions of the tensors that hold lists read at indices, by attribute name."""
    stands_for: dict[str, m.Expr] = field(default_factory=dict)
    """Expressions that replace symbols, by symbol name."""
    required: list[Polynomial] = field(default_factory=list)
    """Polynomials that requirements keep non-negative."""
    named: dict[m.Expr, m.Expr] = field(default_factory=dict)
    """Integer expressions that symbols name."""

    def letters(self, layout: str) -> str | None:
        """Return the letters of a layout attribute in logical order."""
        attr = self.attrs.get(layout)
        return attr.values[0] if attr is not None and attr.kind == "layout" and attr.values else None

    def known(self) -> Iterator[str]:
        """Yield every name that an expression could have meant."""
        yield from self.indices
        yield from self.symbols
        yield from self.attrs
        yield from self.enums
        yield from self.tensors
        yield from self.constants
