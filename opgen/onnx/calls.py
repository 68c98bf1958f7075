"""A node of an operator that has a spec, to a call: inputs by place, attributes by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from opgen.graph.build.model import Attribute, Call
from opgen.graph.ir.nodes import Data
from opgen.onnx.attributes import AttributeMalformedError, AttributeRefusedError, value_of
from opgen.onnx.interface import Interface, MisfitError, Op, fitted, port_mistake
from opgen.onnx.scope import Import, Step


def call_of(shared: Import, step: Step, op: Op, constants: dict[str, Data]) -> list[Call]:
    """Return the call, after one that computes its size if that is counted; none, with the reasons noted, on a mistake.

    Tensors among a node's attributes are added to `constants`.
    """
    ports = shared.interface(op)
    inputs = list(step.inputs)
    attributes: dict[str, Attribute] = {p.name: p.rounded for p in ports.attributes.values() if p.rounded is not None}
    fine = True
    for name, value in _values(shared, step).items():
        if name in ports.attributes and ports.attributes[name].untold(value):
            continue
        if name in ports.attributes and not ports.attributes[name].counter:
            try:
                attributes[ports.attributes[name].name] = fitted(ports.attributes[name], value)
            except MisfitError as error:
                shared.refused.append(step.complaint(str(error)))
                fine = False
        elif (place := _place(ports, inputs, step.attributes, name)) is not None and not _words(value):
            inputs += [None] * (place + 1 - len(inputs))
            inputs[place] = shared.values.free(f"{step.name}/{name}")
            constants[str(inputs[place])] = as_data(value)
        else:
            shared.refused.append(step.complaint(f"attribute '{name}' is not supported"))
            fine = False
    call = _checked(shared, step, op, ports, inputs, attributes) if fine else None
    return [] if call is None else _counted(shared, ports, call)


def one_at_a_time(shared: Import, step: Step, op: Op, each: str) -> list[Step]:
    """Return a node as several: `each` is the input of its op from which on the node has several tensors for each
    input.

    All tensors of the first input come before all of the second; so do its outputs.
    """
    if not each:
        return [step]
    ports = shared.interface(op)
    shared_by_all = next(at for at, port in enumerate(ports.inputs) if port.name == each)
    count, left = divmod(len(step.inputs) - shared_by_all, len(ports.inputs) - shared_by_all)
    if left or count < 1 or len(step.outputs) != count * len(ports.outputs):
        shared.malformed.append(step.complaint("its tensors are not as many for each input and output"))
        return []
    names = [step.name, *(shared.node_name(step.name) for _ in range(count - 1))]
    return [
        replace(
            step,
            name=name,
            inputs=step.inputs[:shared_by_all] + step.inputs[shared_by_all + at :: count],
            outputs=step.outputs[at::count],
        )
        for at, name in enumerate(names)
    ]


def _counted(shared: Import, ports: Interface, call: Call) -> list[Call]:
    """Return a call, behind the one that works out its size, if there is one."""
    own = next((p for p in ports.attributes.values() if p.counter), None)
    if own is None:
        return [call]
    number = shared.values.free(f"{call.name}/{own.name}")
    counter = shared.module.named(own.counter)
    known = {p.name for p in shared.interface(counter).attributes.values()}
    attributes = {name: value for name, value in call.attributes.items() if name in known}
    name = shared.node_name(f"{call.name}/{own.name}")
    count = replace(call, name=name, op=own.counter, outputs=(number,), attributes=attributes)
    return [count, replace(call, counted=((own.name, number),))]


def _values(shared: Import, step: Step) -> dict[str, Attribute]:
    """Return the values of a node's attributes; mistakes in them are noted."""
    found: dict[str, Attribute] = {}
    for name, attribute in step.attributes.items():
        try:
            found[name] = value_of(attribute, shared.folder)
        except AttributeMalformedError as error:
            shared.malformed.append(step.complaint(str(error)))
        except AttributeRefusedError as error:
            shared.refused.append(step.complaint(str(error)))
    return found


def _place(ports: Interface, inputs: list[str | None], attributes: Mapping[str, Any], name: str) -> int | None:
    """Return the place of the input that a node gives as an attribute.

    It is that of its name; or the only one, if the node has no inputs and no other attribute.
    """
    if not inputs and len(ports.inputs) == len(attributes) == 1:
        return 0
    place = next((at for at, port in enumerate(ports.inputs) if port.name == name), None)
    return None if place is None or (place < len(inputs) and inputs[place] is not None) else place


def _words(value: Attribute) -> bool:
    """Return True if a value is text, which tensors cannot hold."""
    return isinstance(value, str) or (isinstance(value, tuple) and any(isinstance(each, str) for each in value))


def as_data(value: Attribute) -> Data:
    """Return the tensor form of an attribute: numbers are float32 and int64, as in ONNX."""
    if isinstance(value, Data):
        return value
    first = value[0] if isinstance(value, tuple) and value else value
    return Data(np.array(value, np.float32 if isinstance(first, float) else np.int64))


def _checked(
    shared: Import,
    step: Step,
    op: Op,
    ports: Interface,
    inputs: list[str | None],
    attributes: dict[str, Attribute],
) -> Call | None:
    """Return the call, if there are as many inputs and outputs as the op can have and no attribute is missing."""
    while inputs and inputs[-1] is None:
        inputs.pop()
    mistakes = [
        port_mistake(ports.inputs, inputs, "input"),
        port_mistake(ports.outputs, step.outputs, "output"),
        *(
            f"attribute '{name}' is missing"
            for name, attr in ports.attributes.items()
            if attr.required and attr.name not in attributes
        ),
    ]
    found = [step.complaint(mistake) for mistake in mistakes if mistake]
    shared.refused += found
    if found:
        return None
    origin = f"{shared.source}, node '{step.name}' ({step.operator})"
    return Call(step.name, shared.module, op.name, tuple(inputs), step.outputs, attributes, origin)
