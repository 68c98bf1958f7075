"""Shapes of a call: dimensions solved, lets computed, requirements checked, output shapes derived.

This interprets the list of checks that generated bindings print (`checks.py`).  It serves examples, tests and graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from opgen.spec.call import checks as c
from opgen.spec.call.arguments import AttrArgument, CallError, CallTypeError, logical_axes, settle_attrs, show
from opgen.spec.call.environment import Environment, evaluate, evaluate_int
from opgen.spec.call.whole import EvaluationError
from opgen.spec.model import model as m
from opgen.spec.resolve.dimensions import size_name

__all__ = ["AttrArgument", "CallError", "CallTypeError", "Environment", "evaluate", "solve"]

_LIMIT = 2**63


def solve(
    op: m.OpSpec,
    module: m.Module,
    shapes: Mapping[str, Sequence[int]],
    sizes: Mapping[str, Sequence[int]] | None = None,
    attrs: Mapping[str, AttrArgument] | None = None,
) -> Environment:
    """Return the environment of a call.

    `shapes` are the tensor inputs' shapes and `sizes` the sizes inputs' values, both in the caller's order.  `attrs`
    are the caller's attributes (absent or None for the default).  Raises CallError, naming an argument.
    """
    return _Call(op, module, shapes, sizes or {}, attrs or {}).solve()


class _Call:
    """Call while its checks are interpreted."""

    def __init__(
        self,
        op: m.OpSpec,
        module: m.Module,
        shapes: Mapping[str, Sequence[int]],
        sizes: Mapping[str, Sequence[int]],
        attrs: Mapping[str, AttrArgument],
    ) -> None:
        self.op = op
        self.shapes = shapes
        self.sizes = sizes
        self.attrs, self.raw = settle_attrs(op, attrs)
        self.given: dict[str, str] = {name: show(value) for name, value in self.raw.items()}
        self.logical: dict[str, tuple[int, ...]] = {}
        self.forms: dict[str, int] = {}
        self.symbols: dict[str, int] = {}
        functions = {f.name: f for f in module.functions}
        self.environment = Environment(op, functions, self.symbols, self.attrs, self.logical)

    def solve(self) -> Environment:
        for check in c.checks(self.op):
            match check:
                case c.Rank():
                    self._rank(check.tensor)
                case c.Length():
                    self._length(check.vector)
                case c.Solve() | c.Compare():
                    for step in check.of(self.forms):
                        self._step(step)
                case m.ShapeLet():
                    self._let(check)
                case m.Require():
                    self._require(check)
                case c.Whole():
                    self._whole(check.tensor)
        return self._with_outputs()

    # Arguments of the caller ----------------------------------------------------------------------

    def _rank(self, tensor: m.Tensor) -> None:
        if tensor.name not in self.shapes:
            raise CallTypeError(self.op.name, tensor.name, f"a tensor of rank {tensor.rank}", "nothing")
        shape = tuple(int(s) for s in self.shapes[tensor.name])
        given = self.given[tensor.name] = f"shape {list(shape)}"
        if len(shape) != tensor.rank:
            raise CallError(self.op.name, tensor.name, f"a tensor of rank {tensor.rank}", given)
        axes = logical_axes(self.op, tensor.layout, self.attrs, tensor.rank)
        self.logical[tensor.name] = tuple(shape[a] for a in axes)

    def _length(self, vector: m.Sizes) -> None:
        lengths = " or ".join(str(len(f)) for f in vector.forms)
        if vector.name not in self.sizes:
            raise CallTypeError(self.op.name, vector.name, f"{lengths} integers", "nothing")
        values = tuple(int(v) for v in self.sizes[vector.name])
        given = self.given[vector.name] = str(list(values))
        pick = next((i for i, f in enumerate(vector.forms) if len(f) == len(values)), None)
        if pick is None:
            raise CallError(self.op.name, vector.name, f"{lengths} integers", given)
        if any(v < 0 for v in values):
            raise CallError(self.op.name, vector.name, "sizes that are not negative", given)
        self.forms[vector.name] = pick

    # Dimensions -----------------------------------------------------------------------------------

    def _step(self, step: c.Step) -> None:
        match step:
            case c.Keep():
                pass
            case c.Fix():
                self.symbols[step.symbol] = step.value
            case c.Name():
                self.symbols[step.symbol] = self._size(step.size)
            case c.Stretch():
                sizes = [self._size(s) for s in step.sizes]
                self.symbols[step.symbol] = next((s for s in sizes if s != 1), sizes[-1])
            case c.Factor():
                self._factor(step)
            case c.Same():
                self._same(step.size)

    def _axis(self, size: c.Size) -> int:
        """Return where a size is in the caller's order."""
        if size.layout is None:
            return size.position
        return str(self.attrs[size.layout]).index(self.op.attr(size.layout).values[0][size.position])

    def _size(self, size: c.Size) -> int:
        given = self.sizes if size.vector else self.shapes
        return int(given[size.argument][self._axis(size)])

    def _product(self, factors: c.Factors) -> int:
        return prod(f if isinstance(f, int) else self.symbols[f] for f in factors)

    def _factor(self, step: c.Factor) -> None:
        size, known = self._size(step.size), self._product(step.others)
        if known == 0:
            if size != 0:
                raise self._mismatch(step.size, f"to be 0 ({c.product(step.others)} is 0)")
            self.symbols[step.symbol] = 1
        elif size % known:
            raise self._mismatch(step.size, f"to be a multiple of {known} ({c.product(step.others)})")
        else:
            self.symbols[step.symbol] = size // known

    def _same(self, size: c.Size) -> None:
        factors, given = size.dim.factors, self._size(size)
        expected = self._product(factors)
        if given == expected or (size.dim.broadcast and given == 1):
            return
        named = any(isinstance(f, str) for f in factors)
        why = f" ({c.product(factors)})" if named else ""
        either = " or 1" if size.dim.broadcast else ""
        raise self._mismatch(size, f"to be {expected}{either}{why}")

    def _whole(self, tensor: m.Tensor) -> None:
        """Check a tensor whose shape follows from the rest."""
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

    def _mismatch(self, size: c.Size, expected: str) -> CallError:
        what = f"{'element' if size.vector else 'dimension'} {self._axis(size)}"
        return CallError(self.op.name, size.argument, f"{what} {expected}", self.given[size.argument])

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
        """Format the caller's argument, or its default if it was omitted."""
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
