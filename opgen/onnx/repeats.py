"""Nodes that run a graph again and again: counted runs, by a number and a condition, and runs over slices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opgen.graph.build.model import Along, Model, Repeat
from opgen.onnx.attributes import AttributeMalformedError, AttributeRefusedError, value_of
from opgen.onnx.functions import schema_of, takes_sequences
from opgen.onnx.package import onnx
from opgen.onnx.scope import Import, Step

BODY = "body"
"""The attribute that is the graph."""

_SLICED = "num_scan_inputs"
"""The attribute with the number of inputs that are split."""

_BATCHED = 8
"""The version in which runs over slices have a batch: all is done for each of its elements, and an input comes first
that says how long each is.
"""


class _MisfitError(Exception):
    """The reason why a node does not fit its graph."""


def is_repeat(step: Step, version: int, of: str) -> bool:
    """Return True if a node runs a graph again and again, for tensors, not for the elements of a sequence."""
    found = step.attributes.get(BODY)
    if found is None or found.type != onnx().AttributeProto.GRAPH:
        return False
    schema = schema_of(step.node.op_type, version, of)
    return schema is not None and not takes_sequences(schema)


def repeat_of(shared: Import, step: Step, body: Model, given: tuple[str, ...], version: int) -> Repeat | None:
    """Return a node as a step of a model; None with the reason noted.  `given` are the names of the body's inputs."""
    try:
        if _SLICED not in step.attributes:
            return _counted(shared, step, body, given)
        found = _sliced(shared, step, body, given, version)
        return found if version > _BATCHED else _for_each(shared, found)
    except _MisfitError as error:
        shared.malformed.append(step.complaint(str(error)))
    except AttributeMalformedError as error:
        shared.malformed.append(step.complaint(str(error)))
    except AttributeRefusedError as error:
        shared.refused.append(step.complaint(str(error)))
    return None


def _counted(shared: Import, step: Step, body: Model, given: tuple[str, ...]) -> Repeat:
    """Return runs with a number and a condition; their results are concatenated along a first axis."""
    most, condition, *states = [*step.inputs, None, None][: max(2, len(step.inputs))]
    joined = len(body.outputs) - 1 - len(states)
    if len(given) != 2 + len(states) or joined < 0:
        raise _MisfitError(
            f"its graph has {len(given)} inputs and {len(body.outputs)} outputs, of {len(states)} states"
        )
    made = Repeat(step.name, body, given, True, most, condition, _there(states), (), (Along(),) * joined, ())
    return _made(shared, step, made)


def _sliced(shared: Import, step: Step, body: Model, given: tuple[str, ...], version: int) -> Repeat:
    """Return runs over slices."""
    batched = version <= _BATCHED
    inputs = step.inputs[1:] if batched else step.inputs
    if batched and step.inputs[0] is not None:
        shared.refused.append(step.complaint("lengths of its sequences are not supported"))
    count = value_of(step.attributes[_SLICED], shared.folder)
    if not isinstance(count, int) or not 1 <= count <= len(inputs):
        raise _MisfitError(f"attribute '{_SLICED}' is {count!r}, of {len(inputs)} inputs")
    states, slices = _there(inputs[: len(inputs) - count]), _there(inputs[len(inputs) - count :])
    joined = len(body.outputs) - len(states)
    if len(given) != len(inputs) or joined < 0:
        raise _MisfitError(
            f"its graph has {len(given)} inputs and {len(body.outputs)} outputs, of {len(states)} states"
        )
    directions = "directions" if batched else "scan_input_directions"
    taken = _along(shared, step, count, "scan_input_axes", directions)
    put = _along(shared, step, joined, "scan_output_axes", "scan_output_directions")
    sliced = tuple(zip(slices, taken, strict=True))
    return _made(shared, step, Repeat(step.name, body, given, False, None, None, states, sliced, put, ()))


def _made(shared: Import, step: Step, found: Repeat) -> Repeat:
    if len(step.outputs) > len(found.states) + len(found.joined):
        raise _MisfitError(f"it has {len(step.outputs)} results, its graph {len(found.states) + len(found.joined)}")
    outputs = (*step.outputs, *[None] * (len(found.states) + len(found.joined) - len(step.outputs)))
    return replace(found, outputs=outputs, origin=f"{shared.source}, node '{step.name}' ({step.operator})")


def _for_each(shared: Import, one: Repeat) -> Repeat:
    """Return the same for each element of a batch, which is the first axis of all that it takes and gives."""
    outside = (*one.states, *(name for name, _ in one.sliced))
    given = tuple(shared.values.free(f"{one.name}/{name}") for name in outside)
    results = tuple(shared.values.free(f"{one.name}/result") for _ in one.outputs)
    states, slices = given[: len(one.states)], given[len(one.states) :]
    sliced = tuple((name, along) for name, (_, along) in zip(slices, one.sliced, strict=True))
    inner = replace(one, states=states, sliced=sliced, outputs=results)
    body = Model(one.name, (), {}, (inner,), results, outer=one.body.outer)
    each = tuple((name, Along()) for name in outside)
    joined = (Along(),) * len(results)
    return Repeat(one.name, body, given, False, None, None, (), each, joined, one.outputs, one.origin)


def _there(names: Sequence[str | None]) -> tuple[str, ...]:
    found = tuple(name for name in names if name is not None)
    if len(found) < len(names):
        raise _MisfitError("an input is missing")
    return found


def _along(shared: Import, step: Step, count: int, axes: str, directions: str) -> tuple[Along, ...]:
    """Return the axes and directions along which tensors are split or concatenated."""
    found = [_numbers(shared, step, count, name) for name in (axes, directions)]
    if any(way not in (0, 1) for way in found[1]):
        raise _MisfitError(f"attribute '{directions}' is {found[1]}; each is 0 or 1")
    return tuple(Along(axis, way == 1) for axis, way in zip(*found, strict=True))


def _numbers(shared: Import, step: Step, count: int, name: str) -> list[int]:
    """Return an attribute that is a number for each tensor; 0 if it is absent."""
    if name not in step.attributes:
        return [0] * count
    value = value_of(step.attributes[name], shared.folder)
    found = [v for v in value if isinstance(v, int)] if isinstance(value, tuple) else []
    if len(found) != count:
        raise _MisfitError(f"attribute '{name}' is {value!r}, for {count} tensors")
    return found


def given_types(
    known: Mapping[str, Any], step: Step, graph: Any, given: Mapping[str, str], version: int
) -> Iterator[tuple[str, Any]]:
    """Yield the types of each run's inputs, as the graph declares them, or as those of their sources."""
    outside = step.inputs[1:] if _SLICED in step.attributes and version <= _BATCHED else step.inputs
    for declared, name in zip(graph.input, outside, strict=False):
        if declared.type.tensor_type.elem_type:
            yield given.get(declared.name, ""), declared.type
        elif name is not None and name in known:
            yield given.get(declared.name, ""), _scalar(known[name])


def result_types(known: Mapping[str, Any], step: Step, body: Model, found: Repeat) -> Iterator[tuple[str, Any]]:
    """Yield the scalar types of the results of all runs."""
    made = body.outputs[1:] if found.counted else body.outputs
    for outside, inside in zip(found.outputs, made, strict=True):
        if outside is not None and inside in known:
            yield outside, _scalar(known[inside])


def _scalar(kind: Any) -> Any:
    """Return the type of a tensor without its shape."""
    made = onnx().TypeProto()
    made.tensor_type.elem_type = kind.tensor_type.elem_type
    return made
