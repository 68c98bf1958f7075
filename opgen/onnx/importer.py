"""Graphs of a model to calls: nodes in order, under names that are unique, functions written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opgen.graph.build.model import Branch, Input, Model, Size
from opgen.graph.build.model import Step as ModelStep
from opgen.graph.ir.nodes import Data
from opgen.onnx.calls import call_of, one_at_a_time
from opgen.onnx.errors import Complaint
from opgen.onnx.functions import (
    Identifier,
    bound_attributes,
    defaults_of,
    defined_function,
    domain,
    opsets,
    schema_of,
)
from opgen.onnx.interface import each_of, spec_of
from opgen.onnx.order import ordered, outer_names
from opgen.onnx.package import newest, onnx
from opgen.onnx.repeats import BODY, given_types, is_repeat, repeat_of, result_types
from opgen.onnx.scope import Context, Import, Scope, Step, operator_of
from opgen.onnx.tensors import TensorError, TensorRefusedError, array, scalar_type

_SIDES = ("then_branch", "else_branch")
"""The attributes of a node that runs one of two graphs."""


UNKNOWN = ("", "?")
"""Names of dimensions without meaning: exporters write `?` for any unknown one, several times in a model."""


def main_model(shared: Import, graph: Any, versions: Mapping[str, int]) -> Model:
    """Return the model of a main graph; its mistakes are noted."""
    for node in graph.node:
        for name in node.output:
            shared.values.keep(name)
    inside = _Inside(shared)
    constants = inside.initialisers(graph, {})
    scope: Scope = {name: name for name in constants}
    for given in graph.input:
        if given.name in scope and given.name not in constants:
            shared.malformed.append(Complaint(f"two inputs are called '{given.name}'"))
        scope[given.name] = given.name
        if shared.types is not None:
            shared.types.known[given.name] = given.type
    for name in scope:
        shared.values.keep(name)
    labels = inside.nodes(graph.node, scope, Context(versions), keep=True)
    readers = {name: (label, node) for node, label in zip(graph.node, labels, strict=True) for name in node.input}
    declared = [(d, _input(shared, d, *readers.get(d.name, ("", None)))) for d in graph.input]
    inputs = tuple(i for d, i in declared if i is not None and d.name not in constants)
    defaults = tuple(i for d, i in declared if i is not None and d.name in inside.constants)
    outputs = [name for o in graph.output if (name := _output(shared, scope, o.name, graph.name)) is not None]
    if not graph.output:
        shared.malformed.append(Complaint("it has no outputs"))
    calls = tuple(inside.calls)
    return Model(
        graph.name or "model", inputs, inside.constants, calls, tuple(outputs), shared.source, defaults=defaults
    )


class _Inside:
    """The calls and constants of one graph, in the order found."""

    def __init__(self, shared: Import) -> None:
        self.shared = shared
        self.calls: list[ModelStep] = []
        self.constants: dict[str, Data] = {}

    def initialisers(self, graph: Any, scope: Scope) -> set[str]:
        """Adds the constants of a graph; their names, as the graph has them.  `scope` gets those of an inner one."""
        found: set[str] = set()
        for tensor in graph.initializer:
            said = f"initialiser '{tensor.name}'"
            if tensor.name in found or not tensor.name:
                reason = "there is another of that name" if tensor.name else "it has no name"
                self.shared.malformed.append(Complaint(f"{said}: {reason}"))
                continue
            found.add(tensor.name)
            try:
                data = Data(array(tensor, self.shared.folder))
            except TensorError as error:
                self.shared.malformed.append(Complaint(f"{said}: {error}"))
            except TensorRefusedError as error:
                self.shared.refused.append(Complaint(f"{said}: {error}"))
            else:
                name = scope.get(tensor.name) or tensor.name
                self.constants[name] = data
                self._note_type(name, tensor)
        for sparse in graph.sparse_initializer:
            found.add(sparse.values.name)
            reason = f"initialiser '{sparse.values.name}': sparse tensors are not supported"
            self.shared.refused.append(Complaint(reason))
        return found

    def _note_type(self, name: str, tensor: Any) -> None:
        if self.shared.types is not None:
            helper = onnx().helper
            self.shared.types.known[name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))

    def nodes(self, nodes: Sequence[Any], scope: Scope, context: Context, keep: bool = False) -> list[str]:
        """Add the calls of nodes; `scope` gets the names of their results, which they `keep` in the main graph.

        Return the names of the nodes: their own, or those of their operators, with a number where one is taken.
        """
        order, mistakes = ordered(nodes, scope)
        written = bool(context.within)
        labels = [self.shared.node_name(node.name or node.op_type, written) for node in nodes]
        for at, reason in mistakes:
            self.shared.malformed.append(Complaint(reason, labels[at], operator_of(nodes[at])))
        for at in order:
            self._node(nodes[at], labels[at], scope, context, keep)
        return labels

    def _node(self, node: Any, label: str, scope: Scope, context: Context, keep: bool) -> None:
        inputs = tuple(scope.get(name) if name else None for name in node.input)
        outputs: list[str | None] = []
        targets = context.targets
        for name in node.output:
            made = targets.get(name) or (name if keep else self.shared.values.free(f"{context.prefix}/{name}"))
            if name and (name in scope or list(node.output).count(name) > 1):
                reason = f"it makes '{name}', which there is already"
                self.shared.malformed.append(Complaint(reason, label, operator_of(node)))
            outputs.append(made if name else None)
        attributes: dict[str, Any] = {}
        for attribute in node.attribute:
            if attribute.name in attributes:
                reason = f"attribute '{attribute.name}' is given twice"
                self.shared.malformed.append(Complaint(reason, label, operator_of(node)))
            found = _referred(attribute, context.references)
            if found is not None:
                attributes[attribute.name] = found
        step = Step(node, label, inputs, tuple(outputs), attributes, context, scope)
        self._step(step)
        scope.update((name, made) for name, made in zip(node.output, outputs, strict=True) if name)

    def _step(self, step: Step) -> None:
        """Adds the calls of one node: of its spec, of the sides of a branch, or of a function's body."""
        shared, of = self.shared, domain(step.node.domain)
        function = (of, step.node.op_type, getattr(step.node, "overload", ""))
        version = step.context.opsets.get(of)
        if function in shared.local:
            self._function(step, shared.local[function], function, {})
        elif version is None:
            shared.malformed.append(step.complaint(f"the model does not say which opset of '{of}' it is of"))
        elif (op := spec_of(shared.module, of, step.node.op_type, version)) is not None:
            for one in one_at_a_time(shared, step, op, each_of(shared.module, of, step.node.op_type, version)):
                self.calls += call_of(shared, one, op, self.constants)
            self._infer(step, version, of)
        elif set(step.attributes) == set(_SIDES) and len(step.inputs) == 1:
            self._branch(step)
            self._infer(step, version, of)
        elif is_repeat(step, version, of):
            self._repeat(step, version)
        else:
            self._defined(step, version, of)

    def _infer(self, step: Step, version: int, of: str) -> None:
        if self.shared.types is not None:
            self.shared.types.infer(_renamed(step), version, of)

    def _defined(self, step: Step, version: int, of: str) -> None:
        """Import a node without a spec: by ONNX's function, or refuse it."""
        types = self.shared.types
        known = [None if types is None or name is None else types.known.get(name) for name in step.inputs]
        body = defined_function(_renamed(step), version, of, known)
        if body is not None:
            self._infer(step, version, of)
            defaults = defaults_of(step.node.op_type, version, of)
            self._function(step, body, (of, step.node.op_type, "defined"), defaults)
        elif schema_of(step.node.op_type, version, of) is None:
            reason = f"opset {version} of '{of or 'ai.onnx'}' has no such operator"
            self.shared.refused.append(step.complaint(reason))
        else:
            self.shared.refused.append(step.complaint(f"there is no spec of it (opset {version})"))

    def _function(self, step: Step, body: Any, identifier: Identifier, defaults: Mapping[str, Any]) -> None:
        """Adds the calls of a function's body."""
        shared, context = self.shared, step.context
        if identifier in context.within:
            shared.malformed.append(step.complaint("the function calls itself"))
            return
        if len(step.inputs) > len(body.input) or len(step.outputs) > len(body.output):
            reason = f"the function takes {len(body.input)} inputs and gives {len(body.output)}"
            shared.malformed.append(step.complaint(reason))
            return
        given = dict(zip(body.input, step.inputs, strict=False))
        scope: Scope = {name: given.get(name) for name in body.input}
        targets = {name: made for name, made in zip(body.output, step.outputs, strict=False) if made is not None}
        versions = {"": newest(), **context.opsets, **opsets(body.opset_import)}
        references = bound_attributes(body, step.attributes, defaults)
        within = (*context.within, identifier)
        self.nodes(body.node, scope, Context(versions, references, step.name, within, targets))
        for name in targets:
            if name in body.input or name not in scope:
                shared.malformed.append(step.complaint(f"no node of the function makes its result '{name}'"))

    def _branch(self, step: Step) -> None:
        """Adds one of two models, by a condition."""
        then, otherwise = (self._inner(step, step.attributes[side]) for side in _SIDES)
        condition = step.inputs[0]
        shared = self.shared
        if condition is None or then is None or otherwise is None:
            shared.malformed.append(step.complaint("it has no condition or no two graphs"))
            return
        if not len(then.outputs) == len(otherwise.outputs) == len(step.outputs):
            shared.malformed.append(step.complaint("its graphs have other numbers of results than it"))
            return
        origin = f"{shared.source}, node '{step.name}' ({step.operator})"
        self.calls.append(Branch(step.name, condition, then, otherwise, step.outputs, origin))

    def _repeat(self, step: Step, version: int) -> None:
        """Adds a model that is run again and again."""
        shared, graph = self.shared, step.attributes[BODY].g
        given = {i.name: shared.values.free(f"{step.name}/{i.name}") for i in graph.input}
        if shared.types is not None:
            shared.types.known.update(given_types(shared.types.known, step, graph, given, version))
        body = self._inner(step, step.attributes[BODY], given)
        if body is None or len(given) != len(graph.input) or "" in given:
            shared.malformed.append(step.complaint("its graph is none, or has inputs of no name or of the same"))
            return
        found = repeat_of(shared, step, body, tuple(given.values()), version)
        if found is not None:
            self.calls.append(found)
        if shared.types is not None and found is not None:
            shared.types.known.update(result_types(shared.types.known, step, body, found))

    def _inner(self, step: Step, attribute: Any, given: Mapping[str, str] | None = None) -> Model | None:
        """Return the model of a graph inside a node; its inputs are `given`, by their names inside."""
        shared, graph = self.shared, attribute.g
        if attribute.type != onnx().AttributeProto.GRAPH or (graph.input and given is None):
            return None
        inside = _Inside(shared)
        scope = {**step.scope, **(given or {})}
        own = {t.name: shared.values.free(f"{step.name}/{t.name}") for t in graph.initializer if t.name}
        inside.initialisers(graph, dict(own))
        scope.update(own)
        outer = sorted({made for name in outer_names(graph) if (made := step.scope.get(name)) is not None})
        context = step.context
        for node in graph.node:
            for name in node.output:
                scope.pop(name, None)
        inside.nodes(graph.node, scope, Context(context.opsets, context.references, step.name, context.within))
        outputs = tuple(name for o in graph.output if (name := _output(shared, scope, o.name, step.name)) is not None)
        return Model(graph.name or step.name, (), inside.constants, tuple(inside.calls), outputs, outer=tuple(outer))


def _referred(attribute: Any, references: Mapping[str, Any]) -> Any | None:
    """Return an attribute, or the one that it refers to in the function around it; None if that was not given."""
    return references.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute


def _renamed(step: Step) -> Any:
    """Return the node with the names of the whole model and no references."""
    node = onnx().NodeProto(op_type=step.node.op_type, domain=step.node.domain, name=step.name)
    node.input.extend(name or "" for name in step.inputs)
    node.output.extend(name or "" for name in step.outputs)
    for name, attribute in step.attributes.items():
        added = node.attribute.add()
        added.CopyFrom(attribute)
        added.name = name
    return node


def _output(shared: Import, scope: Scope, name: str, where: str) -> str | None:
    """Return the value of an output of a graph, or None with the mistake noted."""
    found = scope.get(name)
    if found is None:
        shared.malformed.append(Complaint(f"nothing makes the output '{name}' of '{where}'"))
    return found


def _input(shared: Import, declared: Any, reader: str, node: Any | None) -> Input | None:
    """Return an input of the model, or None with the mistake noted, which names the node that takes it, if any."""
    operator = "" if node is None else operator_of(node)

    def malformed(reason: str) -> None:
        shared.malformed.append(Complaint(f"input '{declared.name}': {reason}", reader, operator))

    def refused(reason: str) -> None:
        shared.refused.append(Complaint(f"input '{declared.name}': {reason}", reader, operator))

    kind = declared.type.WhichOneof("value")
    tensor = declared.type.tensor_type
    if kind is None or not declared.name:
        malformed("it has no type" if declared.name else "it has no name")
    elif kind != "tensor_type":
        refused(f"its type is {kind.removesuffix('_type')}, and only tensors are supported")
    else:
        try:
            shape = _shape(tensor) if tensor.HasField("shape") else None
            return Input(declared.name, scalar_type(tensor.elem_type), shape)
        except TensorError as error:
            malformed(str(error))
        except TensorRefusedError as error:
            refused(str(error))
    return None


def _shape(tensor: Any) -> tuple[Size, ...]:
    """Return the shape of an input: numbers, symbols, and None for open sizes (negative numbers count as open)."""
    sizes: list[Size] = []
    for dim in tensor.shape.dim:
        if dim.HasField("dim_value"):
            sizes.append(dim.dim_value if dim.dim_value >= 0 else None)
        else:
            sizes.append(dim.dim_param if dim.dim_param not in UNKNOWN else None)
    return tuple(sizes)
