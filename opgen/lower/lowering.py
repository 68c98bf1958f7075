"""From an op to a kernel: a loop nest a definition, in the order of the result's memory, accumulators innermost.

    for each index of the result, in its physical order:
        alloc acc: register
            acc = 0
            for each index of the reduction:
                if the reads are inside:
                    acc = fma(a[...], b[...], acc)
            result[...] = cast(acc)

A condition is tested at the outermost loop at which it is decided; sizes and attributes choose between sums around all
loops (`cases.py`).  Sums that are better computed each by itself are split off (`parts.py`).  Intermediate tensors are
heap allocations around all loops; those of one case are around its statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from opgen.diagnostics import InternalError
from opgen.locks import cached_property
from opgen.loop import build as b
from opgen.loop import nodes as loop
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import Buffer, For, Kernel, Stmt, Store, Var
from opgen.loop.walk import free_vars
from opgen.lower.cases import ByCases, Cases, Part
from opgen.lower.constants import Expansion, expansion, quotient
from opgen.lower.elements import ElementCheck, element_checks
from opgen.lower.finite import unless_finite
from opgen.lower.inline import inline_lets
from opgen.lower.mathematics import Mathematics
from opgen.lower.names import reserved_names
from opgen.lower.orders import sorted_rows, with_keys
from opgen.lower.parameters import Parameters
from opgen.lower.parts import Parts
from opgen.lower.pieces import in_pieces
from opgen.lower.scalars import Scalars, has_floats, stored
from opgen.lower.scope import Names, Scope, Spare, TensorAccess
from opgen.lower.steps import Start, apart, at_each_step, start_of
from opgen.lower.updates import rounded_once, update_nests
from opgen.lower.variant import Variant
from opgen.spec.model.model import (
    Algorithm,
    Definition,
    EnumIs,
    Expr,
    Index,
    Module,
    OpSpec,
    Present,
    Reduce,
    Require,
    Scatter,
    ShapeLet,
    SizeOf,
    Symbol,
    Tensor,
)
from opgen.spec.model.narrow import narrow_op
from opgen.spec.model.walk import is_order, reads, subexpressions
from opgen.spec.resolve.recurrences import Recurrence, grouped
from opgen.spec.resolve.updates import layers

MANY = 8
"""Definitions beyond which all parameters are found first."""


@dataclass(frozen=True)
class Lowered:
    """A kernel, and for each of its parameters the expression of the shape language that the caller passes."""

    kernel: Kernel
    arguments: tuple[Expr, ...]


def lower(module: Module, op: OpSpec, variant: Variant, algorithm: Algorithm | None = None) -> Lowered:
    """Return the kernel of an op for given types and structural attributes, generic in sizes and all other attributes.

    With an algorithm, the kernel is for calls that meet its condition: it computes by the algorithm's mathematics, and
    once more by the op's own if a result is not finite.
    """
    if algorithm is None:
        return _Lowering(op, variant, op.definitions).run()
    narrowed = narrow_op(op, dict(algorithm.facts))
    return _Lowering(narrowed, variant, algorithm.definitions, algorithm.name).run()


@dataclass(frozen=True)
class _Step:
    """Surroundings of a definition within a step: the values of indices, the loops around, the tensors computed
    together.
    """

    indices: Mapping[str, loop.Expr]
    loops: tuple[tuple[str, loop.Expr], ...]
    names: frozenset[str]


_Nests: TypeAlias = tuple[list[Buffer], list[Stmt]]
"""Memory, and the nests that use it."""


@dataclass(frozen=True)
class _Numbered:
    """A check and the number under which a kernel reports it."""

    number: int
    check: ElementCheck


class _Lowering:
    def __init__(
        self, op: OpSpec, variant: Variant, definitions: tuple[Definition, ...], algorithm: str | None = None
    ) -> None:
        self._op = op
        self._algorithm = algorithm
        self._variant = variant
        self._parameters = Parameters(op)
        self._scalars = Scalars(self._parameters, variant)
        self._definitions = inline_lets(definitions)
        self._names = Names(reserved_names(op))
        self._tensors: dict[str, TensorAccess] = {}
        self._contexts: dict[tuple[loop.Parameter, ...], Context] = {}
        """Return the facts on the parameters found last."""
        self._tensor_names = Names((*self._names.taken, *(d.tensor for d in (*definitions, *op.definitions))))
        self._definitions = rounded_once(self._definitions, variant.dtype, self._tensor_names.fresh)

    def run(self) -> Lowered:
        op = self._op
        if not op.definitions:
            raise InternalError(f"op {op.name} has no mathematics: derive the gradients of a module first")
        inputs = tuple(self._argument(t) for t in op.tensors if not t.shape_only)
        outputs = tuple(self._argument(t) for t in op.outputs)
        body = self._body(self._definitions, element_checks(op) if self._algorithm is None else ())
        if self._algorithm is not None:
            plain = self._body(inline_lets(op.definitions))
            body = b.block((body, unless_finite(outputs, plain, self._names)))
        named = (op.function_name, self._algorithm, self._variant.suffix)
        kernel = Kernel(
            name="_".join(n for n in named if n),
            inputs=inputs,
            outputs=outputs,
            parameters=self._parameters.parameters,
            body=body,
            assumptions=self._assumptions(),
        )
        return Lowered(kernel, self._parameters.values)

    def _body(self, definitions: tuple[Definition, ...], checks: tuple[ElementCheck, ...] = ()) -> Stmt:
        """Return the checks, and one nest a definition, within the allocations of the intermediates."""
        for d in definitions:
            if not d.is_output:
                self._let(d)
        definitions, keys = with_keys(definitions, self._type_of_keys, self._tensor_names.fresh)
        for d in keys:
            self._let(d)
        own = [d.tensor for d in definitions if not d.is_output]
        lets: list[Buffer] = []
        nests: list[Stmt] = []
        if len(definitions) > MANY:
            self._find_parameters(definitions)
        cases = ByCases(self._condition, _named_integers(self._op))
        for step in _in_order(definitions, checks):
            if isinstance(step, _Numbered):
                made, checked = self._check(step)
                lets += made
                nests += checked
                continue
            made, computed = self._steps(step, cases) if isinstance(step, Recurrence) else self._made(step, cases)
            lets += made
            nests += computed
        return b.alloc([*(self._tensors[name].buffer for name in own), *lets], b.block(nests))

    def _find_parameters(self, definitions: Iterable[Definition]) -> None:
        """Find the parameters before all loop nests, so that their facts are computed once."""
        for d in definitions:
            for e in (*(r.extent for r in d.indices), *d.subscripts, d.value):
                for symbol in dict.fromkeys(n for n in subexpressions(e) if isinstance(n, Symbol)):
                    self._scalars.lower(symbol, {})

    def _made(self, definition: Definition, cases: ByCases, step: _Step | None = None) -> _Nests:
        """Return the loop nests of a definition, and the memory that it needs besides its own."""
        if is_order(definition.value):
            return self._sorted(definition)
        if isinstance(definition.value, Scatter):
            lets, nests = self._made(replace(definition, value=layers(definition.value)[0]), cases, step)
            return lets, [*nests, *self._updates(definition)]
        part = cases.of(definition)
        if isinstance(part, Cases):
            return [], [self._chosen(part, step)]
        pieces = in_pieces(part, cases.named, self._parameters.is_size) if step is None else (part,)
        if len(pieces) > MANY:
            self._find_parameters(pieces)
        lets, nests = [], []
        for piece in pieces:
            own, parts = self._in_parts(piece)
            lets += own
            nests += [self._nest(d, step) for d in parts]
        return lets, nests

    def _sorted(self, d: Definition) -> _Nests:
        """Return the nests of an order, and the memory that they need."""
        assert isinstance(d.value, Reduce)
        key = next(reads(d.value.body))
        sizes = [self._scalars.lower(r.extent, {}) for r in d.indices]
        return sorted_rows(d, self._tensors[key.tensor], self._tensors[d.tensor], sizes, self._names.fresh)

    def _steps(self, found: Recurrence, cases: ByCases) -> _Nests:
        """Return the loop nests that do not depend on the steps, the first rows, and a loop around the nests of each
        step.
        """
        lets: list[Buffer] = []
        before: list[Stmt] = []
        members: list[Definition] = []
        for number, d in enumerate(at_each_step(found)):
            *others, member = self._parts(lets).apart(replace(d, indices=found.members[number].indices), found.names)
            for part in others:
                made, nests = self._made(part, cases)
                lets, before = lets + made, before + nests
            members.append(replace(member, indices=d.indices))
            start = start_of(found, number)
            if start is not None:
                self._make_room(start)
                made, nests = self._made(start.row, cases)
                lets, before = lets + made, before + nests
        outside = apart(found, members)
        loops = {r.name: b.var(self._names.fresh(f"{members[0].tensor}_{r.name}")) for r in outside}
        stops = [(loops[r.name].name, self._scalars.lower(r.extent, {})) for r in outside]
        var = b.var(self._names.fresh(f"{members[0].tensor}_step"))
        stop = self._scalars.lower(found.steps, {})
        place: loop.Expr = b.sub(b.sub(stop, 1), var) if found.backward else var
        inside: list[Stmt] = []
        own: list[Buffer] = []
        for number, member in enumerate(members):
            known = {**loops, found.index(number): place}
            step = _Step(known, (*stops, (var.name, stop)), found.names)
            part = replace(member, indices=tuple(r for r in member.indices if r.name not in loops))
            made, nests = self._made(part, cases, step)
            own, inside = own + made, inside + nests
        nest: Stmt = b.alloc(own, For(var.name, b.index(0), stop, b.block(inside), "ordered"))
        for name, size in reversed(stops):
            nest = For(name, b.index(0), size, nest)
        return lets, [*before, nest]

    def _make_room(self, start: Start) -> None:
        """Reserve rows in a tensor's memory for the values read before its first step."""
        access = self._tensors[start.row.tensor]
        shape = tuple(
            b.add(size, start.before + start.after) if axis == start.axis else size
            for axis, size in enumerate(access.buffer.shape)
        )
        spare = Spare(start.axis, start.before, start.after)
        buffer = replace(access.buffer, shape=shape)
        self._tensors[start.row.tensor] = replace(access, buffer=buffer, spare=spare)

    def _check(self, step: _Numbered) -> tuple[list[Buffer], list[Stmt]]:
        """Return the buffers and statements of a check: the least distance from an end, negative for one outside.

        Only then is the least subscript looked for: it is outside, or it goes farthest beyond the other end.
        """
        buffers: list[Buffer] = []
        nests: list[Stmt] = []
        for value, name in ((step.check.measure, "inside"), (step.check.least, "least")):
            tensor = self._tensor_names.fresh(f"{name}_{step.number}")
            definition = Definition(tensor, (), (), value, "int64", (), False, span=step.check.read.span)
            buffers.append(self._let(definition))
            nests.append(self._nest(definition))
        inside, least = (loop.Load(buffer.name, (), buffer.dtype) for buffer in buffers)
        size = self._scalars.lower(step.check.size, {})
        beyond = b.sub(b.sub(size, 1), inside)
        settled = Store(buffers[1].name, (), b.select(b.compare("lt", least, 0), least, beyond))
        holds = b.compare("ge", inside, 0)
        failed = b.when(b.negate(holds), b.block((nests[1], settled)))
        return buffers, [nests[0], failed, loop.Check(holds, step.number, least)]

    def _updates(self, definition: Definition) -> list[Stmt]:
        """Return the nests of a definition's updates."""
        names = _Prefixed(self._names, f"{definition.tensor}_at")
        access = self._tensors[definition.tensor]
        return update_nests(definition, access, lambda: self._mathematics(names), self._scalars, names, self._context())

    def _chosen(self, part: Part, step: _Step | None) -> Stmt:
        """Return the loop nests of each case under its condition, with the buffers they need."""
        if isinstance(part, Cases):
            return b.when(part.condition, self._chosen(part.if_true, step), self._chosen(part.if_false, step))
        lets, parts = self._in_parts(part)
        return b.alloc(lets, b.block(self._nest(d, step) for d in parts))

    def _in_parts(self, definition: Definition) -> tuple[list[Buffer], tuple[Definition, ...]]:
        """Return a definition after those of the sums that get loops of their own, and where these are kept."""
        lets: list[Buffer] = []
        return lets, self._parts(lets).of(definition)

    def _parts(self, lets: list[Buffer]) -> Parts:
        """Return the object that splits definitions into parts, and adds their memory to the existing buffers."""
        type_of = self._mathematics(self._names).type_of
        return Parts(type_of, self._tensor_names.fresh, lambda part: lets.append(self._let(part)))

    def _condition(self, e: Expr) -> loop.Expr:
        """Return a condition on sizes and attributes."""
        return self._mathematics(self._names).condition(e, Scope({}, Context()))

    def _mathematics(self, names: Names, partial: bool = False, stepping: frozenset[str] = frozenset()) -> Mathematics:
        return Mathematics(self._op, self._variant, self._parameters, self._tensors, names, partial, stepping)

    def _type_of_keys(self, e: Expr) -> str:
        """Return the type of the values that an order sorts."""
        dtype = self._mathematics(self._names).type_of(e)
        assert dtype is not None
        return dtype.name

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

    def _nest(self, definition: Definition, around: _Step | None = None) -> Stmt:
        """Return the loops of a definition, at a step; indices that only choose among numbers are written out."""
        names = self._names if definition.is_output else _Prefixed(self._names, definition.tensor)
        access = self._tensors[definition.tensor]
        expanded = expansion(definition)
        extents = {r.name: self._scalars.lower(r.extent, {}) for r in definition.indices}
        variables: dict[str, Var] = {}
        stops: dict[str, loop.Expr] = {}
        context = self._context()
        known: dict[str, loop.Expr] = {}
        if around is not None:
            known |= around.indices
            for outer, size in around.loops:
                context = context.with_loop(outer, b.index(0), size)
        for name in _in_memory_order(definition, access.order):
            if name in expanded.chosen:
                continue
            step = expanded.split.get(name)
            index = name if step is None else quotient(name)
            variables[index] = b.var(names.fresh(name))
            stops[index] = extents[name] if step is None else b.ceildiv(extents[name], b.index(step))
            context = context.with_loop(variables[index].name, b.index(0), stops[index])
        scope = Scope({**known, **variables}, context)
        stepping = frozenset[str]() if around is None else around.names
        mathematics = self._mathematics(names, bool(expanded.split), stepping)
        nest = self._copies(definition, expanded, extents, scope, mathematics)
        for index in reversed(variables):
            nest = For(variables[index].name, b.index(0), stops[index], nest)
        return b.when(b.all_of(dict.fromkeys(scope.around)), nest)

    def _copies(
        self,
        definition: Definition,
        expanded: Expansion,
        extents: Mapping[str, loop.Expr],
        scope: Scope,
        mathematics: Mathematics,
    ) -> Stmt:
        """Store once for each choice of the indices that are written out, each after the statements it needs."""
        access = self._tensors[definition.tensor]
        compute = self._variant.dtype(definition.dtype).compute_type
        statements: list[Stmt] = []
        for choice in expanded.copies():
            value = mathematics.definition(expanded.settle(definition.value, choice), compute, scope)
            subscripts = [expanded.settle(definition.subscripts[axis], choice) for axis in access.order]
            place = tuple(self._scalars.lower(e, scope.indices) for e in subscripts)
            if access.spare is not None:
                rows = access.spare
                place = tuple(b.add(e, rows.before) if a == rows.axis else e for a, e in enumerate(place))
            store: Stmt = Store(access.buffer.name, place, stored(access.buffer.dtype, value))
            for name in expanded.split:
                index = self._scalars.lower(expanded.settle(Index(name), choice), scope.indices)
                inside = b.compare("lt", index, extents[name])
                store = store if scope.context.proves(inside) else b.when(inside, store)
            statements += [*scope.before, store]
            scope.before.clear()
        scope.allocs += mathematics.shared()
        return scope.wrap(statements)

    # Known facts ------------------------------------------------------------------------------------

    def _context(self) -> Context:
        """Return the context of the parameters found so far."""
        parameters = self._parameters.parameters
        if parameters not in self._contexts:
            self._contexts = {parameters: Context.of(Kernel("", (), (), parameters, b.EMPTY, self._assumptions()))}
        return self._contexts[parameters]

    def _assumptions(self) -> tuple[loop.Expr, ...]:
        """Return the requirements, and the facts of stretched sizes, that use only the kernel's parameters."""
        found = {p.name for p in self._parameters.parameters}
        return tuple(c for c, names in self._required if names <= found)

    @cached_property
    def _required(self) -> list[tuple[loop.Expr, frozenset[str]]]:
        """Return all requirements, and the facts of stretched sizes, each with the parameters that it uses."""
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
        return [(c, frozenset(free_vars(c))) for c in conditions]


def _in_order(
    definitions: tuple[Definition, ...], checks: tuple[ElementCheck, ...]
) -> Iterator[Definition | Recurrence | _Numbered]:
    """Yield definitions and checks in order, checks first: each after its dependencies, and before any write."""
    groups = grouped(definitions)
    left = {name: group for group in groups for name in _defined(group)}

    def needed(names: Iterable[str]) -> Iterator[Definition | Recurrence]:
        for name in names:
            group = left.get(name)
            if group is None:
                continue
            for own in _defined(group):
                del left[own]
            members = group.members if isinstance(group, Recurrence) else (group,)
            yield from needed(dict.fromkeys(r.tensor for d in members for r in reads(d.value)))
            yield group

    for number, check in enumerate(checks):
        yield from needed(sorted(check.tensors))
        yield _Numbered(number, check)
    yield from (g for g in groups if any(name in left for name in _defined(g)) or not _defined(g))


def _defined(group: Definition | Recurrence) -> tuple[str, ...]:
    """Return the intermediate tensors that are defined together."""
    if isinstance(group, Recurrence):
        return tuple(d.tensor for d in group.members)
    return () if group.is_output else (group.tensor,)


def _lower_or_none(op: OpSpec, scalars: Scalars, e: Expr, variant: Variant) -> loop.Expr | None:
    """Return a requirement as loop IR; None if it uses an enumeration that the variant leaves open, or floats."""
    if has_floats(op, e):
        return None
    for n in subexpressions(e):
        if isinstance(n, Present) or (isinstance(n, EnumIs) and n.name not in variant.values):
            return None
    return scalars.lower(e, {})


def _named_integers(op: OpSpec) -> dict[Expr, Expr]:
    """Return the expressions that have a name."""
    return {Symbol(c.names[0]): c.value for c in op.checks if isinstance(c, ShapeLet) and len(c.names) == 1}


def _in_memory_order(definition: Definition, order: tuple[int, ...]) -> list[str]:
    """Return the definition's indices, those of the slowest dimension of its tensor first."""
    own = {r.name for r in definition.indices}
    found = (n for axis in order for n in subexpressions(definition.subscripts[axis]) if isinstance(n, Index))
    return [n.name for n in found if n.name in own]


class _Prefixed(Names):
    """Names of an intermediate's nest: `peak_i`, so that no two nests share a loop's name."""

    def __init__(self, names: Names, prefix: str) -> None:
        super().__init__()
        self._names = names
        self._prefix = prefix

    def fresh(self, name: str) -> str:
        return self._names.fresh(f"{self._prefix}_{name}")
