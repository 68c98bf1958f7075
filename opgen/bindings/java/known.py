"""Which sizes of inputs each size of a result follows from: what a graph knows of a result while some are open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opgen.spec.expressions import (
    AttrValue,
    Conditional,
    Convert,
    EnumIs,
    Expr,
    FunctionCall,
    Negate,
    Not,
    Number,
    Operation,
    Present,
    SizeOf,
    Symbol,
)
from opgen.spec.model import OpSpec, ShapeLet, Sizes, Tensor
from opgen.spec.walk import subexpressions

Place = tuple[int, int]
"""An input and one of its dimensions."""
_ARITHMETIC = (AttrValue, Conditional, Convert, EnumIs, FunctionCall, Negate, Not, Number, Operation, Present)


@dataclass(frozen=True)
class KnownView:
    """For each word of the layout attribute `layout` (one entry if there is none): for each result, parted by " | ",
    the dimensions in the caller's order, each as the places it follows from: "0.1,1.0", "-" for none, "*" if it is
    not told.
    """

    layout: str | None
    words: tuple[str, ...]
    standard: int
    results: tuple[str, ...]


def known_view(op: OpSpec) -> KnownView:
    """The table of an op."""
    sources = _Sources(op)
    sizes = [[sources.of(d.size) for d in output.dims] for output in op.outputs]
    used = {t.layout for t in (*op.tensors, *op.outputs) if t.layout is not None}
    attrs = [op.attr(name) for name in used]
    if len(attrs) != 1 or attrs[0].alias is not None:
        told = sizes if not attrs else [[None] * len(dims) for dims in sizes]
        return KnownView(None, (), 0, (" | ".join(" ".join(map(_text, dims)) for dims in told),))
    (attr,) = attrs
    results = []
    for word in attr.values:
        order = [word.index(letter) for letter in attr.values[0]]
        axes = {i: order for i, t in enumerate(op.inputs) if isinstance(t, Tensor) and t.layout is not None}
        shown = []
        for output, dims in zip(op.outputs, sizes, strict=True):
            texts = [_text(d and {(i, axes[i][a] if i in axes else a) for i, a in d}) for d in dims]
            by_axis = sorted(zip(order, texts, strict=True)) if output.layout is not None else enumerate(texts)
            shown.append(" ".join(text for _, text in by_axis))
        results.append(" | ".join(shown))
    standard = attr.values.index(attr.default) if isinstance(attr.default, str) else 0
    return KnownView(attr.name, attr.values, standard, tuple(results))


def _text(places: set[Place] | None) -> str:
    if places is None:
        return "*"
    return ",".join(f"{i}.{axis}" for i, axis in sorted(places)) or "-"


class _Sources:
    """The places that symbols and named integers follow from.

    Symbols that stand in one product are solved together, so each follows from all places where one of them stands. The
    values of vectors of sizes are known whenever shapes are worked out.
    """

    def __init__(self, op: OpSpec) -> None:
        self._inputs = {t.name: i for i, t in enumerate(op.inputs)}
        self._lets = {name: c.value for c in op.checks if isinstance(c, ShapeLet) for name in c.names}
        self._groups: list[tuple[set[str], set[Place]]] = []
        for symbols, places in self._dimensions(op):
            apart = []
            for known, at in self._groups:
                if known & symbols:
                    symbols, places = symbols | known, places | at
                else:
                    apart.append((known, at))
            self._groups = [*apart, (symbols, places)]

    @staticmethod
    def _dimensions(op: OpSpec) -> Iterator[tuple[set[str], set[Place]]]:
        for i, given in enumerate(op.inputs):
            if isinstance(given, Sizes):
                yield from (({f for f in d.factors if isinstance(f, str)}, set()) for form in given.forms for d in form)
                continue
            for axis, d in enumerate(given.dims):
                named = {e.name for e in subexpressions(d.size) if isinstance(e, Symbol)}
                yield {f for f in d.factors if isinstance(f, str)} | named, {(i, axis)}

    def of(self, e: Expr) -> set[Place] | None:
        """Where an expression follows from; None if that is not told."""
        found: set[Place] = set()
        for part in subexpressions(e):
            if isinstance(part, Symbol):
                places = self._symbol(part.name)
                if places is None:
                    return None
                found |= places
            elif isinstance(part, SizeOf):
                found.add((self._inputs[part.tensor], part.axis))
            elif not isinstance(part, _ARITHMETIC):
                return None
        return found

    def _symbol(self, name: str) -> set[Place] | None:
        value = self._lets.get(name)
        if value is not None:
            return self.of(value)
        return next((places for symbols, places in self._groups if name in symbols), None)
