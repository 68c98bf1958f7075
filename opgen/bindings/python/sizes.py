"""Dimensions as Python: the statements that name the sizes of tensors, compare them, and solve products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opgen.bindings.formula import Formula
from opgen.bindings.python.attributes import tuple_literal
from opgen.bindings.python.scope import OpScope
from opgen.bindings.python.text import literal
from opgen.diagnostics import InternalError
from opgen.spec.model import Dimension, OpSpec, Sizes, Tensor


@dataclass(frozen=True)
class _Place:
    """A dimension of an input: `owner` the local name of the input, `size` of the size that the caller gave."""

    argument: str
    owner: str
    size: str
    dim: Dimension
    text: str


class SizeStatements:
    """Collects the statements for all dimensions of an op's inputs, in the order in which they can be decided."""

    def __init__(self, op: OpSpec, scope: OpScope) -> None:
        self._op = op
        self._scope = scope
        self._formula = Formula(op)
        self._known: set[str] = set()
        self._later: list[_Place] = []
        self.lines: list[str] = []

    def run(self) -> list[str]:
        """The statements."""
        for given in self._op.inputs:
            if isinstance(given, Tensor):
                self._tensor(given)
            else:
                self._sizes(given)
        self._stretch()
        while self._later:
            self._solve()
        return self.lines

    # Tensors ----------------------------------------------------------------------------------------

    def _tensor(self, t: Tensor) -> None:
        name = self._scope.arguments[t.name]
        dims = f"[{', '.join(self._formula.dimension(d) for d in t.dims)}]"
        self.lines.append(f"check.rank({literal(t.name)}, {name}, {t.rank}, {literal(dims)})")
        targets = [self._target(t, t.layout, axis, d) for axis, d in enumerate(t.dims)]
        self._unpack(targets, f"{name}.shape", t.layout)
        for target, dim in zip(targets, t.dims, strict=True):
            self._place(_Place(t.name, name, target, dim, self._formula.dimension(dim)))

    def _unpack(self, targets: Sequence[str], values: str, layout: str | None) -> None:
        if layout is not None:
            order = self._op.attr(layout).values[0]
            values = f"logical({values}, {self._scope.arguments[layout]}, {literal(order)})"
        if targets:
            self.lines.append(f"{', '.join(targets)}{',' if len(targets) == 1 else ''} = {values}")

    def _target(self, given: Tensor | Sizes, layout: str | None, axis: int, dim: Dimension) -> str:
        """The name for a size: the symbol's own if it is met here for the first time."""
        symbol = _symbol(dim)
        if symbol is None or symbol in self._known or dim.broadcast:
            return self._scope.size(given, layout, axis)
        self._known.add(symbol)
        return self._scope.symbols[symbol]

    def _place(self, place: _Place) -> None:
        symbol = _symbol(place.dim)
        if symbol is not None and place.size == self._scope.symbols[symbol]:
            return
        if place.dim.broadcast or self._unknown(place.dim):
            self._later.append(place)
        else:
            self._same(place)

    def _same(self, place: _Place) -> None:
        size = self._product(place.dim)
        arguments = [literal(place.argument), place.owner, literal(place.text), place.size, size]
        self.lines.append(f"check.same({', '.join(arguments)})")

    # Vectors of sizes -------------------------------------------------------------------------------

    def _sizes(self, given: Sizes) -> None:
        name = self._scope.arguments[given.name]
        lengths = tuple(len(form) for form in given.forms)
        self.lines.append(f"{name} = check.vector({literal(given.name)}, {name}, {tuple_literal(lengths)})")
        if len(given.forms) == 1:
            self._form(given, given.forms[0], given.layouts[0])
            return
        raise InternalError(f"op {self._op.name}: sizes {given.name!r} in several forms")

    def _form(self, given: Sizes, form: Sequence[Dimension], layout: str | None) -> None:
        name = self._scope.arguments[given.name]
        targets = [self._target(given, layout, axis, d) for axis, d in enumerate(form)]
        self._unpack(targets, name, layout)
        for target, dim in zip(targets, form, strict=True):
            self._place(_Place(given.name, name, target, dim, self._formula.dimension(dim)))

    # Products and broadcasting ----------------------------------------------------------------------

    def _stretch(self) -> None:
        """Symbols that only broadcast dimensions have take the first size that is not 1."""
        symbols = dict.fromkeys(s for p in self._later if p.dim.broadcast and (s := _symbol(p.dim)) is not None)
        for symbol in symbols:
            if symbol not in self._known:
                sizes = [p.size for p in self._later if _symbol(p.dim) == symbol]
                self.lines.append(f"{self._scope.symbols[symbol]} = broadcast({', '.join(sizes)})")
                self._known.add(symbol)
        for place in [p for p in self._later if p.dim.broadcast]:
            self._later.remove(place)
            self.lines.append(f"if {place.size} != 1:")
            self._same(place)
            self.lines[-1] = f"    {self.lines[-1]}"

    def _solve(self) -> None:
        """Decide the first product with at most one unknown factor."""
        place = next((p for p in self._later if len(self._unknown(p.dim)) <= 1), None)
        if place is None:
            raise InternalError(f"op {self._op.name}: dimensions {[p.text for p in self._later]} are not determined")
        self._later.remove(place)
        unknown = self._unknown(place.dim)
        if not unknown:
            self._same(place)
            return
        known = " * ".join(self._factors(place.dim, without=unknown[0]))
        arguments = [literal(place.argument), place.owner, literal(place.text), place.size, known]
        self.lines.append(f"{self._scope.symbols[unknown[0]]} = check.quotient({', '.join(arguments)})")
        self._known.add(unknown[0])

    def _unknown(self, dim: Dimension) -> list[str]:
        return [f for f in dim.factors if isinstance(f, str) and f not in self._known]

    def _factors(self, dim: Dimension, without: str | None = None) -> Iterator[str]:
        for f in dim.factors:
            if f != without:
                yield self._scope.symbols[f] if isinstance(f, str) else str(f)

    def _product(self, dim: Dimension) -> str:
        return " * ".join(self._factors(dim)) or "1"


def _symbol(dim: Dimension) -> str | None:
    """The symbol that a dimension is, if it is a single one."""
    return dim.factors[0] if len(dim.factors) == 1 and isinstance(dim.factors[0], str) else None
