"""From an op to a kernel: one nest a definition, loops in the order of the result's memory, accumulators innermost.

    for each index of the result, in its physical order:
        alloc acc: register
            acc = 0
            for each index of the reduction:
                if the reads are inside:
                    acc = fma(a[...], b[...], acc)
            result[...] = cast(acc)

Conditions stand at the outermost loop at which they are decided.  Intermediate tensors are heap allocations around all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opgen.diagnostics import InternalError
from opgen.loop import build as b
from opgen.loop import nodes as loop
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Alloc, Buffer, For, Kernel, Stmt, Store, Var
from opgen.loop.walk import free_vars
from opgen.lower.inline import inline_lets
from opgen.lower.mathematics import Mathematics, Names, Scope, TensorAccess
from opgen.lower.names import reserved_names
from opgen.lower.parameters import Parameters
from opgen.lower.scalars import Scalars, has_floats
from opgen.lower.variant import Variant
from opgen.spec.model import Definition, EnumIs, Expr, Index, Module, OpSpec, Present, Require, SizeOf, Tensor
from opgen.spec.walk import subexpressions


@dataclass(frozen=True)
class Lowered:
    """A kernel, and for each of its parameters the expression of the shape language that the caller passes."""

    kernel: Kernel
    arguments: tuple[Expr, ...]


def lower(module: Module, op: OpSpec, variant: Variant) -> Lowered:
    """The kernel of an op for given types and structural attributes, generic in sizes and all other attributes."""
    return _Lowering(op, variant).run()


class _Lowering:
    def __init__(self, op: OpSpec, variant: Variant) -> None:
        self._op = op
        self._variant = variant
        self._parameters = Parameters(op)
        self._scalars = Scalars(self._parameters, variant)
        self._definitions = inline_lets(op.definitions)
        self._names = Names(reserved_names(op))
        self._tensors: dict[str, TensorAccess] = {}

    def run(self) -> Lowered:
        op = self._op
        if not op.definitions:
            raise InternalError(f"op {op.name} has no mathematics: derive the gradients of a module first")
        inputs = tuple(self._argument(t) for t in op.tensors if not t.shape_only)
        outputs = tuple(self._argument(t) for t in op.outputs)
        lets = tuple(self._let(d) for d in self._definitions if not d.is_output)
        body = b.block(self._nest(d) for d in self._definitions)
        for buffer in reversed(lets):
            body = Alloc(buffer, body)
        kernel = Kernel(
            name=f"{op.function_name}_{self._variant.suffix}".rstrip("_"),
            inputs=inputs,
            outputs=outputs,
            parameters=self._parameters.parameters,
            body=body,
            assumptions=self._assumptions(),
        )
        return Lowered(kernel, self._parameters.values)

    # Buffers ----------------------------------------------------------------------------------------

    def _argument(self, tensor: Tensor) -> Buffer:
        order = self._variant.permutation(self._op, tensor.layout, tensor.rank)
        sizes = [
            self._scalars.lower(SizeOf(tensor.name, i) if d.broadcast else d.size, {})
            for i, d in enumerate(tensor.dims)
        ]
        stretched = tuple(self._scalars.lower(d.size, {}) if d.broadcast else None for d in tensor.dims)
        buffer = Buffer(tensor.name, self._variant.dtype(tensor.dtype), tuple(sizes[axis] for axis in order))
        self._tensors[tensor.name] = TensorAccess(buffer, order, stretched)
        return buffer

    def _let(self, definition: Definition) -> Buffer:
        dtype = self._variant.dtype(definition.dtype).compute_type
        shape = tuple(self._scalars.lower(d, {}) for d in definition.dims)
        buffer = Buffer(self._names.fresh(definition.tensor), dtype, shape, "heap")
        rank = len(shape)
        self._tensors[definition.tensor] = TensorAccess(buffer, tuple(range(rank)), (None,) * rank)
        return buffer

    # Nests ------------------------------------------------------------------------------------------

    def _nest(self, definition: Definition) -> Stmt:
        names = self._names if definition.is_output else _Prefixed(self._names, definition.tensor)
        access = self._tensors[definition.tensor]
        ordered = _in_memory_order(definition, access.order)
        variables = {name: b.var(names.fresh(name)) for name in ordered}
        extents = {r.name: self._scalars.lower(r.extent, {}) for r in definition.indices}
        context = self._context()
        for name in ordered:
            context = context.with_loop(variables[name].name, b.index(0), extents[name])
        scope = Scope(variables, context)
        mathematics = Mathematics(self._op, self._variant, self._parameters, self._tensors, names)
        compute = self._variant.dtype(definition.dtype).compute_type
        value = b.cast(access.buffer.dtype, mathematics.value(definition.value, compute, scope))
        nest = scope.wrap([Store(access.buffer.name, self._subscripts(definition, access, variables), value)])
        for name in reversed(ordered):
            nest = For(variables[name].name, b.index(0), extents[name], nest)
        return nest

    def _subscripts(
        self, definition: Definition, access: TensorAccess, variables: Mapping[str, Var]
    ) -> tuple[loop.Expr, ...]:
        return tuple(self._scalars.lower(definition.subscripts[axis], variables) for axis in access.order)

    # What is known ----------------------------------------------------------------------------------

    def _context(self) -> Context:
        """What holds of the parameters found so far."""
        known = Kernel("", (), (), self._parameters.parameters, b.EMPTY, self._assumptions())
        return Context.of(known)

    def _assumptions(self) -> tuple[loop.Expr, ...]:
        """The requirements, and what holds of sizes that stretch, where they speak of the kernel's parameters only."""
        found = {p.name for p in self._parameters.parameters}
        scalars = Scalars(Parameters(self._op), self._variant)
        required = [
            _lower_or_none(self._op, scalars, check.condition, self._variant)
            for check in self._op.checks
            if isinstance(check, Require)
        ]
        stretched = [
            b.compare("ge", scalars.lower(SizeOf(t.name, axis), {}), b.minimum(scalars.lower(d.size, {}), b.index(1)))
            for t in self._op.tensors
            for axis, d in enumerate(t.dims)
            if d.broadcast
        ]
        conditions = [c for c in (*required, *stretched) if c is not None and c != b.TRUE]
        return tuple(c for c in conditions if free_vars(c) <= found)


def _lower_or_none(op: OpSpec, scalars: Scalars, e: Expr, variant: Variant) -> loop.Expr | None:
    """A requirement as loop IR, unless it asks for an enumeration that the variant leaves open, or speaks of floats."""
    if has_floats(op, e):
        return None
    for n in subexpressions(e):
        if isinstance(n, Present) or (isinstance(n, EnumIs) and n.name not in variant.values):
            return None
    return scalars.lower(e, {})


def _in_memory_order(definition: Definition, order: tuple[int, ...]) -> list[str]:
    """The definition's indices, those of the slowest dimension of its tensor first."""
    return [n.name for axis in order for n in subexpressions(definition.subscripts[axis]) if isinstance(n, Index)]


class _Prefixed(Names):
    """Names of an intermediate's nest: `peak_i`, so that no two nests share a loop's name."""

    def __init__(self, names: Names, prefix: str) -> None:
        super().__init__()
        self._names = names
        self._prefix = prefix

    def fresh(self, name: str) -> str:
        return self._names.fresh(f"{self._prefix}_{name}")
