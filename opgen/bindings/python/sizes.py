"""Dimensions as Python: the statements that name the sizes of tensors, compare them, and solve products."""

from __future__ import annotations

from collections.abc import Iterator

from opgen.bindings.python.attributes import tuple_literal
from opgen.bindings.python.scope import OpScope
from opgen.bindings.python.text import literal
from opgen.spec.call import checks as c
from opgen.spec.model.model import OpSpec, Sizes


class SizePrinter:
    """Prints the checks of sizes as statements."""

    def __init__(self, op: OpSpec, scope: OpScope) -> None:
        self._op = op
        self._scope = scope
        self._vectors = [i for i in op.inputs if isinstance(i, Sizes)]
        self._following = {t.name for t in op.tensors if t.follows}

    def rank(self, check: c.Rank) -> str:
        """Return the statement that takes a tensor's shape."""
        name, rank = check.tensor.name, check.tensor.rank
        return f"{self._scope.shape(name)} = check.rank({literal(name)}, {self._scope.arguments[name]}, {rank})"

    def length(self, check: c.Length) -> str:
        """Return the statement that takes the values of a vector of sizes."""
        argument = check.vector.name
        name, lengths = self._scope.arguments[argument], tuple(len(form) for form in check.vector.forms)
        return f"{name} = check.vector({literal(argument)}, {name}, {tuple_literal(lengths)})"

    def cases(self, check: c.Solve) -> Iterator[str]:
        """Yield the statements of all cases, each under its condition."""
        for case in check.cases:
            lines = list(self._steps(case))
            if len(check.cases) == 1:
                yield from lines
            elif lines:
                yield f"if {self._condition(case)}:"
                yield from (f"    {line}" for line in lines)

    def _condition(self, case: c.Case) -> str:
        return " and ".join(
            f"len({self._scope.arguments[v.name]}) == {len(v.forms[case.forms[v.name]])}"
            for v in self._vectors
            if len(v.forms) > 1
        )

    def _steps(self, case: c.Case) -> Iterator[str]:
        """Yield the statements of one case; sizes that get names come input by input, as the caller unpacks a tuple."""
        yield from (f"{self._scope.symbols[s.symbol]} = {s.value}" for s in case.steps if isinstance(s, c.Fix))
        yield from self._unpacked(case)
        for step in case.steps:
            match step:
                case c.Name() if step.size.argument in self._following:
                    yield f"{self._scope.symbols[step.symbol]} = {self._size(step.size)}"
                case c.Stretch():
                    sizes = ", ".join(map(self._size, step.sizes))
                    yield f"{self._scope.symbols[step.symbol]} = stretched({sizes})"
                case c.Factor():
                    options = self._options(step.size, step.others, c.product(step.others))
                    yield f"{self._scope.symbols[step.symbol]} = check.factor({options})"
                case c.Same():
                    factors = step.size.dim.factors
                    names = c.product(factors) if any(isinstance(f, str) for f in factors) else ""
                    or_one = ", or_one=True" if step.size.dim.broadcast else ""
                    yield f"check.same({self._options(step.size, factors, names)}{or_one})"

    def _unpacked(self, case: c.Case) -> Iterator[str]:
        """Yield the statements that name sizes: one for each input, as the caller's sizes are a tuple."""
        names = {s.size: self._size(s.size) for s in case.steps if isinstance(s, c.Keep)}
        names |= {s.size: self._scope.symbols[s.symbol] for s in case.steps if isinstance(s, c.Name)}
        for given in self._op.inputs:
            parts = {size.position: (size, name) for size, name in names.items() if size.argument == given.name}
            if not parts or given.name in self._following:
                continue
            size, _ = next(iter(parts.values()))
            count = len(given.forms[case.forms[given.name]]) if isinstance(given, Sizes) else given.rank
            values = self._local(size)
            if size.layout is not None:
                order = self._op.attr(size.layout).values[0]
                count = len(order)
                values = f"logical({values}, {self._scope.arguments[size.layout]}, {literal(order)})"
            targets = [parts[i][1] if i in parts else "_" for i in range(count)]
            yield f"{', '.join(targets) if count > 1 else f'({targets[0]},)'} = {values}"

    # Sizes ------------------------------------------------------------------------------------------

    def _local(self, size: c.Size) -> str:
        """Return the name of the caller's sizes of an argument."""
        return self._scope.arguments[size.argument] if size.vector else self._scope.shape(size.argument)

    def _axis(self, size: c.Size) -> str:
        """Return Python for the position of a size in the caller's order."""
        if size.layout is None:
            return str(size.position)
        letter = self._op.attr(size.layout).values[0][size.position]
        return f"{self._scope.arguments[size.layout]}.index({literal(letter)})"

    def _size(self, size: c.Size) -> str:
        if size.dim.broadcast:
            return self._scope.size(size.argument, size.layout, size.position)
        return f"{self._local(size)}[{self._axis(size)}]"

    def _options(self, size: c.Size, factors: c.Factors, names: str) -> str:
        """Return the arguments of a check of a size against a product."""
        vector = ", vector=True" if size.vector else ""
        place = f"{literal(size.argument)}, {self._local(size)}, {self._axis(size)}"
        return f"{place}, {self._product(factors)}, {literal(names)}{vector}"

    def _product(self, factors: c.Factors) -> str:
        return " * ".join(self._scope.symbols[f] if isinstance(f, str) else str(f) for f in factors) or "1"
