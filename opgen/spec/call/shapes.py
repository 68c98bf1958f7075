"""A call's shapes worked out: dimensions solved, lets computed, requirements checked, output shapes given.

This is what every generated binding does in its own language; here it serves examples, tests and graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from opgen.spec.call.arguments import AttrArgument, CallError, CallTypeError, logical_axes, settle_attrs, show
from opgen.spec.call.environment import Environment, evaluate, evaluate_int
from opgen.spec.call.whole import EvaluationError
from opgen.spec.model import model as m
from opgen.spec.resolve.dimensions import size_name, told_elsewhere

__all__ = ["AttrArgument", "CallError", "CallTypeError", "Environment", "evaluate", "solve"]

_LIMIT = 2**63


@dataclass(frozen=True)
class _Equation:
    """A size that the caller gave for a dimension; `axis` is in the caller's order, `given` is what to show."""

    argument: str
    axis: int
    dim: m.Dimension
    size: int
    given: str
    what: str


def solve(
    op: m.OpSpec,
    module: m.Module,
    shapes: Mapping[str, Sequence[int]],
    sizes: Mapping[str, Sequence[int]] | None = None,
    attrs: Mapping[str, AttrArgument] | None = None,
) -> Environment:
    """The environment of a call.

    `shapes` are the tensor inputs' shapes and `sizes` the sizes inputs' values, both in the caller's order; `attrs` is
    what the caller gives for attributes (None, or nothing, for the default).  Raises CallError, naming an argument.
    """
    return _Solver(op, module, shapes, sizes or {}, attrs or {}).solve()


class _Solver:
    def __init__(
        self,
        op: m.OpSpec,
        module: m.Module,
        shapes: Mapping[str, Sequence[int]],
        sizes: Mapping[str, Sequence[int]],
        attrs: Mapping[str, AttrArgument],
    ) -> None:
        self.op = op
        self.attrs, self.raw = settle_attrs(op, attrs)
        self.given: dict[str, str] = {name: show(value) for name, value in self.raw.items()}
        self.logical: dict[str, tuple[int, ...]] = {}
        self.symbols: dict[str, int] = {}
        self.lets = {name for c in op.checks if isinstance(c, m.ShapeLet) for name in c.names}
        self.equations: list[_Equation] = []
        self.following: list[_Equation] = []
        for entry in op.inputs:
            if isinstance(entry, m.Sizes):
                self.equations += self._of_sizes(entry, sizes)
            elif entry.follows:
                self.following += self._of_tensor(entry, shapes)
            else:
                self.equations += self._of_tensor(entry, shapes)
        functions = {f.name: f for f in module.functions}
        self.environment = Environment(op, functions, self.symbols, self.attrs, self.logical)

    def solve(self) -> Environment:
        self._solve_dimensions()
        for check in self.op.checks:
            if isinstance(check, m.ShapeLet):
                self._let(check)
            else:
                self._require(check)
        for equation in self.equations:
            if any(f in self.lets for f in equation.dim.factors):
                self._verify(equation)
        for tensor in self.op.tensors:
            if tensor.follows:
                self._verify_whole(tensor)
        return self._with_outputs()

    # What the caller gave -------------------------------------------------------------------------

    def _of_tensor(self, tensor: m.Tensor, shapes: Mapping[str, Sequence[int]]) -> Iterator[_Equation]:
        if tensor.name not in shapes:
            raise CallTypeError(self.op.name, tensor.name, f"a tensor of rank {tensor.rank}", "nothing")
        shape = tuple(int(s) for s in shapes[tensor.name])
        given = self.given[tensor.name] = f"shape {list(shape)}"
        if len(shape) != tensor.rank:
            raise CallError(self.op.name, tensor.name, f"a tensor of rank {tensor.rank}", given)
        axes = logical_axes(self.op, tensor.layout, self.attrs, tensor.rank)
        self.logical[tensor.name] = tuple(shape[a] for a in axes)
        for axis, dim in zip(axes, tensor.dims, strict=True):
            yield _Equation(tensor.name, axis, dim, shape[axis], given, "dimension")

    def _of_sizes(self, vector: m.Sizes, sizes: Mapping[str, Sequence[int]]) -> Iterator[_Equation]:
        lengths = " or ".join(str(len(f)) for f in vector.forms)
        if vector.name not in sizes:
            raise CallTypeError(self.op.name, vector.name, f"{lengths} integers", "nothing")
        values = tuple(int(v) for v in sizes[vector.name])
        given = self.given[vector.name] = str(list(values))
        pick = next((i for i, f in enumerate(vector.forms) if len(f) == len(values)), None)
        if pick is None:
            raise CallError(self.op.name, vector.name, f"{lengths} integers", given)
        if any(v < 0 for v in values):
            raise CallError(self.op.name, vector.name, "sizes that are not negative", given)
        self.symbols.update(vector.bindings[pick] if vector.bindings else ())
        axes = logical_axes(self.op, vector.layouts[pick], self.attrs, len(values))
        for axis, dim in zip(axes, vector.forms[pick], strict=True):
            yield _Equation(vector.name, axis, dim, values[axis], given, "element")

    # Dimensions -----------------------------------------------------------------------------------

    def _solve_dimensions(self) -> None:
        """Solves for one unknown factor at a time, in the order of the inputs, until nothing is left to solve."""
        plain = [e for e in self.equations if not any(f in self.lets for f in e.dim.factors)]
        elsewhere = told_elsewhere(
            [e.dim for e in plain], [e.dim for e in self.following], {*self.symbols, *self.lets}
        )  # fmt: skip
        late = [e for e in plain if e.dim.broadcast and e.dim.factors[0] in elsewhere]
        waiting = self._settle([e for e in plain if e not in late and not (e.dim.broadcast and e.size == 1)])
        for equation in plain:
            if equation.dim.broadcast and equation not in late:
                self.symbols.setdefault(str(equation.dim.factors[0]), 1)
        waiting = self._settle(waiting)
        while (last := next((e for e in self.following if len(self._unknown(e)) == 1), None)) is not None:
            self._use(last)
            waiting = self._settle(waiting)
        for equation in late:
            self._verify(equation)

    def _settle(self, waiting: list[_Equation]) -> list[_Equation]:
        """Uses equations until what is left has several unknowns each; those are given back."""
        while waiting:
            rest = [e for e in waiting if not self._use(e)]
            if len(rest) == len(waiting):
                break
            waiting = rest
        return waiting

    def _unknown(self, equation: _Equation) -> list[str]:
        """The factors of a size that are not known yet, as far as they are dimensions of inputs."""
        found = [f for f in equation.dim.factors if isinstance(f, str) and f not in self.symbols]
        return [] if any(f in self.lets for f in found) else found

    def _use(self, equation: _Equation) -> bool:
        """Verifies an equation, or solves it for its one unknown; False while it has more."""
        unknown = [f for f in equation.dim.factors if isinstance(f, str) and f not in self.symbols]
        if len(unknown) > 1:
            return False
        if not unknown:
            self._verify(equation)
            return True
        others = [f for f in equation.dim.factors if f != unknown[0]]
        known = prod(self._factor(f) for f in others)
        if known == 0:
            if equation.size != 0:
                raise self._mismatch(equation, f"to be 0 ({_product(others)} is 0)")
            self.symbols[unknown[0]] = 1
        elif equation.size % known:
            raise self._mismatch(equation, f"to be a multiple of {known} ({_product(others)})")
        else:
            self.symbols[unknown[0]] = equation.size // known
        return True

    def _factor(self, factor: str | int) -> int:
        return factor if isinstance(factor, int) else self.symbols[factor]

    def _verify(self, equation: _Equation) -> None:
        expected = prod(self._factor(f) for f in equation.dim.factors)
        if equation.size == expected or (equation.dim.broadcast and equation.size == 1):
            return
        named = any(isinstance(f, str) for f in equation.dim.factors)
        why = f" ({_product(equation.dim.factors)})" if named else ""
        either = " or 1" if equation.dim.broadcast else ""
        raise self._mismatch(equation, f"to be {expected}{either}{why}")

    def _verify_whole(self, tensor: m.Tensor) -> None:
        """A tensor whose shape follows from the rest."""
        try:
            expected = [evaluate_int(d.size, self.environment) for d in tensor.dims]
        except EvaluationError as error:
            raise self._beyond(tensor.name, error) from None
        if expected != list(self.logical[tensor.name]):
            axes = logical_axes(self.op, tensor.layout, self.attrs, tensor.rank)
            order = sorted(range(tensor.rank), key=axes.__getitem__)
            names = ", ".join(size_name(tensor.dims[i]) for i in order)
            message = f"shape {[expected[i] for i in order]} ({names})"
            raise CallError(self.op.name, tensor.name, message, self.given[tensor.name])

    def _mismatch(self, equation: _Equation, expected: str) -> CallError:
        return CallError(self.op.name, equation.argument, f"{equation.what} {equation.axis} {expected}", equation.given)

    # Lets and requirements ------------------------------------------------------------------------

    def _let(self, let: m.ShapeLet) -> None:
        for i, name in enumerate(let.names):
            value = replace(let.value, result=i) if isinstance(let.value, m.FunctionCall) and i else let.value
            try:
                self.symbols[name] = evaluate_int(value, self.environment)
            except EvaluationError as error:
                raise self._beyond(name, error) from None

    def _beyond(self, name: str, error: EvaluationError) -> CallError:
        first = self.op.inputs[0].name if self.op.inputs else self.op.name
        return CallError(
            self.op.name, first, f"sizes that '{name}' can be computed from ({error})", self.given.get(first, "none")
        )

    def _require(self, require: m.Require) -> None:
        try:
            holds = evaluate(require.condition, self.environment)
            if not holds:
                expected = "".join(
                    p if isinstance(p, str) else str(evaluate(p, self.environment)) for p in require.expected
                )
                raise CallError(self.op.name, require.argument, expected, self._shown(require.argument))
        except EvaluationError as error:
            message = f"a value for which the requirements can be computed ({error})"
            raise CallError(self.op.name, require.argument, message, self._shown(require.argument)) from None

    def _shown(self, argument: str) -> str:
        """What the caller gave; for what was left out, its default."""
        attr = next((a for a in self.op.attrs if a.name == argument), None)
        if attr is not None and self.raw[argument] is None:
            return show(attr.default) if attr.has_default else "nothing"
        return self.given[argument]

    # Outputs --------------------------------------------------------------------------------------

    def _with_outputs(self) -> Environment:
        physical: dict[str, tuple[int, ...]] = {}
        for output in self.op.outputs:
            try:
                logical = tuple(evaluate_int(d.size, self.environment) for d in output.dims)
            except EvaluationError as error:
                raise self._beyond(output.name, error) from None
            if any(size < 0 for size in logical) or prod(max(size, 1) for size in logical) >= _LIMIT:
                first = self.op.inputs[0].name if self.op.inputs else self.op.name
                message = f"sizes that give '{output.name}' a shape (computed {list(logical)})"
                raise CallError(self.op.name, first, message, self.given.get(first, "none"))
            self.logical[output.name] = logical
            shape = [0] * output.rank
            for axis, size in zip(logical_axes(self.op, output.layout, self.attrs, output.rank), logical, strict=True):
                shape[axis] = size
            physical[output.name] = tuple(shape)
        return replace(self.environment, output_shapes=physical)


def _product(factors: Sequence[str | int]) -> str:
    return " * ".join(str(f) for f in factors)
