"""A group of nodes as one op: their mathematics one after the other, what passes between them intermediate tensors.

A value between nodes becomes a `let`.  It holds the compute type of its scalar type: between half or bfloat16 ops the
rounding to 16 bits is left out (as everywhere where a sum keeps its accumulator), all other types are computed just
as by the single ops, bit for bit.  Names stay, numbered where two ops have the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from opgen.graph.bound import bound
from opgen.graph.equate import Equations, in_turn
from opgen.graph.idle import without_idle
from opgen.graph.intermediate import Intermediates
from opgen.graph.nodes import Graph, Node, Op
from opgen.graph.rename import Namer, declared, definition_with, renamed, rewritten
from opgen.graph.rewrite import clear_indices, without_ones
from opgen.graph.settle import CannotComposeError, Settled, settle
from opgen.spec import model as m
from opgen.spec.dimensions import determined
from opgen.spec.names import snake_case
from opgen.spec.signature import default_signature
from opgen.spec.walk import reads

_NAME = 60
"""Letters of the name of a composed op, at most."""


def compose(graph: Graph, nodes: Sequence[Node], outside: Collection[str], inlined: Collection[str] = ()) -> Node:
    """One node for several, in the order of the graph; `outside` are the values that are needed beyond them.

    Values that are `inlined` are computed wherever they are read, as far as that changes nothing, and not stored.
    Raises CannotComposeError if there is no such op.
    """
    return _Composition(graph, nodes, outside, inlined).run()


@dataclass
class _Part:
    """A node on its way into the whole: `names` are of its op's tensors, attributes and sizes in the whole."""

    node: Node
    settled: Settled
    names: dict[str, str] = field(default_factory=dict)
    op: m.OpSpec = field(init=False)

    @property
    def tensors(self) -> Iterator[tuple[str, m.Tensor]]:
        """The values that it takes, with the inputs for which it takes them."""
        return zip(self.node.inputs, self.settled.op.tensors, strict=True)

    @property
    def results(self) -> Iterator[tuple[str, m.Tensor]]:
        return zip(self.node.outputs, self.settled.op.outputs, strict=True)


class _Composition:
    def __init__(self, graph: Graph, nodes: Sequence[Node], outside: Collection[str], inlined: Collection[str]) -> None:
        self.graph = graph
        self.inlined = inlined
        self.outside = set(outside)
        self.namer = Namer()
        self.equations = Equations(self.namer)
        self.names: dict[str, str] = {}
        self.functions: dict[str, m.Function] = {}
        self.inputs: dict[str, m.Tensor] = {}
        self.made: dict[str, m.Tensor] = {}
        self.copies: dict[str, str] = {}
        self.checks: list[m.ShapeLet | m.Require] = []
        self.parts = [_Part(n, settle(graph, n)) for n in nodes]

    def run(self) -> Node:
        if not self.outside:
            raise CannotComposeError("nothing comes out")
        for part in self.parts:
            self._name(part)
            self._join(part)
        self._check_determined()
        op = self._whole()
        given = {part.names[name]: v for part in self.parts for name, v in part.settled.attributes}
        named = [a.name for a in op.attrs] + [i.name for i in op.inputs if isinstance(i, m.Sizes)]
        attributes = tuple((name, given[name]) for name in named)
        last = self.parts[-1].node
        results = [v for part in self.parts for v, _ in part.results if v in self.outside]
        origin = ", ".join(dict.fromkeys(p.node.origin for p in self.parts if p.node.origin))
        whole = Op(op, tuple(self.functions.values()))
        return Node(last.name, whole, (), attributes, tuple(self.inputs), tuple(results), origin)

    # Names ----------------------------------------------------------------------------------------

    def _name(self, part: _Part) -> None:
        """Gives everything of a part a name in the whole; a value has one name."""
        op = part.settled.op
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
        part.op = renamed(op, part.names, {f.name: self._function(f) for f in part.node.op.functions})

    def _is_read(self, value: str) -> bool:
        return any(value in p.node.inputs for p in self.parts)

    def _function(self, function: m.Function) -> str:
        """The name of a shape function in the whole."""
        if self.functions.setdefault(function.name, function) != function:
            raise CannotComposeError(f"two different functions have the name '{function.name}'")
        return function.name

    # Sizes ----------------------------------------------------------------------------------------

    def _join(self, part: _Part) -> None:
        """Takes a part's inputs, sizes and checks in."""
        call = bound(self.graph, part.node).environment
        lets = {n: c.value for c in part.op.checks if isinstance(c, m.ShapeLet) for n in c.names}
        sizes = {part.names[n]: v for n, v in call.symbols.items() if n in part.names}
        self.equations.add(set(_free(part.op)) - lets.keys(), lets, sizes)
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
        """What no input of the whole tells any more cannot be solved for."""
        equations = self.equations
        dims = list(self._dims())
        known = determined([d for d in dims if not set(d.factors) & equations.lets.keys()], set())
        lost = {f for d in dims for f in d.factors if isinstance(f, str)} - known - equations.lets.keys()
        lost |= equations.free - known
        if lost:
            raise CannotComposeError(f"no input would tell the size '{min(lost)}'")

    def _dims(self) -> Iterator[m.Dimension]:
        """The dimensions of the whole's inputs."""
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
        name = "".join(p.settled.op.name[:1].upper() + p.settled.op.name[1:] for p in self.parts)[:_NAME]
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
            doc=" and then ".join(f"`{p.settled.op.name}`" for p in self.parts) + ".",
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
        """The mathematics of the parts, one after the other."""
        between = {t.name for v, t in self.made.items() if v not in self.outside} | set(self.copies)
        inlined = {self.names[v] for v in self.inlined}
        intermediates = Intermediates(between, self.copies, inlined, self._size)
        for definitions in of_parts:
            for d in definitions:
                intermediates.add(without_ones(definition_with(d, self.equations.in_mathematics)))
        return tuple(intermediates.definitions)

    def _size(self, tensor: str, axis: int) -> m.Expr | None:
        """The size of an input's dimension."""
        found = next((t for t in self.inputs.values() if t.name == tensor), None)
        return None if found is None else self.equations.in_mathematics(found.dims[axis].size)

    def _tidied(self, op: m.OpSpec) -> m.OpSpec:
        """Without what has no effect in the whole; requirements blame what the whole has."""
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
    """The names in the dimensions of an op's inputs."""
    for entry in op.inputs:
        for dims in (entry.dims,) if isinstance(entry, m.Tensor) else entry.forms:
            yield from (f for d in dims for f in d.factors if isinstance(f, str))


def with_clear_indices(op: m.OpSpec) -> m.OpSpec:
    """The op with indices that hide no other name."""
    taken = {i.name for i in op.inputs} | {a.name for a in op.attrs} | {o.name for o in op.outputs}
    taken |= set(_free(op)) | {n for c in op.checks if isinstance(c, m.ShapeLet) for n in c.names}
    taken |= {d.tensor for d in op.definitions}
    return replace(op, definitions=tuple(clear_indices(d, taken) for d in op.definitions))
