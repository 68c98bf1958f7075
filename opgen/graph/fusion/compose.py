"""A group of nodes as one op: their mathematics in sequence, with intermediate tensors for the values between them.

A value between nodes becomes a `let`.  It holds the compute type of its scalar type.  Between half or bfloat16 ops the
rounding to 16 bits is left out, as wherever a sum keeps its accumulator.  All other types are computed as by the single
ops, bit for bit.  Names stay the same, with numbers where two ops share one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

from opgen.graph.fusion.dimensions import Equations, in_turn
from opgen.graph.fusion.intermediate import Intermediates
from opgen.graph.fusion.rename import Namer, declared, definition_with, renamed, rewritten
from opgen.graph.fusion.rewrite import clear_indices, without_ones
from opgen.graph.fusion.unify import CannotComposeError, settle
from opgen.graph.fusion.unused import without_idle
from opgen.graph.ir.bound import bound
from opgen.graph.ir.draft import GraphView
from opgen.graph.ir.nodes import Node, Op
from opgen.spec.check.signature import default_signature
from opgen.spec.model import model as m
from opgen.spec.model.walk import reads
from opgen.spec.resolve.dimensions import determined
from opgen.spec.resolve.names import snake_case

_NAME = 60
"""Maximum number of letters in the name of a composed op."""


def compose(graph: GraphView, nodes: Sequence[Node], outside: Collection[str], inlined: Collection[str] = ()) -> Node:
    """Return one node for several, in the order of the graph; `outside` are the values needed outside the group.

    Values that are `inlined` are recomputed wherever they are read, as far as that changes nothing, and not stored.
    Raises CannotComposeError if such an op cannot exist.
    """
    settled = [settle(graph, node) for node in nodes]
    values = list(dict.fromkeys(name for node in nodes for name in (*node.inputs, *node.outputs)))
    number = {name: str(k) for k, name in enumerate(values)}  # blocks of a model differ in names alone
    parts = tuple(_given(graph, node, each.whole, number) for node, each in zip(nodes, settled, strict=True))
    sets = (frozenset(number[name] for name in names) for names in (outside, inlined))
    made = _composed(_Whole(parts, *sets))
    inputs, outputs = (tuple(values[int(k)] for k in names) for names in (made.inputs, made.outputs))
    given = [dict(each.attributes) for each in settled]
    attributes = tuple((name, given[part][own]) for name, part, own in made.attributes)
    origin = ", ".join(dict.fromkeys(n.origin for n in nodes if n.origin))
    return Node(nodes[-1].name, made.op, (), attributes, inputs, outputs, origin)


@dataclass(frozen=True)
class _Given:
    """A node as far as a composed op depends on it.

    `ones` are the sizes that are 1; no other number is part of it.  Values are identified by numbers.
    """

    whole: Op
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    ones: frozenset[str]

    @property
    def op(self) -> m.OpSpec:
        return self.whole.spec


def _given(graph: GraphView, node: Node, whole: Op, number: Mapping[str, str]) -> _Given:
    sizes = bound(graph, node).environment.symbols
    ones = frozenset(name for name, size in sizes.items() if size == 1)
    inputs, outputs = (tuple(number[name] for name in names) for names in (node.inputs, node.outputs))
    return _Given(whole, inputs, outputs, ones)


@dataclass(frozen=True)
class _Whole:
    """Parts of a composed node, and all that determines the composition."""

    parts: tuple[_Given, ...]
    outside: frozenset[str]
    inlined: frozenset[str]


@dataclass(frozen=True)
class _Made:
    """An op composed of several, the values that it takes and makes, and its attributes.

    Each attribute has the part that it comes from, and its name there.
    """

    op: Op
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[tuple[str, int, str], ...]


@dataclass
class _Part:
    """A part of a composed op; `names` maps its tensors, attributes and sizes to names in the whole."""

    given: _Given
    names: dict[str, str] = field(default_factory=dict)
    op: m.OpSpec = field(init=False)

    @property
    def tensors(self) -> Iterator[tuple[str, m.Tensor]]:
        """Return the values that it takes, with the inputs for which it takes them."""
        return zip(self.given.inputs, self.given.op.tensors, strict=True)

    @property
    def results(self) -> Iterator[tuple[str, m.Tensor]]:
        return zip(self.given.outputs, self.given.op.outputs, strict=True)


@lru_cache(maxsize=1024)
def _composed(whole: _Whole) -> _Made:
    return _Composition(whole).run()


class _Composition:
    def __init__(self, whole: _Whole) -> None:
        self.inlined = whole.inlined
        self.outside = whole.outside
        self.namer = Namer()
        self.equations = Equations(self.namer)
        self.names: dict[str, str] = {}
        self.functions: dict[str, m.Function] = {}
        self.inputs: dict[str, m.Tensor] = {}
        self.made: dict[str, m.Tensor] = {}
        self.copies: dict[str, str] = {}
        self.checks: list[m.ShapeLet | m.Require] = []
        self.parts = [_Part(given) for given in whole.parts]

    def run(self) -> _Made:
        if not self.outside:
            raise CannotComposeError("nothing comes out")
        for part in self.parts:
            self._name(part)
            self._join(part)
        self._check_determined()
        op = self._whole()
        own = {name: (number, n) for number, part in enumerate(self.parts) for n, name in part.names.items()}
        named = [a.name for a in op.attrs] + [i.name for i in op.inputs if isinstance(i, m.Sizes)]
        results = tuple(v for part in self.parts for v, _ in part.results if v in self.outside)
        whole = Op(op, tuple(self.functions.values()))
        return _Made(whole, tuple(self.inputs), results, tuple((name, *own[name]) for name in named))

    # Names ----------------------------------------------------------------------------------------

    def _name(self, part: _Part) -> None:
        """Give everything in a part a name in the whole; a value has one name."""
        op = part.given.op
        for value, tensor in part.tensors:
            if value not in self.names:
                self.names[value] = self.namer.fresh(tensor.name)
            part.names[tensor.name] = self.names[value]
        for value, tensor in part.results:
            part.names[tensor.name] = self.names[value] = self.namer.fresh(tensor.name)
            if value in self.outside and self._is_read(value):
                self.copies[part.names[tensor.name]] = self.namer.fresh(tensor.name)
        for name in dict.fromkeys(declared(op)):
            part.names[name] = self.namer.fresh(name)
        part.op = renamed(op, part.names, {f.name: self._function(f) for f in part.given.whole.functions})

    def _is_read(self, value: str) -> bool:
        return any(value in p.given.inputs for p in self.parts)

    def _function(self, function: m.Function) -> str:
        """Return the name of a shape function in the whole."""
        if self.functions.setdefault(function.name, function) != function:
            raise CannotComposeError(f"two different functions have the name '{function.name}'")
        return function.name

    # Sizes ----------------------------------------------------------------------------------------

    def _join(self, part: _Part) -> None:
        """Add a part's inputs, sizes and checks."""
        lets = {n: c.value for c in part.op.checks if isinstance(c, m.ShapeLet) for n in c.names}
        ones = {part.names[n] for n in part.given.ones if n in part.names}
        self.equations.add(set(_free(part.op)) - lets.keys(), lets, ones)
        for (value, _), tensor in zip(part.tensors, part.op.tensors, strict=True):
            known = self.made.get(value) or self.inputs.get(value)
            if known is None:
                self.inputs[value] = tensor
                continue
            for made, read in zip(known.dims, tensor.dims, strict=True):
                self.equations.equate(made.size, read.size, tensor.name)
            if value in self.inputs and known.shape_only and not tensor.shape_only:
                self.inputs[value] = replace(known, shape_only=False)
        self.checks += self.equations.checks
        self.equations.checks.clear()
        self.checks += part.op.checks
        self.made |= {v: o for (v, _), o in zip(part.results, part.op.outputs, strict=True)}

    def _check_determined(self) -> None:
        """Raise CannotComposeError for a size that no input of the whole determines."""
        equations = self.equations
        dims = list(self._dims())
        known = determined([d for d in dims if not set(d.factors) & equations.lets.keys()], set())
        lost = {f for d in dims for f in d.factors if isinstance(f, str)} - known - equations.lets.keys()
        lost |= equations.free - known
        if lost:
            raise CannotComposeError(f"no input would tell the size '{min(lost)}'")

    def _dims(self) -> Iterator[m.Dimension]:
        """Yield the dimensions of the whole's inputs."""
        taken = {t.name for t in self.inputs.values()}
        for part in self.parts:
            for entry in rewritten(part.op, self.equations.in_place).inputs:
                if isinstance(entry, m.Sizes):
                    yield from (d for form in entry.forms for d in form)
                elif entry.name in taken:
                    yield from entry.dims

    # The whole ------------------------------------------------------------------------------------

    def _whole(self) -> m.OpSpec:
        tensors = tuple(self.inputs.values())
        sizes = tuple(i for p in self.parts for i in p.op.inputs if isinstance(i, m.Sizes))
        outputs = tuple(
            replace(o, name=self.copies.get(o.name, o.name))
            for p in self.parts
            for (value, _), o in zip(p.results, p.op.outputs, strict=True)
            if value in self.outside
        )
        name = "".join(p.given.op.name[:1].upper() + p.given.op.name[1:] for p in self.parts)[:_NAME]
        attrs = tuple(a for p in self.parts for a in p.op.attrs)
        op = m.OpSpec(
            name=name,
            function_name=snake_case(name),
            signature=(),
            type_variables=(),
            inputs=(*tensors, *sizes),
            attrs=attrs,
            outputs=outputs,
            checks=tuple(self.checks),
            definitions=(),
            doc=" and then ".join(f"`{p.given.op.name}`" for p in self.parts) + ".",
        )
        op = rewritten(op, self.equations.in_place)
        outputs = rewritten(op, self.equations.in_mathematics).outputs
        op = replace(
            op,
            outputs=outputs,
            checks=in_turn(op.checks),
            definitions=self._definitions([p.op.definitions for p in self.parts]),
        )
        return self._tidied(op)

    def _definitions(self, of_parts: Sequence[tuple[m.Definition, ...]]) -> tuple[m.Definition, ...]:
        """Return the mathematics of the parts in sequence."""
        between = {t.name for v, t in self.made.items() if v not in self.outside} | set(self.copies)
        inlined = {self.names[v] for v in self.inlined}
        intermediates = Intermediates(between, self.copies, inlined, self._size)
        for definitions in of_parts:
            for d in definitions:
                intermediates.add(without_ones(definition_with(d, self.equations.in_mathematics)))
        return tuple(intermediates.definitions)

    def _size(self, tensor: str, axis: int) -> m.Expr | None:
        """Return the size of an input's dimension."""
        found = next((t for t in self.inputs.values() if t.name == tensor), None)
        return None if found is None else self.equations.in_mathematics(found.dims[axis].size)

    def _tidied(self, op: m.OpSpec) -> m.OpSpec:
        """Return the op without parts that have no effect; requirements blame an argument that it still has."""
        op = without_idle(op)
        op = replace(op, signature=default_signature(op.inputs, op.attrs))
        read = {r.tensor for d in op.definitions for r in reads(d.value)}
        inputs = tuple(
            replace(i, shape_only=i.name not in read) if isinstance(i, m.Tensor) else i for i in op.inputs
        )  # fmt: skip
        arguments = [i.name for i in op.inputs] + [a.name for a in op.attrs]
        if not arguments:
            raise CannotComposeError("nothing goes in")
        checks = tuple(
            replace(c, argument=arguments[0]) if isinstance(c, m.Require) and c.argument not in arguments else c
            for c in op.checks
        )
        return with_clear_indices(replace(op, inputs=inputs, checks=checks))


def _free(op: m.OpSpec) -> Iterator[str]:
    """Yield the names in the dimensions of an op's inputs."""
    for entry in op.inputs:
        for dims in (entry.dims,) if isinstance(entry, m.Tensor) else entry.forms:
            yield from (f for d in dims for f in d.factors if isinstance(f, str))


def with_clear_indices(op: m.OpSpec) -> m.OpSpec:
    """Return the op with indices that hide no other name."""
    taken = {i.name for i in op.inputs} | {a.name for a in op.attrs} | {o.name for o in op.outputs}
    taken |= set(_free(op)) | {n for c in op.checks if isinstance(c, m.ShapeLet) for n in c.names}
    taken |= {d.tensor for d in op.definitions}
    return replace(op, definitions=tuple(clear_indices(d, taken) for d in op.definitions))
