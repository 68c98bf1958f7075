"""Dimensions as C: the statements that name the sizes of tensors, compare them, and solve products.

A size that the caller gave and the product that the spec says it is make an equation.  They are taken in the order of
`opgen.spec.call.shapes`, as far as it can be told without the numbers: so a wrong call gets the same message.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opgen.bindings.c.scope import OpScope
from opgen.bindings.c.text import string
from opgen.diagnostics import InternalError
from opgen.spec.model.model import Dimension, OpSpec, ShapeLet, Sizes, Tensor
from opgen.spec.resolve.dimensions import told_elsewhere


@dataclass(frozen=True)
class _Equation:
    """`source` is C for the caller's sizes (a `sizes` struct), `axis` for the position, `size` for the size."""

    source: str
    axis: str
    size: str
    dim: Dimension
    follows: bool

    @property
    def symbol(self) -> str | None:
        factors = self.dim.factors
        return factors[0] if len(factors) == 1 and isinstance(factors[0], str) else None


def size_statements(scope: OpScope, last: bool) -> list[str]:
    """The statements before the op's own lets and requirements, or (`last`) after them: those compare sizes with what
    the lets computed.
    """
    vectors = [i for i in scope.op.inputs if isinstance(i, Sizes)]
    choices = list(itertools.product(*(range(len(v.forms)) for v in vectors)))
    lines: list[str] = []
    for choice in choices:
        forms = {v.name: form for v, form in zip(vectors, choice, strict=True)}
        found = _World(scope, forms).lines(last)
        if len(choices) == 1:
            return found
        if found:
            picked = [f"call->{scope.forms[v.name]} == {forms[v.name]}" for v in vectors if len(v.forms) > 1]
            lines += [f"if ({' && '.join(picked)}) {{", *(f"    {line}" for line in found), "}"]
    return lines


class _World:
    """The equations of an op with one form chosen for every vector of sizes."""

    def __init__(self, scope: OpScope, forms: dict[str, int]) -> None:
        self._scope = scope
        self._op: OpSpec = scope.op
        self._forms = forms
        self._lets = {n for c in self._op.checks if isinstance(c, ShapeLet) for n in c.names}
        self._known = set(self._lets)
        self._lines: list[str] = []

    def lines(self, last: bool) -> list[str]:
        equations = list(self._equations())
        after = [e for e in equations if any(f in self._lets for f in e.dim.factors)]
        if last:
            for e in after:
                if not e.follows:
                    self._same(e)
            return self._lines
        for v in self._op.inputs:
            if isinstance(v, Sizes) and v.bindings:
                for symbol, value in v.bindings[self._forms[v.name]]:
                    self._lines.append(f"{self._scope.field(symbol)} = {value};")
                    self._known.add(symbol)
        plain = [e for e in equations if e not in after]
        self._name([e for e in plain if not e.follows], [e for e in plain if e.follows])
        return self._lines

    def _equations(self) -> Iterator[_Equation]:
        for given in self._op.inputs:
            if isinstance(given, Tensor):
                dims, layout = given.dims, given.layout
                sizes, follows = f"{self._scope.public.inputs[given.name]}->shape", given.follows
            else:
                form = self._forms[given.name]
                dims, layout = given.forms[form], given.layouts[form]
                sizes, follows = f"call->{self._scope.sizes[given.name]}", False
            for position, dim in enumerate(dims):
                axis = self._scope.axis(layout, position)
                size = f"{sizes}[{axis}]"
                if dim.broadcast:
                    size = f"call->{self._scope.stretched[given.name, position]}"
                    self._lines.append(f"{size} = {sizes}[{axis}];")
                yield _Equation(self._scope.locals[given.name], axis, size, dim, follows)

    def _name(self, equations: Sequence[_Equation], following: Sequence[_Equation]) -> None:
        """Names the sizes that are symbols, input by input; then takes the other equations.

        `following` are sizes of tensors whose shapes follow: they serve where a symbol would stay unknown.
        """
        waiting: list[_Equation] = []
        stretching = {e.symbol for e in equations if e.dim.broadcast}
        for e in equations:
            if e.symbol is not None and e.symbol not in self._known and e.symbol not in stretching:
                self._known.add(e.symbol)
                self._lines.append(f"{self._scope.field(e.symbol)} = {e.size};")
            else:
                waiting.append(e)
        elsewhere = told_elsewhere([e.dim for e in waiting], [e.dim for e in following], self._known)
        self._stretch(waiting, stretching - elsewhere)
        waiting = self._settle(waiting)
        while (last := next((e for e in following if len(self._unknown(e)) == 1), None)) is not None:
            self._use(last)
            waiting = self._settle(waiting)
        if waiting:
            raise InternalError(f"op {self._op.name}: some dimensions are not determined")

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

    def _stretch(self, equations: list[_Equation], symbols: set[str | None]) -> None:
        """Symbols of broadcast dimensions take the first size that is not 1, in the order of the inputs."""
        for symbol in dict.fromkeys(e.symbol for e in equations if e.symbol in symbols):
            if symbol is None or symbol in self._known:
                continue
            members = [e for e in equations if e.symbol == symbol]
            firm = next((i for i, e in enumerate(members) if not e.dim.broadcast), len(members) - 1)
            *others, final = [e.size for e in members[: firm + 1]]
            chosen = "".join(f"{size} != 1 ? {size} : " for size in others) + final
            self._lines.append(f"{self._scope.field(symbol)} = {chosen};")
            self._known.add(symbol)

    def _use(self, e: _Equation) -> bool:
        unknown = self._unknown(e)
        if len(unknown) > 1:
            return False
        if not unknown:
            self._same(e)
            return True
        if e.dim.broadcast:
            return False
        others = [f for f in e.dim.factors if f != unknown[0]]
        if not others:
            self._lines.append(f"{self._scope.field(unknown[0])} = {e.size};")
            self._known.add(unknown[0])
            return True
        names = string(" * ".join(map(str, others)))
        arguments = f"&{e.source}, {e.axis}, {self._product(others)}, {names}, &{self._scope.field(unknown[0])}"
        self._check(f"check_factor({arguments})")
        self._known.add(unknown[0])
        return True

    def _same(self, e: _Equation) -> None:
        if e.size == self._product(e.dim.factors):
            return
        named = any(isinstance(f, str) for f in e.dim.factors)
        names = string(" * ".join(map(str, e.dim.factors)) if named else "")
        stretches = "true" if e.dim.broadcast else "false"
        self._check(f"check_size(&{e.source}, {e.axis}, {self._product(e.dim.factors)}, {stretches}, {names})")

    def _check(self, call: str) -> None:
        self._lines += [f"if (!{self._scope.library.helper}_{call}) {{", "    return false;", "}"]

    def _product(self, factors: Sequence[str | int]) -> str:
        terms = [self._scope.field(f) if isinstance(f, str) else str(f) for f in factors] or ["1"]
        result = terms[0]
        for term in terms[1:]:
            result = f"{self._scope.library.helper}_product({result}, {term})"
        return result
