"""Dimensions as Python: the statements that name the sizes of tensors, compare them, and solve products.

A size that the caller gave and the product that the spec says it is make an equation.  They are taken in the order of
`opgen.spec.call.shapes`, as far as it can be told without the numbers: so a wrong call gets the same message from both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from opgen.bindings.python.attributes import tuple_literal
from opgen.bindings.python.scope import OpScope
from opgen.bindings.python.text import literal
from opgen.diagnostics import InternalError
from opgen.spec.model.model import Dimension, OpSpec, ShapeLet, Sizes, Tensor
from opgen.spec.resolve.dimensions import told_elsewhere


@dataclass(frozen=True)
class _Equation:
    """`local` names the caller's sizes, `axis` is Python for the position among them, `size` names the size itself."""

    argument: str
    local: str
    axis: str
    size: str
    dim: Dimension
    vector: bool
    follows: bool = False

    @property
    def symbol(self) -> str | None:
        """The symbol that the dimension is, if it is a single one."""
        factors = self.dim.factors
        return factors[0] if len(factors) == 1 and isinstance(factors[0], str) else None


class SizeStatements:
    """The statements for all dimensions of an op's inputs.  `lines` come before the op's own lets and requirements,
    `last` after them: they compare sizes with what the lets computed.
    """

    def __init__(self, op: OpSpec, scope: OpScope) -> None:
        self._op = op
        self._scope = scope
        self._lets = {n for c in op.checks if isinstance(c, ShapeLet) for n in c.names}
        self._vectors = [i for i in op.inputs if isinstance(i, Sizes)]
        self.lines = [*self._shapes(), *self._worlds(False)]
        self.last = list(self._worlds(True))

    # Shapes and values ------------------------------------------------------------------------------

    def _shapes(self) -> Iterator[str]:
        for given in self._op.inputs:
            name = self._scope.arguments[given.name]
            if isinstance(given, Tensor):
                yield f"{self._scope.shape(given.name)} = check.rank({literal(given.name)}, {name}, {given.rank})"
            else:
                lengths = tuple(len(form) for form in given.forms)
                yield f"{name} = check.vector({literal(given.name)}, {name}, {tuple_literal(lengths)})"

    def _worlds(self, last: bool) -> Iterator[str]:
        """The equations for each choice of a form for every vector of sizes."""
        choices = list(itertools.product(*(range(len(v.forms)) for v in self._vectors)))
        for choice in choices:
            lines = _World(self._op, self._scope, self._lets, dict(zip(self._names(), choice, strict=True))).lines(last)
            if len(choices) == 1:
                yield from lines
            elif lines:
                yield f"if {self._condition(choice)}:"
                yield from (f"    {line}" for line in lines)

    def _names(self) -> list[str]:
        return [v.name for v in self._vectors]

    def _condition(self, choice: Sequence[int]) -> str:
        picked = zip(self._vectors, choice, strict=True)
        return " and ".join(
            f"len({self._scope.arguments[v.name]}) == {len(v.forms[i])}" for v, i in picked if len(v.forms) > 1
        )


class _World:
    """The equations of an op with one form chosen for every vector of sizes."""

    def __init__(self, op: OpSpec, scope: OpScope, lets: set[str], forms: dict[str, int]) -> None:
        self._op = op
        self._scope = scope
        self._lets = lets
        self._forms = forms
        self._known = set(lets)
        self._lines: list[str] = []

    def lines(self, last: bool) -> list[str]:
        """The statements before the op's lets, or after them."""
        equations = list(self._equations())
        if last:
            for equation in (e for e in equations if self._after_lets(e) and not e.follows):
                self._same(equation)
            return self._lines
        self._bind_fixed()
        following = [e for e in equations if e.follows and not self._after_lets(e)]
        self._unpack([e for e in equations if not e.follows], following)
        return self._lines

    def _after_lets(self, e: _Equation) -> bool:
        return any(f in self._lets for f in e.dim.factors)

    # Naming sizes -----------------------------------------------------------------------------------

    def _equations(self) -> Iterator[_Equation]:
        for given in self._op.inputs:
            if isinstance(given, Tensor):
                found = self._of(given.name, self._scope.shape(given.name), given.dims, given.layout, False)
                yield from (replace(e, follows=given.follows) for e in found)
            else:
                form = self._forms[given.name]
                local = self._scope.arguments[given.name]
                yield from self._of(given.name, local, given.forms[form], given.layouts[form], True)

    def _of(
        self, argument: str, local: str, dims: tuple[Dimension, ...], layout: str | None, vector: bool
    ) -> Iterator[_Equation]:
        for position, dim in enumerate(dims):
            axis, size = str(position), f"{local}[{position}]"
            if layout is not None:
                letter = self._op.attr(layout).values[0][position]
                axis = f"{self._scope.arguments[layout]}.index({literal(letter)})"
                size = f"{local}[{axis}]"
            if dim.broadcast:
                size = self._scope.size(argument, layout, position)
            yield _Equation(argument, local, axis, size, dim, vector)

    def _bind_fixed(self) -> None:
        """Symbols that the chosen forms fix without their standing in them."""
        for v in (i for i in self._op.inputs if isinstance(i, Sizes)):
            for symbol, value in v.bindings[self._forms[v.name]] if v.bindings else ():
                self._lines.append(f"{self._scope.symbols[symbol]} = {value}")
                self._known.add(symbol)

    def _unpack(self, equations: list[_Equation], following: list[_Equation]) -> None:
        """Name the sizes that are symbols, input by input; then take the other equations, without those that wait for
        the lets.

        `following` are sizes of tensors whose shapes follow: they serve where a symbol would stay unknown.
        """
        waiting: list[_Equation] = []
        stretching = {e.symbol for e in equations if e.dim.broadcast}
        for _, group in itertools.groupby(equations, key=lambda e: e.argument):
            members = list(group)
            targets = []
            for e in members:
                if e.dim.broadcast:
                    targets.append(e.size)
                elif self._after_lets(e):
                    targets.append("_")
                elif e.symbol is not None and e.symbol not in self._known and e.symbol not in stretching:
                    self._known.add(e.symbol)
                    targets.append(self._scope.symbols[e.symbol])
                    continue
                else:
                    targets.append("_")
                if not self._after_lets(e):
                    waiting.append(e)
            self._name(members[0], targets)
        elsewhere = told_elsewhere([e.dim for e in waiting], [e.dim for e in following], self._known)
        self._stretch(waiting, stretching - elsewhere)
        self._solve(waiting, following)

    def _name(self, first: _Equation, targets: list[str]) -> None:
        if set(targets) <= {"_"}:
            return
        values = first.local
        layout = self._layout(first)
        if layout is not None:
            order = self._op.attr(layout).values[0]
            targets += ["_"] * (len(order) - len(targets))
            values = f"logical({values}, {self._scope.arguments[layout]}, {literal(order)})"
        left = f"({targets[0]},)" if len(targets) == 1 else ", ".join(targets)
        self._lines.append(f"{left} = {values}")

    def _layout(self, e: _Equation) -> str | None:
        given = next(i for i in self._op.inputs if i.name == e.argument)
        return given.layout if isinstance(given, Tensor) else given.layouts[self._forms[given.name]]

    # Equations --------------------------------------------------------------------------------------

    def _stretch(self, equations: list[_Equation], symbols: set[str | None]) -> None:
        """Symbols of broadcast dimensions take the first size that is not 1, in the order of the inputs."""
        for symbol in dict.fromkeys(e.symbol for e in equations if e.symbol in symbols):
            if symbol is None or symbol in self._known:
                continue
            members = [e for e in equations if e.symbol == symbol]
            firm = next((i for i, e in enumerate(members) if not e.dim.broadcast), len(members) - 1)
            sizes = ", ".join(e.size for e in members[: firm + 1])
            self._lines.append(f"{self._scope.symbols[symbol]} = stretched({sizes})")
            self._known.add(symbol)
            if len(members) == 1:
                equations.remove(members[0])

    def _solve(self, waiting: list[_Equation], following: list[_Equation]) -> None:
        """Round after round, what has at most one unknown factor."""
        waiting = self._settle(waiting)
        while (last := next((e for e in following if len(self._unknown(e)) == 1), None)) is not None:
            self._use(last)
            waiting = self._settle(waiting)
        if waiting:
            names = ", ".join(str(e.dim.factors) for e in waiting)
            raise InternalError(f"op {self._op.name}: dimensions {names} are not determined")

    def _settle(self, waiting: list[_Equation]) -> list[_Equation]:
        """Uses equations until what is left has several unknowns each; those are given back."""
        while waiting:
            rest = [e for e in waiting if not self._use(e)]
            if len(rest) == len(waiting):
                break
            waiting = rest
        return waiting

    def _unknown(self, e: _Equation) -> list[str]:
        return [f for f in e.dim.factors if isinstance(f, str) and f not in self._known]

    def _use(self, e: _Equation) -> bool:
        unknown = self._unknown(e)
        if len(unknown) > 1:
            return False
        if not unknown:
            self._same(e)
            return True
        if e.dim.broadcast:
            return False
        if len(e.dim.factors) == 1:
            self._lines.append(f"{self._scope.symbols[unknown[0]]} = {e.local}[{e.axis}]")
            self._known.add(unknown[0])
            return True
        others = [f for f in e.dim.factors if f != unknown[0]]
        if not others:
            self._known.add(unknown[0])
            self._lines.append(f"{self._scope.symbols[unknown[0]]} = {e.size}")
            return True
        options = [self._product(others), literal(_names(others)), *(["vector=True"] if e.vector else [])]
        self._lines.append(f"{self._scope.symbols[unknown[0]]} = check.factor({', '.join([self._place(e), *options])})")
        self._known.add(unknown[0])
        return True

    def _same(self, e: _Equation) -> None:
        named = any(isinstance(f, str) for f in e.dim.factors)
        options = [self._product(e.dim.factors), literal(_names(e.dim.factors) if named else "")]
        options += ["vector=True"] if e.vector else []
        options += ["or_one=True"] if e.dim.broadcast else []
        self._lines.append(f"check.same({', '.join([self._place(e), *options])})")

    def _place(self, e: _Equation) -> str:
        return f"{literal(e.argument)}, {e.local}, {e.axis}"

    def _product(self, factors: Sequence[str | int]) -> str:
        return " * ".join(self._scope.symbols[f] if isinstance(f, str) else str(f) for f in factors) or "1"


def _names(factors: Sequence[str | int]) -> str:
    return " * ".join(map(str, factors))
