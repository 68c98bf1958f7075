"""Ops used in ops: `let p = Op(x, axis = -1)` becomes the definitions of `Op`, as intermediates of the op.

The called op's declarations are bound to the calling op: tensors, types and attributes by `passing.py`, sizes here.
Its requirements become requirements of the calling op, and blame the arguments behind the inputs.  A `let` holds a
result in the compute type: nothing is rounded between the ops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce

from opgen.diagnostics import Span
from opgen.spec.inline.passed import Passed, decided, known
from opgen.spec.inline.passing import Passing
from opgen.spec.model import model as m
from opgen.spec.model.polynomial import differences, digits, polynomial, quotient, same
from opgen.spec.model.visit import symbols_in
from opgen.spec.model.walk import reads, subexpressions, substitute_indices, transform
from opgen.spec.resolve.mathematics import show
from opgen.spec.resolve.measure import in_definition, size
from opgen.spec.resolve.names import why_illegal
from opgen.spec.resolve.scope import Readable, Scope
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import NODES, TENSORS
from opgen.spec.syntax.report import Report

_SHORT = 8
"""Most expressions of a named integer that is substituted; a longer one gets a name in the calling op."""


class Inliner:
    """Inliner of the ops that one op uses; `checks` are their requirements and named integers, in call order.

    `failed` is True if one of them is invalid or wrongly called, which is noted.
    """

    def __init__(self, scope: Scope, passing: Passing, arguments: Sequence[str], taken: Iterable[str]) -> None:
        self.scope = scope
        self.report = scope.report
        self.checks: list[m.ShapeLet | m.Require] = []
        self._passing = passing
        self._arguments = arguments
        self._taken = set(taken)
        self.failed = False
        self._nodes = 0
        self._made = 0

    def definitions(self, call: s.OpCall, before: Sequence[m.Definition]) -> list[m.Definition]:
        """Return the definitions that a call expands to, after those in `before`; mistakes are noted."""
        self._taken |= {*self.scope.symbols, *self.scope.tensors, *self.scope.later_tensors}
        passed = self._passing.passed(call)
        found = None if passed is None else _Inlined(self, call, passed, before).made()
        if passed is None or found is None:
            self.scope.poisoned |= {n.name for n in call.names}
            self.failed = True
            return []
        for definition in found:
            self.scope.tensors[definition.tensor] = Readable(definition.tensor, definition.dtype, definition.dims)
        self._made += len(found)
        self._nodes += size((e for d in found for e in in_definition(d)), {})
        self.report.stop_beyond(self._made, TENSORS, "definitions of the ops that an op uses", call.span)
        self.report.stop_beyond(self._nodes, NODES, "expressions of the ops that an op uses", call.span)
        return found

    def fresh(self, name: str) -> str:
        """Return an unused name derived from `name`."""
        plain = "_".join(part for part in name.split("_") if part) or "x"
        found, count = plain, 2
        while found in self._taken or why_illegal(found) is not None:
            found, count = f"{plain}_{count}", count + 1
        self._taken.add(found)
        return found

    def clashes(self, index: str) -> bool:
        """True if an index would have the name of something else."""
        return index in self._taken

    def blamed(self, tensors: Iterable[str], about: m.Expr, before: Sequence[m.Definition]) -> str | None:
        """Return the argument of the calling op that some tensors are or derive from.

        The first one that has a size in `about` is preferred, else the first one of all.
        """
        made = {d.tensor: d for d in before}
        waiting, found = list(tensors), list[str]()
        for name in waiting:  # grows as it goes
            if name in self._arguments:
                found.append(name)
            elif name in made:
                waiting += [r.tensor for r in reads(made[name].value) if r.tensor not in waiting]
        sizes = symbols_in(about)
        for name in found:
            given = self.scope.tensors.get(name)
            if given is not None and any(symbols_in(d) & sizes for d in given.dims or ()):
                return name
        return next(iter((*found, *self._arguments)), None)


class _Inlined:
    """Call that is being inlined into the calling op."""

    def __init__(self, inliner: Inliner, call: s.OpCall, passed: Passed, before: Sequence[m.Definition]) -> None:
        self.inliner = inliner
        self.report: Report = inliner.report
        self.call = call
        self.span: Span = call.call.span
        self.passed = passed
        self.op = passed.op
        self.before = before
        self.sizes: dict[str, m.Expr] = {}
        self.stretched: set[tuple[str, int]] = set()
        self.tensors = {name: given.name for name, given in passed.tensors.items()}
        self.constants: dict[str, str] = {}
        self.indices: dict[str, str] = {}
        self._mistakes = len(self.report)

    def made(self) -> list[m.Definition] | None:
        """Return the definitions, or None with mistakes noted."""
        self._solve()
        if len(self.report) > self._mistakes:
            return None
        for bound in self.passed.bounds:
            self._hold(bound.condition, bound.argument, bound.expected)
        self._equal(())
        lets = {n for c in self.op.checks if isinstance(c, m.ShapeLet) for n in c.names}
        for check in self.op.checks:
            if isinstance(check, m.ShapeLet):
                self._let(check)
            else:
                self._require(check)
        self._equal(lets)
        if len(self.report) > self._mistakes:
            return None
        wanted = _wanted(self.op, len(self.call.names))
        self._name(wanted)
        return [self._definition(d) for d in wanted]

    # Sizes ----------------------------------------------------------------------------------------

    def _dims(self) -> Iterator[tuple[m.Tensor, int, m.Dimension, m.Expr]]:
        """Yield the dimensions of the called op's inputs, with their sizes in the calling op."""
        for tensor in self.op.tensors:
            for axis, (dim, given) in enumerate(zip(tensor.dims, self.passed.dims(tensor), strict=True)):
                yield tensor, axis, dim, given

    def _solve(self) -> None:
        """Solve for the sizes that the called op names, in terms of the calling op's sizes."""
        lets = {n for c in self.op.checks if isinstance(c, m.ShapeLet) for n in c.names}
        loose = [(d, e) for _, _, d, e in self._dims() if d.broadcast]
        waiting = [(d, e) for _, _, d, e in self._dims() if not d.broadcast]
        waiting += sorted(loose, key=lambda each: each[1] == m.Number(1))
        found = True
        while found:
            found = False
            for dim, given in waiting:
                unknown = [f for f in dim.factors if isinstance(f, str) and f not in self.sizes and f not in lets]
                if len(unknown) == 1:
                    self.sizes[unknown[0]] = self._quotient(given, [f for f in dim.factors if f != unknown[0]])
                    found = True
        self.stretched = {
            (t.name, axis)
            for t, axis, dim, given in self._dims()
            if dim.broadcast and given == m.Number(1) and not same(self._node(m.Symbol(str(dim.factors[0]))), given)
        }

    def _quotient(self, given: m.Expr, factors: Sequence[str | int]) -> m.Expr:
        """Return a size divided by its known factors."""
        if not factors:
            return given
        parts = [m.Number(f) if isinstance(f, int) else self.sizes[f] for f in factors]
        product = reduce(lambda left, right: decided(m.Operation("*", left, right)), parts)
        exact = quotient(given, product)
        return decided(m.Operation("//", given, product) if exact is None else exact)

    def _equal(self, lets: Collection[str]) -> None:
        """Require dimensions with one size in the called op to have one size in the calling op.

        With `lets`, checks the dimensions that contain named integers; without, the others.
        """
        for tensor, axis, dim, given in self._dims():
            named = any(f in lets or f not in self.sizes for f in dim.factors if isinstance(f, str))
            if named != bool(lets):
                continue
            wanted = self._expr(dim.size)
            if (tensor.name, axis) in self.stretched or same(wanted, given):
                continue
            source = self.tensors[tensor.name]
            apart = polynomial(m.Operation("-", wanted, given)).terms
            if set(apart) == {()}:
                message = f"'{self.op.name}' takes {show(wanted)} along dimension {axis} of '{tensor.name}'"
                self.report.add("S020", f"{message}, and '{source}' has {show(given)}", self.span)
                continue
            expected = (f"{tensor.name} of {self.op.name} to have ", wanted, f" along dimension {axis}, not ", given)
            self._add(m.Operation("==", given, wanted), [source], expected)

    def _let(self, check: m.ShapeLet) -> None:
        """Add a named integer: a short one is substituted where it is read, others get names in the calling op."""
        value, first, scope = self._expr(check.value), self.call.names[0].name, self.inliner.scope
        if len(check.names) == 1 and sum(1 for _ in subexpressions(value)) <= _SHORT:
            self.sizes[check.names[0]] = value
            return
        names = tuple(self.inliner.fresh(f"{first}_{name}") for name in check.names)
        for name, own in zip(check.names, names, strict=True):
            self.sizes[name] = m.Symbol(own, self.span)
            scope.symbols[own] = self.span
        if len(names) == 1:
            scope.named[m.Symbol(names[0])] = value
        self.inliner.checks.append(m.ShapeLet(names, value, self.span))

    # Requirements ---------------------------------------------------------------------------------

    def _require(self, check: m.Require) -> None:
        pieces = (p if isinstance(p, str) else self._expr(p) for p in check.expected)
        expected = tuple(str(p.value) if isinstance(p, m.Number) else p for p in pieces)
        self._hold(self._expr(check.condition), check.argument, expected)

    def _hold(self, condition: m.Expr, argument: str, expected: tuple[str | m.Expr, ...]) -> None:
        """Require a condition that blames an argument of the called op."""
        if condition == m.Number(False):
            told = "".join(p if isinstance(p, str) else show(p) for p in expected)
            message = f"'{self.op.name}' does not take this: argument '{argument}': expected {told}"
            self.report.add("S020", message, self.span)
        elif condition != m.Number(True) and not self._holds(condition):
            sources = [self.tensors[argument]] if argument in self.tensors else self.passed.sources(argument)
            self._add(condition, sources, (*expected, f" ({argument} of {self.op.name})"))

    def _holds(self, condition: m.Expr) -> bool:
        """True if a comparison holds because sizes are not negative and attributes are within their bounds."""
        scope = self.inliner.scope

        def positive(atom: m.Expr) -> bool:
            if isinstance(atom, m.AttrValue):
                attr = scope.attrs[atom.attr]
                return not attr.optional and attr.minimum is not None and attr.minimum >= 0
            return isinstance(atom, m.Symbol) and atom.name in scope.dims

        if not isinstance(condition, m.Operation) or condition.op not in ("<", "<=", ">", ">=", "=="):
            return False
        return all(c > 0 and all(map(positive, atoms)) for p in differences(condition) for atoms, c in p.terms.items())

    def _add(self, condition: m.Expr, sources: Sequence[str], expected: tuple[str | m.Expr, ...]) -> None:
        blamed = self.inliner.blamed([*sources, *self.tensors.values()], condition, self.before)
        if blamed is None:
            message = f"nothing that is given tells whether '{self.op.name}' takes this"
            self.report.add("S013", message, self.span)
            return
        self.inliner.scope.required += differences(condition)
        self.inliner.checks.append(m.Require(condition, blamed, _joined(expected), self.span))

    # Expressions ----------------------------------------------------------------------------------

    def _expr(self, e: m.Expr) -> m.Expr:
        return transform(self._node, e)

    def _node(self, e: m.Expr) -> m.Expr:
        """Rewrite an expression, whose parts are rewritten, in the names of the calling op."""
        match e:
            case m.Symbol():
                return self.sizes.get(e.name, e)
            case m.SizeOf():
                return self.passed.dims(next(t for t in self.op.tensors if t.name == e.tensor))[e.axis]
            case m.Index():
                return replace(e, name=self.indices.get(e.name, e.name))
            case m.Read():
                return self._read(e)
            case m.Element():
                name = self.constants.get(e.constant.name, e.constant.name)
                return replace(e, constant=replace(e.constant, name=name))
            case m.Reduce():
                ranges = tuple(m.IndexRange(self.indices.get(r.name, r.name), r.extent) for r in e.indices)
                return replace(e, indices=ranges)
            case _:
                return self.passed.node(e)

    def _read(self, e: m.Read) -> m.Expr:
        given = self.passed.tensors.get(e.tensor)
        if given is None:
            return replace(e, tensor=self.tensors[e.tensor])
        tensor = next(t for t in self.op.tensors if t.name == e.tensor)
        indices = tuple(
            m.Number(0) if (e.tensor, axis) in self.stretched else index for axis, index in enumerate(e.indices)
        )
        return replace(e, tensor=given.name, indices=self.passed.placed(tensor, indices), span=self.span)

    # Definitions ----------------------------------------------------------------------------------

    def _name(self, definitions: Sequence[m.Definition]) -> None:
        """Choose names for the definitions' tensors, constants and indices that are free in the calling op."""
        first = self.call.names[0].name
        results = dict(zip((o.name for o in self.op.outputs), (n.name for n in self.call.names), strict=False))
        for d in definitions:
            self.tensors[d.tensor] = results.get(d.tensor) or self.inliner.fresh(f"{first}_{d.tensor}")
            for e in subexpressions(d.value):
                if isinstance(e, m.Element) and e.constant.name not in self.constants:
                    self.constants[e.constant.name] = self.inliner.fresh(f"{first}_{e.constant.name}")
        for d in definitions:
            for name in _index_names(d):
                if self.inliner.clashes(name) and name not in self.indices:
                    self.indices[name] = self.inliner.fresh(name)

    def _definition(self, d: m.Definition) -> m.Definition:
        """Return a definition as that of an intermediate tensor, whose subscripts are single indices."""
        dims = tuple(map(self._expr, d.dims))
        extents = {r.name: self._expr(r.extent) for r in d.indices}
        places: dict[str, m.Expr] = {}
        left: list[m.IndexRange] = []
        for axis, (subscript, dim) in enumerate(zip(d.subscripts, d.dims, strict=True)):
            if isinstance(subscript, m.Index):
                left.append(m.IndexRange(self.indices.get(subscript.name, subscript.name), extents[subscript.name]))
                continue
            index = m.Index(self.inliner.fresh(f"{self.tensors[d.tensor]}_{axis}"))
            left.append(m.IndexRange(index.name, dims[axis]))
            places |= dict(self._digits(index, digits(subscript, dim) or []))
        value = transform(decided, substitute_indices(self._expr(d.value), places)) if places else self._expr(d.value)
        output = next((o for o in self.op.outputs if o.name == d.tensor), None)
        if output is not None:
            left, dims = list(self.passed.placed(output, left)), self.passed.placed(output, dims)
        subscripts = tuple(m.Index(r.name) for r in left)
        dtype = self.passed.dtype(d.dtype)
        return m.Definition(self.tensors[d.tensor], tuple(left), subscripts, value, dtype, dims, False, self.span)

    def _digits(self, index: m.Expr, composite: Sequence[tuple[str, m.Expr]]) -> Iterator[tuple[str, m.Expr]]:
        """Yield the indices of a composite as quotients and remainders of the one index that replaces it."""
        extents = [(self.indices.get(name, name), self._expr(extent)) for name, extent in composite]
        digits = [(name, extent) for name, extent in extents if known(extent) != 1]
        yield from ((name, m.Number(0)) for name, extent in extents if known(extent) == 1)
        for at, (name, extent) in enumerate(digits):
            below = [e for _, e in digits[at + 1 :]]
            place = index
            if below:
                place = m.Operation("//", place, reduce(lambda left, right: m.Operation("*", left, right), below))
            yield name, m.Operation("%", place, extent) if at else place


def _wanted(op: m.OpSpec, results: int) -> list[m.Definition]:
    """Return the definitions on which the first results of an op depend, in order."""
    made = {d.tensor: d for d in op.definitions}
    waiting, found = [o.name for o in op.outputs[:results]], set[str]()
    while waiting:
        name = waiting.pop()
        if name in made and name not in found:
            found.add(name)
            waiting += [r.tensor for r in reads(made[name].value)]
    return [d for d in op.definitions if d.tensor in found]


def _joined(pieces: Iterable[str | m.Expr]) -> tuple[str | m.Expr, ...]:
    """Return a message with adjacent texts joined."""
    found: list[str | m.Expr] = []
    for piece in pieces:
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        else:
            found.append(piece)
    return tuple(found)


def _index_names(d: m.Definition) -> list[str]:
    """Return the indices of a definition and of the reductions in it."""
    bound = {r.name for e in subexpressions(d.value) if isinstance(e, m.Reduce) for r in e.indices}
    return [*(r.name for r in d.indices), *sorted(bound)]
