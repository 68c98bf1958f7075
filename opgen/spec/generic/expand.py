"""Expansion of a generic op's declarations to those of a plain op."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from opgen.diagnostics import DiagnosticError
from opgen.dtypes import lookup
from opgen.spec.call.arguments import CallError, CallTypeError
from opgen.spec.generic.attributes import ANY, concrete, is_list, settled, words_of
from opgen.spec.generic.definitions import definition
from opgen.spec.generic.evaluate import Evaluator
from opgen.spec.generic.given import Call, Tensors, type_of, type_untold
from opgen.spec.generic.messages import message, spoken
from opgen.spec.generic.ops import OpCalls
from opgen.spec.generic.passing import Make
from opgen.spec.generic.ranks import Given, RankSolver
from opgen.spec.generic.sizes import asked_by, units_asked
from opgen.spec.generic.trees import names_in
from opgen.spec.generic.types import Narrowed
from opgen.spec.generic.values import Mistake, known_condition, known_integer
from opgen.spec.generic.world import Attribute, Tensor, World
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.limits import RANK
from opgen.spec.syntax.report import Report

Expanded = Mapping[int, tuple[s.Item, ...]]


class Expander:
    """Expands the declarations of one call; `expand` returns those of the plain op, in source order.

    Mistakes of the spec go to the report, those of the call are raised.  `only` holds the type variables that are
    restricted to a single type.  `make` makes the plain ops of generic ones that this op uses.
    """

    def __init__(self, report: Report, call: Call, known: frozenset[str], make: Make) -> None:
        self.report = report
        self.call = call
        self.items = call.op.decl.items
        self.world = World(known)
        self.narrowed = Narrowed()
        self.evaluator = Evaluator(call.op.name, self.world, self.narrowed)
        self._calls = OpCalls(call.op, self.evaluator, make)
        self._solver: RankSolver | None = None
        self.only: set[str] = set()

    def expand(self) -> list[s.Item]:
        self._inputs_there()
        self._types()
        self._attributes_of_known_length()
        self._ranks()
        self._attributes_of_ranks()
        done: dict[int, list[s.Item]] = {}
        for kinds in (_INPUTS, _LETS, _OUTPUTS, _REST, _TYPES):
            for at, item in enumerate(self.items):
                if isinstance(item, kinds[0]) and kinds[1](item):
                    try:
                        done[at] = list(self._item(item))
                    except DiagnosticError as error:
                        for diagnostic in error.diagnostics:
                            self.report.append(diagnostic)
        items = [i for at in sorted(done) for i in done[at]]
        return [*self._attributes(), *items]

    # Present inputs ---------------------------------------------------------------------------------

    def _inputs_there(self) -> None:
        world, call = self.world, self.call
        for decl in call.op.inputs:
            name = decl.name.name
            there = name in call.inputs or name in call.values
            if isinstance(decl, s.SeveralDecl):
                count = len(call.inputs[name].arguments)
                world.tensors_of[name] = tuple(f"{name}_{k}" for k in range(count))
            elif not isinstance(decl, s.SizesDecl):
                world.present[name] = there
            if name in call.inputs:
                argument = call.inputs[name].arguments[0]
                world.ranks[name] = argument.shape_rank
                if units_asked(call.op, name):
                    world.units[name] = tuple(at for at, size in enumerate(argument.sizes) if size == 1)
        single = [o for o in call.op.outputs if isinstance(o, s.TensorDecl)]
        for output in call.op.outputs:
            if isinstance(output, s.SeveralDecl):
                count = call.outputs - len(single)
                world.tensors_of[output.name.name] = tuple(f"{output.name.name}_{k}" for k in range(count))
        for at, output in enumerate(single):
            world.present[output.name.name] = at < call.outputs or not output.optional

    def _types(self) -> None:
        types: dict[str, str] = {}
        untold: set[str] = set()
        for item in self.items:
            if isinstance(item, s.TypeDecl):
                bound = type_of(self.call.op, self.call, item)
                if bound is None:
                    bound = type_untold(self.call.op, self.call, item)
                    untold |= set() if bound is None else {item.name.name}
                if bound is not None:
                    types[item.name.name] = bound
        self.narrowed.types = types
        self.world.types |= {n: t for n, t in types.items() if n in untold or fixed(n) in self.world.known}
        for decl in self.call.op.inputs:
            if isinstance(decl, s.TensorDecl | s.SeveralDecl) and decl.name.name in self.call.inputs:
                self._check_type(decl, self.call.inputs[decl.name.name])

    def _check_type(self, decl: s.TensorDecl | s.SeveralDecl, given: Tensors) -> None:
        """Raise CallTypeError if an input with a fixed type is given another."""
        dtype = lookup(decl.dtype.name)
        for argument in given.arguments:
            if dtype is not None and decl.dtype.name not in self.narrowed.types and argument.dtype != dtype.name:
                name = self.call.op.name
                raise CallTypeError(name, decl.name.name, f"a tensor of type {dtype.name}", f"type {argument.dtype}")

    # Attributes -------------------------------------------------------------------------------------

    def _attributes_of_known_length(self) -> None:
        """Record static inputs, and the attributes that depend on no rank."""
        call = self.call
        for decl in call.op.inputs:
            if isinstance(decl, s.StaticDecl):
                self._static(decl)
        for attr in call.op.attrs:
            if not is_list(attr):
                self._attribute(attr, None)
            elif attr.type.shape[0] == ANY:
                given = call.attributes[attr.name.name]
                default = attr.default.items if isinstance(attr.default, s.ListValue) else ()
                self._attribute(attr, len(given) if isinstance(given, list) else len(default))

    def _attributes_of_ranks(self) -> None:
        """Record the lists whose lengths depend on ranks."""
        for attr in self.call.op.attrs:
            if attr.name.name not in self.world.attributes:
                self._of_rank(attr)

    def _of_rank(self, attr: s.AttrDecl) -> None:
        length = attr.type.shape[0] if is_list(attr) else ""
        if isinstance(length, str):
            return
        try:
            count = self.evaluator.int_of(length)
        except DiagnosticError as error:
            self.report.append(error.diagnostics[0])
            return
        optional = isinstance(attr.default, s.ListValue) and not attr.default.items
        given = self.call.attributes[attr.name.name]
        if optional and given in (None, [], ()):
            count = 0
        self._attribute(attr, count)

    def _static(self, decl: s.StaticDecl) -> None:
        name, span = decl.name.name, decl.span
        values = self.call.values.get(name)
        of = "int" if decl.dtype.name in ("int32", "int64", "bool") else "float"
        kind = s.AttrType(span, s.Ident(decl.dtype.span, of), (), ())
        attr = s.AttrDecl(span, decl.name, kind, None, None, None, None, False, None, None, decl.doc)
        if values is None:
            self.world.attributes[name] = Attribute(attr, (), 0, static=True)
            return
        length = len(values) if isinstance(values, tuple) else None
        self.world.attributes[name] = Attribute(attr, values, length, static=True)
        numbers = values if isinstance(values, tuple) else (values,)
        if of == "int" and any(not -(2**31) <= v < 2**31 for v in numbers):
            self.world.known |= {name}

    def _attribute(self, attr: s.AttrDecl, length: int | None) -> None:
        name = attr.name.name
        given = self.call.attributes[name]
        if attr.type.kind.name == "type":
            self.world.given[name] = given is not None
        if attr.type.kind.name == "type" and given is None and isinstance(attr.default, s.Named):
            given = self.narrowed.types.get(attr.default.name)
        made = concrete(attr, length)
        if length is not None and attr.type.words:
            words = words_of(self.call.op, made, given)
            self.world.attributes[name] = Attribute(made, (), length, words=words)
            return
        try:
            value = settled(self.call.op, attr, length, given)
        except DiagnosticError as error:
            for diagnostic in error.diagnostics:
                self.report.append(diagnostic)
            return
        self.world.attributes[name] = Attribute(made, value, length)
        if attr.type.kind.name == "type" and isinstance(value, str):
            self.world.types[name] = value
            self.world.demanded.add(name)

    def _attributes(self) -> Iterator[s.AttrDecl]:
        """Yield the attributes that the expanded op reads, and those declared to have no effect."""
        for name, attribute in self.world.attributes.items():
            read = name in self.world.left
            if attribute.length == 0 or attribute.words or name in self.world.types:
                continue
            if not read or name in self.world.known:
                continue
            decl = attribute.decl
            if attribute.static and attribute.length is not None:
                decl = concrete(decl, attribute.length)
            yield dataclasses.replace(decl, counter="")

    # Ranks ------------------------------------------------------------------------------------------

    def _ranks(self) -> None:
        given = []
        for decl in self.call.op.inputs:
            if isinstance(decl, s.TensorDecl | s.SeveralDecl) and decl.name.name in self.call.inputs:
                for argument in self.call.inputs[decl.name.name].arguments:
                    given.append(Given(decl.name.name, decl.dims, argument.shape_rank))
        rules = [r for i in self.items if isinstance(i, s.RankDecl) for r in i.rules]
        solver = RankSolver(self.call.op.name, given, rules, self._told, self._length)
        self._solver = solver
        self._each()
        solver.solve()
        self._place_ranks()

    def _place_ranks(self) -> None:
        """Expand packs of dimensions whose ranks are known."""
        for name, rank in (self._solver.ranks if self._solver is not None else {}).items():
            if name not in self.world.packs:
                span = self.call.op.decl.span
                self.world.packs[name] = tuple(s.Named(span, f"{name}_{k}") for k in range(rank))

    def _each(self) -> None:
        """Expand the dimensions that each of several tensors has separately."""
        for decl in (*self.call.op.inputs, *self.call.op.outputs):
            if isinstance(decl, s.SeveralDecl) and decl.keyword == "inputs":
                count = len(self.world.tensors_of[decl.name.name])
                for dim in decl.dims:
                    if dim.each and isinstance(dim.size, s.Named):
                        name = dim.size.name
                        self.world.packs[name] = tuple(s.Named(dim.span, f"{name}_{k}") for k in range(count))

    def _told(self, rule: s.RankRule) -> int | None:
        """Return the rank that a rule gives, or None while it depends on an open rank."""
        self._place_ranks()
        if rule.value is None or any(n in self._open_packs() for n in names_in(rule.value)):
            return None
        asked = asked_by(rule.value)
        if asked is not None:
            return self._size(*asked)
        value = self.evaluator.int_of(rule.value)
        if rule.tensor is None:
            return max(value, 0)
        name = rule.tensor.name
        if name not in self.world.ranks:
            raise Mistake(f"'{name}' is no input that is always there", rule.tensor.span)
        rank = self.world.ranks[name]
        if not -rank <= value < rank:
            blamed = self.world.source(rule.value) or name
            expected = f"an axis from {-rank} to {rank - 1}" if rank else f"no axis, '{name}' having none"
            raise CallError(self.call.op.name, blamed, expected, str(value))
        return value + rank if value < 0 else value

    def _size(self, tensor: s.Named, axis: int) -> int:
        """Return a size of an input that determines a rank."""
        given = self.call.inputs.get(tensor.name)
        if given is None or len(given.arguments) != 1:
            raise Mistake(f"'{tensor.name}' is no input that is always there", tensor.span)
        argument = given.arguments[0]
        if not -argument.shape_rank <= axis < argument.shape_rank:
            expected = f"a tensor of rank {axis + 1 if axis >= 0 else -axis} at least"
            raise CallError(self.call.op.name, tensor.name, expected, f"rank {argument.shape_rank}")
        size = argument.sizes[axis] if argument.sizes else None
        if size is None:
            expected = f"a size of dimension {axis % argument.shape_rank} that is known before the call runs"
            raise CallError(self.call.op.name, tensor.name, expected, "one that is not")
        if size > RANK:
            expected = f"at most {RANK} along dimension {axis % argument.shape_rank}"
            raise CallError(self.call.op.name, tensor.name, expected, str(size))
        return size

    def _open_packs(self) -> set[str]:
        solver = self._solver
        return set() if solver is None else {p for p in solver.packs if p not in solver.ranks}

    def _length(self, pattern: s.Expression) -> int | None:
        self._place_ranks()
        if any(n in self._open_packs() for n in names_in(pattern)):
            return None
        with self.evaluator.demanding():
            return self.evaluator.length(pattern)

    # Declarations -----------------------------------------------------------------------------------

    def _item(self, item: s.Item) -> Iterator[s.Item]:
        match item:
            case s.TensorDecl():
                yield from self._tensor(item)
            case s.SeveralDecl():
                yield from self._several(item)
            case s.LetDecl():
                yield from self._let(item)
            case s.PackLet():
                yield from self._pack_let(item)
            case s.RequireDecl():
                yield from self._require(item)
            case s.DefinitionDecl():
                yield from definition(self.evaluator, item)
            case s.OpCall():
                yield from self._calls.expanded(item, self.narrowed.types)
            case s.TypeDecl():
                yield from self._type(item)
            case s.ConstantDecl():
                yield item
            case s.WhenDecl():
                yield s.WhenDecl(item.span, self.evaluator.one(item.condition, None))
            case s.AlgorithmDecl():
                inner = tuple(i for part in item.items for i in self._item(part))
                yield dataclasses.replace(item, items=inner)
            case s.SpecializeDecl() | s.GradientDecl() | s.InheritedDecl() | s.SizesDecl():
                raise Mistake("a generic op cannot have this", item.span)

    def _tensor(self, item: s.TensorDecl) -> Iterator[s.Item]:
        name = item.name.name
        if not self.world.present[name]:
            return
        rank = self.world.ranks.get(name) if item.keyword == "input" else None
        dims, tensor = self._dims(item.dims, rank, None, item.keyword == "input")
        self.world.tensors[name] = tensor
        yield dataclasses.replace(item, dims=dims, dtype=self._dtype(item.dtype), optional=False)

    def _several(self, item: s.SeveralDecl) -> Iterator[s.Item]:
        inputs = item.keyword == "inputs"
        for at, name in enumerate(self.world.tensors_of[item.name.name]):
            rank = self.call.inputs[item.name.name].arguments[at].shape_rank if inputs else None
            dims, tensor = self._dims(item.dims, rank, at, inputs)
            self.world.tensors[name] = tensor
            ident = s.Ident(item.name.span, name)
            keyword = "input" if inputs else "output"
            dtype = self._dtype(item.dtype)
            yield s.TensorDecl(
                item.span, "input" if keyword == "input" else "output", ident, dtype, dims, None, False, item.doc
            )

    def _dtype(self, ident: s.Ident) -> s.Ident:
        return s.Ident(ident.span, self.world.types.get(ident.name, ident.name))

    def _dims(
        self, dims: tuple[s.Dim, ...], rank: int | None, at: int | None, inputs: bool
    ) -> tuple[tuple[s.Dim, ...], Tensor]:
        """Expand the packs in dimensions; a stretching pack is cut to fit the tensor's rank."""
        parts: list[tuple[bool, int]] = []
        found: list[s.Dim] = []
        stretching: range | None = None
        for dim in dims:
            pack = isinstance(dim.size, s.Expansion)
            if inputs:
                with self.evaluator.demanding():
                    sizes = self._sizes(dim, at)
            else:
                sizes = self._sizes(dim, at)
            parts.append((pack, len(sizes)))
            if pack and dim.broadcast is not None:
                stretching = range(len(found), len(found) + len(sizes))
            found += [s.Dim(dim.span, e, dim.broadcast) for e in sizes]
        lacking = len(found) - rank if rank is not None else 0
        absent = frozenset(stretching[:lacking]) if stretching is not None and lacking > 0 else frozenset()
        kept = tuple(d for k, d in enumerate(found) if k not in absent)
        return kept, Tensor(tuple(parts), absent)

    def _sizes(self, dim: s.Dim, at: int | None) -> tuple[s.Expression, ...]:
        if isinstance(dim.size, s.Expansion):
            return self.evaluator.all(dim.size.pattern)
        return (self.evaluator.one(dim.size, at if dim.each else None),)

    def _type(self, item: s.TypeDecl) -> Iterator[s.Item]:
        """Yield the type variable, restricted to the types that answer all questions as this one does."""
        allowed = [
            i for i in item.allowed for t in [lookup(i.name)] if t is None or self.narrowed.allowed(item.name.name, t)
        ]
        if item.name.name in self.narrowed.asked and len(allowed) == 1:
            self.only.add(fixed(item.name.name))
        yield s.TypeDecl(item.span, item.name, tuple(allowed))

    # Named integers ---------------------------------------------------------------------------------

    def _source(self, names: tuple[s.Ident, ...], value: s.Expression) -> None:
        """Record the argument that named integers depend on."""
        source = self.world.source(value)
        if source is not None:
            self.world.sources |= {n.name: source for n in names}

    def _let(self, item: s.LetDecl) -> Iterator[s.Item]:
        value = self.evaluator.one(item.value, None)
        self._source(item.names, item.value)
        if len(item.names) == 1 and (known_integer(value) is not None or known_condition(value) is not None):
            self.world.aliases[item.names[0].name] = value
            return
        if len(item.names) == 1:
            self.world.lets[item.names[0].name] = item.value
        yield s.LetDecl(item.span, item.names, value)

    def _pack_let(self, item: s.PackLet) -> Iterator[s.Item]:
        self._source(item.names, item.value)
        if len(item.names) == 1:
            name = item.names[0]
            elements = self.evaluator.all(item.value)
            found: list[s.Expression] = []
            for k, element in enumerate(elements):
                if _atom(element):
                    found.append(element)
                    continue
                if k and isinstance(element, s.Binary) and element.left is elements[k - 1]:  # a running sum
                    element = dataclasses.replace(element, left=found[-1])
                ident = s.Ident(name.span, f"{name.name}_{k}")
                found.append(s.Named(name.span, ident.name))
                yield s.LetDecl(item.span, (ident,), element)
            self.world.packs[name.name] = tuple(found)
            return
        count = self.evaluator.length(item.value)
        if count is None:
            raise Mistake("there is no pack in what is expanded here", item.value.span)
        for ident in item.names:
            self.world.packs[ident.name] = tuple(s.Named(ident.span, f"{ident.name}_{k}") for k in range(count))
        for k in range(count):
            names = tuple(s.Ident(n.span, f"{n.name}_{k}") for n in item.names)
            yield s.LetDecl(item.span, names, self.evaluator.one(item.value, k))

    def _require(self, item: s.RequireDecl) -> Iterator[s.Item]:
        """Expand a requirement, or check it here if the form decides it."""
        blamed = item.argument.name
        if self.world.present.get(blamed) is False and blamed not in self.call.values:
            return
        condition = self.evaluator.one(item.condition, None)
        decided = known_condition(condition)
        open_part = _without_reflexive(condition) if decided is None else None
        if open_part is not None:
            argument = s.Ident(item.argument.span, self._blamed(blamed))
            yield s.RequireDecl(item.span, open_part, argument, message(self.evaluator, item.expected))
        elif decided is False:
            raise CallError(self.call.op.name, blamed, spoken(self.evaluator, item.expected), self._shown(blamed))

    def _blamed(self, name: str) -> str:
        """Return the argument of the plain op that a requirement blames.

        For an input of several tensors it is the first of them.
        """
        several = self.world.tensors_of.get(name)
        if several:
            return several[0]
        return name

    def _shown(self, name: str) -> str:
        attribute = self.world.attributes.get(name)
        if attribute is not None:
            return str(list(attribute.value)) if isinstance(attribute.value, tuple) else str(attribute.value)
        return f"rank {self.world.ranks[name]}" if name in self.world.ranks else "this"


def fixed(variable: str) -> str:
    """Return the key in `World.known` for a type variable with a single type in this form."""
    return f"type {variable}"


def _without_reflexive(condition: s.Expression) -> s.Expression | None:
    """Drop comparisons of a name with itself, as sizes that are solved for have; None if nothing is left."""
    if not isinstance(condition, s.Binary):
        return condition
    if condition.op == "and":
        left, right = _without_reflexive(condition.left), _without_reflexive(condition.right)
        return dataclasses.replace(condition, left=left, right=right) if left and right else left or right
    same = condition.op == "==" and isinstance(condition.left, s.Named) and condition.left == condition.right
    return None if same else condition


def _atom(tree: s.Expression) -> bool:
    return isinstance(tree, s.Named | s.Subscripted) or known_integer(tree) is not None


def _always(item: s.Item) -> bool:
    return True


_INPUTS = (s.TensorDecl | s.SeveralDecl, lambda i: getattr(i, "keyword", "") in ("input", "inputs"))
_LETS = (s.LetDecl | s.PackLet | s.RequireDecl, _always)
_OUTPUTS = (s.TensorDecl | s.SeveralDecl, lambda i: getattr(i, "keyword", "") in ("output", "outputs"))
_REST = (
    s.DefinitionDecl | s.OpCall | s.ConstantDecl | s.WhenDecl | s.AlgorithmDecl | s.SpecializeDecl
    | s.GradientDecl | s.InheritedDecl | s.SizesDecl,
    _always,
)  # fmt: skip
_TYPES = (s.TypeDecl, _always)
