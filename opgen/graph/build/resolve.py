"""From a model to a graph, once the types and shapes of its inputs are known.

Each call is resolved to the op for its arguments, with its results' types and shapes.  Where an op asks for the
integers of an argument (a shape, axes), they are computed here.  They are known if they depend on constants and on
shapes alone.  The op itself says which inputs count by their shapes alone (`shape_only`).  A branch with a known
condition becomes the side that it takes.  Nodes that only carry shapes disappear.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from opgen.diagnostics import DiagnosticError, InternalError, UserError
from opgen.graph.ir.bound import Kind, bind, make_node
from opgen.graph.build.inner import made_in
from opgen.graph.build.instances import wants_value
from opgen.graph.build.known import Knowledge
from opgen.graph.program.limits import Allowed, allowed
from opgen.graph.build.model import Branch, Call, Input, Model, Repeat, Step
from opgen.graph.ir.nodes import Array, Constant, Data, Graph, Node, Value, op_of
from opgen.graph.ir.problems import TOO_DEEP, error_of
from opgen.graph.ir.problems import ModelError as ModelError
from opgen.graph.ir.problems import Problem as Problem
from opgen.graph.ir.steps import steps
from opgen.graph.build.unrolled import CALLS, UndecidedCallError, unrolled
from opgen.runtime.memory.buffers import dtype_of
from opgen.diagnostics.calls import ArgumentTypeError, ArgumentValueError
from opgen.spec.generic import Argument, Instance, instance, known_sizes
from opgen.spec.model.model import Module


def resolve(model: Model, inputs: Mapping[str, Kind], known: Mapping[str, Array] | None = None) -> Graph:
    """Return the graph of a model for inputs of these types and shapes.

    `known` are elements of inputs that may be read.  The graph is valid for inputs with the elements that were read
    (`opgen.graph.ir.offered` records them).  Raises ArgumentTypeError or ArgumentValueError for an input that does not
    fit the model.  Raises ModelError with all calls that cannot be resolved; it is an UndecidedError if all of them can
    be resolved once their inputs are computed.
    """
    _check_inputs(model, inputs)
    work = _Resolver({} if known is None else known, allowed(_given(model, inputs)), model)
    for entry in model.inputs:
        work.input(entry, inputs[entry.name])
    work.model(model)
    outputs = [work.alias.get(name, name) for name in model.outputs]
    if work.problems:
        raise error_of(model.name, work.problems)
    return work.graph(model, outputs)


def _given(model: Model, inputs: Mapping[str, Kind]) -> Iterator[Value]:
    """Yield the inputs and the constants."""
    yield from (Value(name, *kind) for name, kind in inputs.items())
    for name, data in model.constants.items():
        dtype = dtype_of(data.array)
        if dtype is not None:
            yield Value(name, dtype, data.array.shape)


def _check_inputs(model: Model, given: Mapping[str, Kind]) -> None:
    """Raise for the first input that does not fit."""
    symbols: dict[str, tuple[int, int, str]] = {}
    for name in given:
        if all(name != entry.name for entry in model.inputs):
            raise ArgumentTypeError(model.name, name, "no such input", "a tensor")
    for entry in model.inputs:
        wanted = _declared(entry)
        if entry.name not in given:
            raise ArgumentTypeError(model.name, entry.name, wanted, "nothing")
        dtype, shape = given[entry.name]
        if dtype != entry.dtype:
            raise ArgumentTypeError(model.name, entry.name, wanted, f"{dtype}{list(shape)}")
        if entry.shape is None:
            continue
        if len(shape) != len(entry.shape):
            raise ArgumentValueError(model.name, entry.name, wanted, f"shape {list(shape)}")
        for axis, (size, declared) in enumerate(zip(shape, entry.shape, strict=True)):
            if isinstance(declared, int) and size != declared:
                raise ArgumentValueError(model.name, entry.name, wanted, f"shape {list(shape)}")
            if isinstance(declared, str):
                first, at, where = symbols.setdefault(declared, (size, axis, entry.name))
                if first != size:
                    by = f"the size of '{declared}' by dimension {at} of '{where}'"
                    expected = f"dimension {axis} to be {first}, {by}"
                    raise ArgumentValueError(model.name, entry.name, expected, f"shape {list(shape)}")


def _said(error: UserError) -> str:
    """Return the message of an error, without the place in a spec that the model's user does not know."""
    return "; ".join(d.message for d in error.diagnostics) if isinstance(error, DiagnosticError) else str(error)


def _declared(entry: Input) -> str:
    """Return an input as text: `float32[batch, 3, ?]`."""
    if entry.shape is None:
        return f"a tensor of {entry.dtype}"
    return f"{entry.dtype}[{', '.join('?' if s is None else str(s) for s in entry.shape)}]"


class _Resolver:
    """Graph under construction; the names in `missing` are of values that a refused call would have made."""

    def __init__(self, offered: Mapping[str, Array], allowed: Allowed, model: Model) -> None:
        self._names = {*(i.name for i in model.inputs), *made_in(model)}
        self._allowed = allowed
        self.problems: list[Problem] = []
        self.alias: dict[str, str] = {}
        self._inputs: list[Value] = []
        self._values: dict[str, Value] = {}
        self._knowledge = Knowledge(offered)
        self._nodes: list[Node] = []
        self._numbers_of: dict[str, int] = {}
        self._labels: dict[str, int] = {}
        self._left = CALLS
        self._missing: set[str] = set()

    def input(self, entry: Input, kind: Kind) -> None:
        self._values[entry.name] = Value(entry.name, *kind)
        self._inputs.append(self._values[entry.name])

    def model(self, model: Model) -> None:
        """Add the constants and steps of a model; its own inputs are already present."""
        for name, data in model.constants.items():
            dtype = dtype_of(data.array)
            if dtype is None:
                reason = f"constant '{name}' is of type {data.array.dtype}, which no op has"
                self.problems.append(Problem(name, "constant", reason))
                self._missing.add(name)
                continue
            value = self._values[name] = Value(name, dtype, data.array.shape)
            self._knowledge.constant(value, data)
        for step in model.calls:
            before = len(self.problems)
            if isinstance(step, Branch):
                self._branch(step)
            elif isinstance(step, Repeat):
                self._repeat(step)
            else:
                self.call(step)
            self.problems[before:] = [dataclasses.replace(p, step=step.name) for p in self.problems[before:]]

    def call(self, call: Call) -> None:
        """Add a call."""
        names = [None if name is None else self.alias.get(name, name) for name in call.inputs]
        if any(name in self._missing for name in (*names, *(self.alias.get(n, n) for _, n in call.counted))):
            self._give_up(call.outputs)
            return
        undecided = False
        try:
            arguments = [self._argument(call, place, name) for place, name in enumerate(names)]
            undecided = any(
                a is not None and a.value is None and wants_value(call.module, call.op, place)
                for place, a in enumerate(arguments)
            )
            count = len(call.outputs)
            attributes = {**call.attributes, **self._counted(call)}
            found = instance(call.module, call.op, arguments, attributes, count)
            self._add(call, found, names)
        except UserError as error:
            self._refuse(call, _said(error), undecided or isinstance(error, UndecidedCallError))
        except RecursionError:
            self._refuse(call, TOO_DEEP.format(count=len(call.inputs) + len(call.outputs)))

    def _counted(self, call: Call) -> dict[str, int]:
        """Return the attributes that are elements of values."""
        found = {}
        for attribute, name in call.counted:
            number = self.known(name)
            if number is None:
                raise UndecidedCallError(f"its size '{attribute}' is known only when the model runs")
            found[attribute] = int(number)
        return found

    def _refuse(self, step: Step, reason: str, undecided: bool = False) -> None:
        operator = step.op if isinstance(step, Call) else "branch" if isinstance(step, Branch) else "runs"
        self.problems.append(Problem(step.name, operator, reason, step.origin, undecided))
        self._give_up(step.outputs)

    def _give_up(self, outputs: Sequence[str | None]) -> None:
        self._missing.update(name for name in outputs if name is not None)

    def _argument(self, call: Call, place: int, name: str | None) -> Argument | None:
        if name is None:
            return None
        if name not in self._values:
            raise InternalError(f"call '{call.name}' takes '{name}', which nothing before it makes")
        value = self._values[name]
        numbers = self._numbers(name) if wants_value(call.module, call.op, place) else None
        generic = call.module.generic(call.op)
        sizes = () if generic is None else known_sizes(generic, place, value.shape)
        return Argument(value.dtype.name, len(value.shape), numbers, sizes)

    def _numbers(self, name: str) -> tuple[int, ...] | tuple[float, ...] | float | None:
        """Return the elements of a value of at most one dimension, if they are known."""
        value = self._values[name]
        if len(value.shape) > 1:
            return None
        array = self._knowledge.elements(name)
        if array is None:
            return None
        if value.dtype.is_float:
            return float(array) if array.ndim == 0 else tuple(float(v) for v in array)
        return int(array) if array.ndim == 0 else tuple(int(v) for v in array)

    def _add(self, call: Call, found: Instance, names: Sequence[str | None]) -> None:
        """Add the node of a call."""
        tensors: list[Value] = []
        for entry, place in zip(found.op.tensors, found.inputs, strict=True):
            name = names[place]
            if name is None:
                raise ArgumentTypeError(found.op.name, entry.name, "a tensor", "nothing")
            tensors.append(self._values[name])
        op = op_of(Module(call.op, (found.op,), found.functions), found.op)
        given = [*call.outputs, *[None] * (len(found.op.outputs) - len(call.outputs))]
        outputs = [
            self.free(f"{call.name}.{o.name}") if name is None else name
            for name, o in zip(given, found.op.outputs, strict=True)
        ]
        node, made = make_node(self._label(call.name), op, tensors, outputs, found.attributes, found.types, call.origin)
        for value in made:
            self._allowed.check_value(value)
        kinds = [(v.dtype, v.shape) for v in tensors]
        self._allowed.check_steps(steps(bind(op, node.types, node.attributes, kinds)))
        self._nodes.append(node)
        self._values.update((v.name, v) for v in made)
        self._knowledge.node(node, tensors, made)

    def _branch(self, branch: Branch) -> None:
        """Add the side that a branch takes."""
        name = self.alias.get(branch.condition, branch.condition)
        if name in self._missing:
            self._give_up(branch.outputs)
            return
        try:
            taken = self._knowledge.elements(name)
        except UserError as error:
            self._refuse(branch, str(error))
            return
        if taken is None or taken.size != 1:
            why = "has not one element" if taken is not None else "is known only when the model runs"
            self._refuse(branch, f"its condition '{branch.condition}' {why}", taken is None)
            return
        side = branch.then if bool(taken.reshape(-1)[0]) else branch.otherwise
        self.model(side)
        self._same(branch.outputs, side.outputs)

    def _repeat(self, repeat: Repeat) -> None:
        """Add all runs of a model."""
        taken = (repeat.most, repeat.condition, *repeat.states, *(name for name, _ in repeat.sliced))
        if any(name is not None and self.alias.get(name, name) in self._missing for name in taken):
            self._give_up(repeat.outputs)
            return
        try:
            self._same(repeat.outputs, unrolled(self, repeat))
        except UserError as error:
            self._refuse(repeat, str(error), isinstance(error, UndecidedCallError))

    def _same(self, outputs: Sequence[str | None], results: Sequence[str]) -> None:
        """Make the outputs of a step aliases of existing values."""
        for outer, inner in zip(outputs, results, strict=True):
            if outer is not None:
                self.same(outer, inner)

    def same(self, name: str, other: str) -> None:
        """Make a name an alias of another value."""
        self.alias[name] = self.alias.get(other, other)
        if self.alias[name] in self._missing:
            self._missing.add(name)

    def known(self, name: str) -> Array | None:
        """Return the elements of a value, if they can be known.  Raises UserError."""
        return self._knowledge.elements(self.alias.get(name, name))

    def value(self, name: str) -> Value | None:
        """Return an existing value; None if a refused call would have made it."""
        name = self.alias.get(name, name)
        return None if name in self._missing else self._values[name]

    def constant(self, name: str, array: Array) -> str:
        """Add a constant and return its name."""
        dtype = dtype_of(array)
        if dtype is None:
            raise InternalError(f"no op has the type {array.dtype}")
        name = self.free(name)
        value = self._values[name] = Value(name, dtype, array.shape)
        self._knowledge.constant(value, Data(array))
        return name

    def free(self, name: str) -> str:
        """Return a name like this one that no value of the model has, and reserve it."""
        number, found = self._numbers_of.get(name, 1), name
        while found in self._names or found in self._values:
            number += 1
            found = f"{name}.{number}"
        self._numbers_of[name] = number
        self._names.add(found)
        return found

    def spend(self, calls: int) -> bool:
        """Return whether this number of further calls may be unrolled, and count them."""
        self._left -= calls
        return self._left >= 0

    def _label(self, name: str) -> str:
        """Return a name like this one that no node has."""
        number, found = self._labels.get(name, 1), name
        while found in self._labels:
            number += 1
            found = f"{name}.{number}"
        self._labels[name] = number
        self._labels.setdefault(found, 1)
        return found

    def graph(self, model: Model, outputs: Sequence[str]) -> Graph:
        """Return the graph of the outputs: computed values are constants, and nodes that only led to them are gone."""
        wanted = set(outputs)
        nodes: list[Node] = []
        for node in reversed(self._nodes):
            if any(name in wanted and not self._knowledge.worked_out(name) for name in node.outputs):
                nodes.append(node)
                wanted.update(node.inputs)
        nodes.reverse()
        wanted -= {v.name for v in self._inputs} | {name for node in nodes for name in node.outputs}
        constants = tuple(
            Constant(self._values[name], data)
            for name in self._values
            if name in wanted and (data := self._knowledge.data(name)) is not None
        )
        values = tuple(self._values[name] for node in nodes for name in node.outputs)
        named = tuple(model.outputs) if tuple(outputs) != model.outputs else ()
        return Graph(model.name, tuple(self._inputs), constants, values, tuple(nodes), tuple(outputs), named)
