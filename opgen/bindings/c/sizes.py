"""Dimensions as C: the statements that name the sizes of tensors, compare them, and solve products."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.bindings.c.scope import OpScope
from opgen.bindings.c.text import string
from opgen.spec.call import checks as c
from opgen.spec.model.model import Sizes


class SizePrinter:
    """Prints the checks of sizes as statements."""

    def __init__(self, scope: OpScope) -> None:
        self._scope = scope
        self._vectors = [i for i in scope.op.inputs if isinstance(i, Sizes)]

    def cases(self, check: c.Solve) -> Iterator[str]:
        """Yield the statements of all cases, each under its condition."""
        for case in check.cases:
            lines = [line for step in case.steps for line in self._step(step)]
            if len(check.cases) == 1:
                yield from lines
            elif lines:
                yield f"if ({self._condition(case)}) {{"
                yield from (f"    {line}" for line in lines)
                yield "}"

    def _condition(self, case: c.Case) -> str:
        forms = [v.name for v in self._vectors if len(v.forms) > 1]
        return " && ".join(f"call->{self._scope.forms[name]} == {case.forms[name]}" for name in forms)

    def _step(self, step: c.Step) -> Iterator[str]:
        match step:
            case c.Keep():
                yield f"{self._size(step.size)} = {self._caller(step.size)};"
            case c.Fix():
                yield f"{self._scope.field(step.symbol)} = {step.value};"
            case c.Name():
                yield f"{self._scope.field(step.symbol)} = {self._size(step.size)};"
            case c.Stretch():
                *others, last = map(self._size, step.sizes)
                chosen = "".join(f"{size} != 1 ? {size} : " for size in others) + last
                yield f"{self._scope.field(step.symbol)} = {chosen};"
            case c.Factor():
                names, target = string(c.product(step.others)), self._scope.field(step.symbol)
                yield from self._check("factor", step.size, step.others, f"{names}, &{target}")
            case c.Same():
                factors = step.size.dim.factors
                names = string(c.product(factors) if any(isinstance(f, str) for f in factors) else "")
                stretches = "true" if step.size.dim.broadcast else "false"
                yield from self._check("size", step.size, factors, f"{stretches}, {names}")

    def _check(self, kind: str, size: c.Size, factors: c.Factors, rest: str) -> Iterator[str]:
        place = f"&{self._scope.locals[size.argument]}, {self._axis(size)}, {self._product(factors)}"
        yield f"if (!{self._scope.library.helper}_check_{kind}({place}, {rest})) {{"
        yield "    return false;"
        yield "}"

    # Sizes ------------------------------------------------------------------------------------------

    def _axis(self, size: c.Size) -> str:
        return self._scope.axis(size.layout, size.position)

    def _caller(self, size: c.Size) -> str:
        """Return C for a size where the caller gave it."""
        if size.vector:
            return f"call->{self._scope.sizes[size.argument]}[{self._axis(size)}]"
        return f"{self._scope.public.inputs[size.argument]}->shape[{self._axis(size)}]"

    def _size(self, size: c.Size) -> str:
        if size.dim.broadcast:
            return f"call->{self._scope.stretched[size.argument, size.position]}"
        return self._caller(size)

    def _product(self, factors: c.Factors) -> str:
        first, *others = [self._scope.field(f) if isinstance(f, str) else str(f) for f in factors] or ["1"]
        for term in others:
            first = f"{self._scope.library.helper}_product({first}, {term})"
        return first
