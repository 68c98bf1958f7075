"""The graph: a model once the types and shapes of its inputs are known, and its meaning.

A `Graph` computes its outputs from its inputs and constants by nodes, each of which calls one op.  Every value has a
name, a scalar type and a shape of integers; it is an input, a constant, or a result of exactly one node.  Each node
comes after the nodes whose results it takes.

Meaning.  The nodes run in order.  A node passes tensors for its op's inputs, in the op's order, and the op's
  attributes; the op's definition gives its results, element by element.  Values are dense and in the order of their
  dimensions.  An op has no effects, so nodes with unused results may be left out.  Any order in which each node comes
  after its producers gives the same results.

Ops have no open ranks and no optional inputs, and each layout is decided by an attribute.  They are `OpSpec`s from
`opgen.spec.generic.instance`, or composed by passes.  A fused group is an op like any other.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from opgen.graph.ir.alone import alone
from opgen.graph.ir.values import Array as Array
from opgen.graph.ir.values import Constant as Constant
from opgen.graph.ir.values import Data as Data
from opgen.graph.ir.values import Value as Value
from opgen.graph.ir.values import result_names
from opgen.locks import cached_property
from opgen.spec.call.environment import AttrStored
from opgen.spec.model.model import Function, Module, OpSpec
from opgen.spec.model.visit import called_functions


@dataclass(frozen=True)
class Op:
    """An op, with the shape functions that it calls, each before its callers (`op_of` makes one)."""

    spec: OpSpec
    functions: tuple[Function, ...] = ()

    @cached_property
    def module(self) -> Module:
        """Return a module that holds the op alone."""
        return Module(self.spec.function_name, (self.spec,), self.functions)

    @cached_property
    def identity(self) -> str:
        """Return a sha256 of the whole op, the same in every process."""
        return hashlib.sha256(repr((self.spec, self.functions)).encode()).hexdigest()

    @cached_property
    def _hash(self) -> int:
        return hash((self.spec, self.functions))

    def __reduce__(self) -> tuple[type[Op], tuple[OpSpec, tuple[Function, ...]]]:
        """Pickle the fields alone: cached values, such as the hash, are valid in this process only."""
        return Op, (self.spec, self.functions)

    def __eq__(self, other: object) -> bool:
        """Return True for the same op.

        Python also calls specs equal if one has 0.0 and the other -0.0.
        """
        if self is other or not isinstance(other, Op):
            return self is other
        return self.identity == other.identity

    def __hash__(self) -> int:
        return self._hash


_made: OrderedDict[tuple[int, int], tuple[Op, OpSpec, tuple[Function, ...]]] = OrderedDict()
_MADE = 2048
"""Maximum number of ops kept for the same objects: comparing two, and finding their functions, takes time."""


def op_of(module: Module, spec: OpSpec) -> Op:
    """Return an op of a module as a standalone one: not a gradient of another, and without examples."""
    functions = module.functions
    key = id(spec), id(functions)
    found = _made.get(key)
    if found is None or found[1] is not spec or found[2] is not functions:
        own = alone(spec)
        found = _made[key] = Op(own, called_functions(functions, own)), spec, functions
        while len(_made) > _MADE:
            _made.popitem(last=False)
    return found[0]


@dataclass(frozen=True, slots=True)
class Node:
    """A call of an op.

    `inputs` are the names of values, one for each tensor among the op's inputs, in its order; `outputs` likewise.
    `types` binds the op's type variables, in its order.  `attributes` has a value for each of the op's attributes, in
    its order, then for each of its `sizes` inputs, by name.  Lists are flat and in the caller's order.  `origin` is the
    node's place in the source, for messages and reports.  `opgen.graph.ir.bound` makes nodes.
    """

    name: str
    op: Op
    types: tuple[tuple[str, str], ...]
    attributes: tuple[tuple[str, AttrStored], ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    origin: str = field(default="", compare=False)

    def __reduce__(self) -> tuple[type[Node], tuple[object, ...]]:
        """Return positional arguments: pickling by field names, as for any dataclass, would take twice as long."""
        return Node, (self.name, self.op, self.types, self.attributes, self.inputs, self.outputs, self.origin)


@dataclass(frozen=True)
class Graph:
    """A graph of nodes.

    `inputs` are in the caller's order.  `values` are the nodes' results, in order.  `outputs` name values of any kind,
    in the caller's order; a name may occur more than once.
    """

    name: str
    inputs: tuple[Value, ...]
    constants: tuple[Constant, ...]
    values: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    output_names: tuple[str, ...] = ()
    """The caller's names of the outputs; empty: the names of their values (`result_names`)."""

    @cached_property
    def result_names(self) -> tuple[str, ...]:
        """Return the caller's names of the outputs, each once: repeated values get numbers."""
        return self.output_names or result_names(self.outputs)

    @cached_property
    def value(self) -> dict[str, Value]:
        """Return every value by its name."""
        return {v.name: v for v in (*self.inputs, *(c.value for c in self.constants), *self.values)}

    @cached_property
    def constant(self) -> dict[str, Constant]:
        """Return the constants by name."""
        return {c.value.name: c for c in self.constants}

    @cached_property
    def node(self) -> dict[str, Node]:
        """Return the nodes by name."""
        return {n.name: n for n in self.nodes}

    @cached_property
    def given_back(self) -> frozenset[str]:
        """Return the names of the values that the caller takes."""
        return frozenset(self.outputs)

    @cached_property
    def producer(self) -> dict[str, Node]:
        """Return the node that makes each value."""
        return {name: node for node in self.nodes for name in node.outputs}

    @cached_property
    def readers(self) -> dict[str, tuple[Node, ...]]:
        """Return the nodes that take each value, in order, each as often as it takes it."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.inputs:
                found.setdefault(name, []).append(node)
        return {name: tuple(nodes) for name, nodes in found.items()}

    def taken(self) -> Iterator[str]:
        """Yield the names of all values that some node or the caller takes, with repetitions."""
        for node in self.nodes:
            yield from node.inputs
        yield from self.outputs
