"""The adjoint of an op's mathematics, in gather form: every element of the result is written once, without atomics.

For each tensor on the way from the output back to the input, the adjoint gathers from every read of it: over all
iterations that read the element (`solve`), the adjoint of the definition that reads, times the local derivative
(`derivative`). A term that the forward reduction leaves out, because a read is outside, is left out of the adjoint
too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from opgen.grad.algebra import ZERO, add, choose, conjunction, is_number, mul
from opgen.grad.derivative import Surroundings, contributions
from opgen.grad.equations import Equation, refused
from opgen.grad.facts import Facts
from opgen.grad.flatten import flatten
from opgen.grad.needed import needed
from opgen.grad.pieces import Piece, all_names, cases_of, contiguous_last, fixed_axes, letter, name_of, shown_names
from opgen.grad.presence import always_taken, choices, taken_where
from opgen.grad.solve import composite, digits_apart, solve, within
from opgen.grad.types import may_vary
from opgen.grad.untaken import may_be_infinite, may_be_nothing, product_of, unless_nothing
from opgen.grad.updates import check_order, scattered, weights
from opgen.spec.model.model import (
    Conditional,
    Definition,
    Expr,
    Index,
    IndexRange,
    Number,
    Operation,
    OpSpec,
    Read,
    Reduce,
    Scatter,
    SizeOf,
    Tensor,
)
from opgen.spec.model.walk import conjuncts, index_names, reads, reads_constants, reads_values, substitute_indices
from opgen.spec.resolve.recurrences import Recurrence, grouped

TERMS = 48
"""Greatest number of terms in one sum: a tensor may be read a thousand times, and every stage recurses into values."""
_NEVER = Number(2**62)
"""Greater than the number of any term of a reduction."""


def adjoint(op: OpSpec, wrt: str, seeds: Mapping[str, str], result: Tensor) -> tuple[Definition, ...]:
    """Definitions that compute, into `result`, the adjoint of `op` with respect to its input `wrt`.

    `seeds` names, for each output of `op`, the tensor that holds its adjoint.  The mathematics may read all inputs of
    `op` and the seeds.
    """
    return _Adjoint(op, wrt, seeds, result).run()


class _Adjoint:
    def __init__(self, op: OpSpec, wrt: str, seeds: Mapping[str, str], result: Tensor) -> None:
        types = {t.name: t.dtype for t in (*op.tensors, *op.outputs, result)}
        types |= {seeds[o.name]: o.dtype for o in op.outputs}
        self._taken = set(types)
        self._op = op
        self._facts = Facts(op)
        self._wrt = wrt
        self._result = result
        self._forward = {d.tensor: d for d in flatten(op.definitions, types)}
        self._taken |= set(self._forward)
        self._types = types | {d.tensor: d.dtype for d in self._forward.values()}
        self._adjoints = dict(seeds)
        self._wanted = self._dependents()
        check_order(op, self._wanted)
        self._pieces: dict[str, list[Piece]] = {}
        self._new: list[Definition] = []
        self._made: dict[str, Definition] = {}
        self._seeded = {seeds[o.name]: o for o in op.outputs}
        self._around = Surroundings(self._wanted.__contains__, self._types, self._whole)
        self._infinite = self._unbounded()
        self._nothing: set[str] = set()
        self._stepwise: dict[str, Definition] = {}  # by the name of the adjoint

    def run(self) -> tuple[Definition, ...]:
        groups = grouped(tuple(self._forward.values()))
        for group in reversed(groups):
            if isinstance(group, Recurrence):
                self._steps(group)
                continue
            if group.tensor not in self._wanted:
                continue
            if not group.is_output:
                if group.tensor not in self._pieces:
                    continue  # nothing uses it
                self._finish_let(group)
            self._visit(group)
        final = self._gathered(
            self._wrt, self._result.name, self._input_sizes(), self._result.dtype, self._actual_sizes(), is_output=True
        )
        available = [replace(d, is_output=False) for d in self._forward.values() if not d.is_output]
        stepwise = any(isinstance(g, Recurrence) for g in groups)
        return needed([*available, *self._new, final], final, stepwise)

    # Which tensors matter ---------------------------------------------------------------------------

    def _dependents(self) -> frozenset[str]:
        wanted, known = {self._wrt}, 0
        while known < len(wanted):  # recurrences may read later definitions
            known = len(wanted)
            for d in self._forward.values():
                if may_vary(d.dtype) and any(r.tensor in wanted for r in reads(d.value)):
                    wanted.add(d.tensor)
        return frozenset(wanted)

    def _unbounded(self) -> frozenset[str]:
        """Return the lets that may be infinite or NaN though all inputs are finite."""
        found, known = set[str](), -1
        while known < len(found):
            known = len(found)
            for d in self._forward.values():
                if may_be_infinite(d.value, found):
                    found.add(d.tensor)
        return frozenset(found)

    # One definition ---------------------------------------------------------------------------------

    def _visit(self, d: Definition) -> None:
        seed = Read(self._adjoints[d.tensor], d.subscripts, span=d.span)
        preferred = frozenset(r.name for r in d.indices)
        if isinstance(d.value, Scatter):
            self._visit_updates(d, d.value, seed)
            return
        if not isinstance(d.value, Reduce):
            self._collect(d.value, seed, seed, d.indices, (), (), preferred)
            return
        e = d.value
        ranges = (*d.indices, *e.indices)
        guards = tuple(dict.fromkeys(always_taken(e.body)))
        chosen = choices(e.body, lambda read: tuple(self._inside(read, read, ranges)))
        weight = self._others(e, seed) if e.kind == "prod" else seed
        wins = self._wins(d, e) if e.kind in ("max", "min") else None
        self._collect(e.body, weight, seed, ranges, (*conjuncts(e.condition), *chosen), guards, preferred, wins)

    def _visit_updates(self, d: Definition, e: Scatter, seed: Read) -> None:
        """Collect the contributions of the initial elements and of each update."""
        there = Read(seed.tensor, e.at, span=e.span)
        taken = (e.body, *e.at, *conjuncts(e.condition))
        guards = tuple(dict.fromkeys(read for part in taken for read in always_taken(part)))
        chosen = choices(e.body, lambda read: tuple(self._inside(read, read, e.indices)))
        conditions = (*conjuncts(e.condition), *chosen)
        made = conjunction([*conditions, *(c for g in guards for c in self._inside(g, g, e.indices))])
        first, each = weights(d, replace(e, condition=made), seed, there, self._define, self._value_of)
        self._collect(e.start, first, seed, d.indices, (), (), frozenset(r.name for r in d.indices))
        names = frozenset(r.name for r in e.indices)
        self._collect(e.body, each, there, e.indices, conditions, (*guards, there), names)

    def _collect(
        self,
        value: Expr,
        weight: Expr,
        seed: Read,
        ranges: tuple[IndexRange, ...],
        conditions: tuple[Expr, ...],
        guards: tuple[Read, ...],
        preferred: frozenset[str],
        wins: Expr | None = None,
    ) -> None:
        """Record the contributions of a value to the tensors that it reads.

        `weight`, a multiple of `seed`, is the adjoint of the value.
        """
        for c in contributions(value, weight, self._around):
            if is_number(c.weight, 0):
                continue
            own = c.weight
            if seed.tensor in self._nothing and may_be_infinite(own, self._infinite):
                own = unless_nothing(seed, own)
            own = own if wins is None else choose(wins, own, ZERO)
            self._pieces.setdefault(c.read.tensor, []).append(Piece(c.read, own, ranges, conditions, guards, preferred))

    def _others(self, e: Reduce, seed: Expr) -> Expr:
        """Return the seed times the product of all other terms."""
        names = {r.name: f"{r.name}_other" for r in e.indices}
        other: dict[str, Expr] = {old: Index(new) for old, new in names.items()}
        differs: Expr | None = None
        for old, new in names.items():
            unequal = Operation("!=", Index(new), Index(old))
            differs = unequal if differs is None else Operation("or", differs, unequal)
        kept = [substitute_indices(c, other) for c in conjuncts(e.condition)]
        condition = conjunction([*kept, *([] if differs is None else [differs])])
        ranges = tuple(IndexRange(names[r.name], substitute_indices(r.extent, other)) for r in e.indices)
        return mul(seed, Reduce("prod", ranges, substitute_indices(e.body, other), condition=condition))

    def _wins(self, d: Definition, e: Reduce) -> Expr:
        """Return the condition that a term is the first with the extreme value (or NaN)."""
        if any(index_names(r.extent) & {o.name for o in e.indices} for r in e.indices):
            message = f"a '{e.kind}' in which the range of an index depends on another cannot be differentiated"
            raise refused(message, e.span)
        extreme = self._value_of(d)
        here = Read(extreme, d.subscripts)
        number: Expr = ZERO
        for r in e.indices:
            number = add(mul(number, r.extent), Index(r.name))
        wins = Operation("or", Operation("==", e.body, here), Operation("!=", e.body, e.body))
        first = Reduce("min", e.indices, Conditional(wins, number, _NEVER), condition=e.condition)
        winner = self._define(f"{d.tensor}_winner", d, first, "int64")
        return Operation("==", number, Read(winner, d.subscripts))

    def _value_of(self, d: Definition) -> str:
        """Return the name of a tensor that holds the forward value of a definition."""
        return self._define(f"{d.tensor}_value", d, d.value, d.dtype) if d.is_output else d.tensor

    def _define(self, name: str, like: Definition, value: Expr, dtype: str) -> str:
        name = self._fresh(name)
        self._keep(replace(like, tensor=name, value=value, dtype=dtype, is_output=False))
        return name

    def _keep(self, d: Definition) -> None:
        self._new.append(d)
        self._made[d.tensor] = d
        self._types[d.tensor] = d.dtype

    def _fresh(self, name: str) -> str:
        candidate, count = name, 1
        while candidate in self._taken:
            count += 1
            candidate = f"{name}_{count}"
        self._taken.add(candidate)
        return candidate

    # Gathering --------------------------------------------------------------------------------------

    def _finish_let(self, d: Definition) -> None:
        name = self._fresh(f"grad_{d.tensor}")
        self._adjoints[d.tensor] = name
        gathered = self._gathered(d.tensor, name, d.dims, d.dtype, (None,) * len(d.dims), is_output=False)
        self._keep(gathered)
        if may_be_nothing(gathered, self._size, self._nothing):
            self._nothing.add(name)

    def _steps(self, group: Recurrence) -> None:
        """Define the adjoints of a recurrence: a recurrence that runs from the last step back."""
        members = [d for d in group.members if d.tensor in self._wanted]
        if not any(d.tensor in self._pieces for d in members):
            return  # nothing uses it
        for d in members:
            name = self._adjoints[d.tensor] = self._fresh(f"grad_{d.tensor}")
            self._types[name] = d.dtype
            self._nothing.add(name)
            self._stepwise[name] = d
        for d in members:
            self._visit(d)
        for d in reversed(members):
            actual = (None,) * len(d.dims)
            self._keep(self._gathered(d.tensor, self._adjoints[d.tensor], d.dims, d.dtype, actual, is_output=False))

    def _gathered(
        self,
        tensor: str,
        name: str,
        sizes: tuple[Expr, ...],
        dtype: str,
        actual: tuple[Expr | None, ...],
        *,
        is_output: bool,
    ) -> Definition:
        at_elements = [p for p in self._pieces.get(tensor, []) if any(map(reads_values, p.read.indices))]
        others = [p for p in self._pieces.get(tensor, []) if p not in at_elements]
        pieces = [case for piece in others for case in cases_of(piece)]
        targets, ranges = self._targets(tensor, sizes, actual, pieces)
        dims = tuple(a if a is not None else s for s, a in zip(sizes, actual, strict=True))
        value: Expr = ZERO
        for number, piece in enumerate(pieces, 1):
            equations = [
                Equation(s, t, size, a, s.span or piece.read.span)
                for s, t, size, a in zip(piece.read.indices, targets, sizes, actual, strict=True)
            ]
            like = Definition(name, ranges, targets, ZERO, dtype, dims, False, span=piece.read.span)
            term = self._term(piece, equations, like)
            if term is None:
                at_elements.append(piece)
                continue
            value = add(value, term)
            if number % TERMS == 0 and all(isinstance(t, Index) for t in targets):  # store the partial sum
                part = self._fresh(f"{name}_part")
                self._keep(Definition(part, ranges, targets, value, dtype, dims, False, span=piece.read.span))
                value = Read(part, targets, span=piece.read.span)
        for piece in at_elements:
            if name in self._stepwise:
                message = f"'{tensor}' is computed step by step and read at elements of another tensor: no gradient"
                raise refused(f"{message} with respect to it", piece.read.span)
            inside = [c for g in piece.guards for c in self._inside(g, g, piece.ranges)]
            if piece.read.outside is not None:
                inside += conjuncts(self._whole(piece.read))
            taken, weight = taken_where(piece.weight)
            conditions = [*piece.conditions, *taken, *inside]
            value = scattered(piece.read, weight, piece.ranges, conditions, actual, value, ranges)
        span = next((p.read.span for p in (*pieces, *at_elements)), None)
        return Definition(name, ranges, targets, value, dtype, dims, is_output, span=span)

    def _term(self, piece: Piece, equations: list[Equation], like: Definition) -> Expr | None:
        """Return the contribution of a piece to an element of the adjoint `like`.

        Returns None if it has to be an update of the adjoint: an index cannot be solved for, and each element would
        search all its values.
        """
        fixed = fixed_axes(piece, [e.actual for e in equations])
        alone = like.tensor not in self._stepwise and all(isinstance(t, Index) for t in like.subscripts)
        if alone and fixed:
            kept = [axis for axis in range(len(equations)) if axis not in fixed]
            rows = replace(
                like,
                indices=tuple(like.indices[axis] for axis in kept),
                subscripts=tuple(like.subscripts[axis] for axis in kept),
                dims=tuple(like.dims[axis] for axis in kept),
            )
            term, searched = self._gather(piece, [equations[axis] for axis in kept], {r.name: r for r in rows.indices})
            if isinstance(term, Reduce) and term.indices and not searched:
                whole = self._define(f"{like.tensor}_at", rows, self._plainly(term, rows), like.dtype)
                value: Expr = Read(whole, rows.subscripts, span=piece.read.span)
                for axis in fixed:
                    value = choose(Operation("==", like.subscripts[axis], equations[axis].subscript), value, ZERO)
                return value
        term, searched = self._gather(piece, equations, {r.name: r for r in like.indices})
        constant = any(map(reads_constants, (piece.weight, *piece.conditions)))
        if searched and like.tensor not in self._stepwise and not constant:
            return None
        return self._plainly(term, like) if alone and isinstance(term, Reduce) else term

    def _plainly(self, e: Reduce, like: Definition) -> Expr:
        """Return a sum of products in which 0 times infinity counts as 0, mostly without a choice in each term.

        The plain sum is used unless it is NaN; only then is each product tested.
        """
        product = product_of(e.body)
        if product is None or not like.indices:
            return e
        plain = Read(self._define(f"{like.tensor}_plain", like, replace(e, body=product), like.dtype), like.subscripts)
        rows = replace(like, indices=like.indices[:-1], subscripts=like.subscripts[:-1], dims=like.dims[:-1])
        any_of_them = Reduce("sum", like.indices[-1:], Operation("*", plain, ZERO))  # NaN if one is not finite
        row = Read(self._define(f"{like.tensor}_row", rows, any_of_them, like.dtype), rows.subscripts)
        again = Conditional(Operation("!=", plain, plain), e, plain)
        return Conditional(Operation("!=", row, row), again, plain)

    def _gather(self, piece: Piece, equations: list[Equation], targets: Mapping[str, IndexRange]) -> tuple[Expr, bool]:
        """Return the sum of a piece over all iterations that read the target's element, and whether it searches."""
        hidden = {r.name: Index(f"{r.name}'") for r in piece.ranges}
        rename: Mapping[str, Expr] = hidden
        equations = [replace(e, subscript=substitute_indices(e.subscript, rename)) for e in equations]
        solution = solve(
            equations,
            [IndexRange(hidden[r.name].name, substitute_indices(r.extent, rename)) for r in piece.ranges],
            [substitute_indices(c, rename) for c in piece.conditions],
            frozenset(hidden[n].name for n in piece.preferred),
            self._facts,
        )
        shown = shown_names([r.name for r in solution.remaining], targets)

        def settled(e: Expr) -> Expr:
            return substitute_indices(substitute_indices(substitute_indices(e, rename), solution.values), shown)

        added = [IndexRange(name_of(shown[r.name]), r.extent) for r in solution.remaining]
        weight = digits_apart(settled(piece.weight), added)
        present = set(always_taken(weight))
        conditions = [substitute_indices(c, shown) for c in solution.conditions]
        implied = self._implied(present) | {c for r in targets.values() for c in within(Index(r.name), r.extent)}
        if solution.remaining:  # otherwise a condition covers elements that nothing reads
            conditions = [c for c in conditions if c not in implied]
        for guard in piece.guards:
            moved = settled(guard)
            if guard != piece.read and moved not in present and isinstance(moved, Read):
                conditions += self._inside(guard, moved, piece.ranges)
        remaining = contiguous_last(
            tuple(IndexRange(name_of(shown[r.name]), substitute_indices(r.extent, shown)) for r in solution.remaining),
            weight,
        )
        if not remaining and not conditions and not any(any(self._inside(g, g, piece.ranges)) for g in piece.guards):
            return weight, False
        condition = conjunction(list(dict.fromkeys(conditions)))
        return Reduce("sum", remaining, weight, condition=condition), solution.searched

    def _implied(self, present: Collection[Read]) -> set[Expr]:
        """Return the conditions under which a term is left out anyway because a read of it is outside."""
        found: set[Expr] = set()
        for read in present:
            for axis, subscript in enumerate(read.indices):
                if read.outside is None and not reads_values(subscript):
                    found.update(within(subscript, self._size(read.tensor, axis)))
        return found

    def _inside(self, guard: Read, moved: Read, ranges: tuple[IndexRange, ...]) -> Iterator[Expr]:
        """Yield the conditions that a read of the forward term is inside its tensor, unless that is evident."""
        extents = {r.name: r.extent for r in ranges}
        for axis, (before, after) in enumerate(zip(guard.indices, moved.indices, strict=True)):
            size = self._size(guard.tensor, axis)
            if reads_values(before) and guard.outside is None:
                continue  # it is inside, or the call is refused
            if not (isinstance(before, Index) and extents.get(before.name) == size):
                yield from within(after, size)

    def _whole(self, read: Read) -> Expr:
        """Return the condition that a read is inside its tensor."""
        sizes = (self._size(read.tensor, axis) for axis in range(len(read.indices)))
        pairs = (within(subscript, size) for subscript, size in zip(read.indices, sizes, strict=True))
        return conjunction([c for pair in pairs for c in pair]) or Number(True)

    def _size(self, tensor: str, axis: int) -> Expr:
        """Return the size of a dimension, after stretching."""
        for known in (self._forward, self._made, self._stepwise):
            if tensor in known:
                return known[tensor].dims[axis]
        if tensor in self._seeded:
            return self._seeded[tensor].dims[axis].size
        return next(t for t in self._op.tensors if t.name == tensor).dims[axis].size

    # The target's own indices -----------------------------------------------------------------------

    def _targets(
        self, tensor: str, sizes: tuple[Expr, ...], actual: tuple[Expr | None, ...], pieces: list[Piece]
    ) -> tuple[tuple[Expr, ...], tuple[IndexRange, ...]]:
        """Return the subscripts of a tensor's adjoint.

        They are those of its reads if these are indices or composites, else new indices.
        """
        subscripts: list[Expr] = []
        ranges: dict[str, IndexRange] = {}
        for axis, size in enumerate(sizes):
            subscript, own = self._target(tensor, axis, actual[axis] or size, pieces, set(ranges))
            subscripts.append(subscript)
            ranges |= {r.name: r for r in own}
        return tuple(subscripts), tuple(ranges.values())

    def _target(
        self, tensor: str, axis: int, size: Expr, pieces: list[Piece], used: set[str]
    ) -> tuple[Expr, list[IndexRange]]:
        for piece in pieces:
            extents = {r.name: r.extent for r in piece.ranges}
            pair = composite(piece.read.indices[axis], extents)
            if pair is not None and not used & set(pair) and size == Operation("*", extents[pair[0]], extents[pair[1]]):
                high, low = pair
                subscript = add(mul(Index(high), extents[low]), Index(low))
                return subscript, [IndexRange(high, extents[high]), IndexRange(low, extents[low])]
        for piece in pieces:
            plain = piece.read.indices[axis]
            if isinstance(plain, Index) and plain.name not in used:
                return plain, [IndexRange(plain.name, size)]
        taken = used | {n for p in pieces for n in all_names(p)}
        name = letter(self._op, tensor, axis)
        while name in taken:
            name += "_"
        return Index(name), [IndexRange(name, size)]

    def _input_sizes(self) -> tuple[Expr, ...]:
        return tuple(d.size for d in self._input().dims)

    def _actual_sizes(self) -> tuple[Expr | None, ...]:
        return tuple(SizeOf(self._wrt, i) if d.broadcast else None for i, d in enumerate(self._input().dims))

    def _input(self) -> Tensor:
        return next(t for t in self._op.tensors if t.name == self._wrt)
