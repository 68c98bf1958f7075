"""The op that a call of a module's op is, its open ranks and optional inputs fixed by what it is called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opgen.diagnostics import did_you_mean
from opgen.dtypes import DTYPES
from opgen.graph.bound import types_of
from opgen.spec.arguments import CallError, CallTypeError, show
from opgen.spec.environment import AttrStored
from opgen.spec.model import Function, Module, OpSpec, Sizes


@dataclass(frozen=True)
class Argument:
    """A tensor that an op is called with; `value`: its integers in order, where they are known."""

    dtype: str
    shape_rank: int
    value: tuple[int, ...] | int | None = None


@dataclass(frozen=True)
class Instance:
    """An op for a call.  `inputs`: for each of its inputs, which argument it is; `attributes`: those that it has."""

    op: OpSpec
    functions: tuple[Function, ...]
    types: Mapping[str, str]
    attributes: Mapping[str, AttrStored]
    inputs: tuple[int, ...]


def instance(
    module: Module,
    name: str,
    arguments: Sequence[Argument | None],
    attributes: Mapping[str, object],
    outputs: int | None = None,
) -> Instance:
    """The op of a call.  Raises CallError for what the op does not take."""
    op = next((o for o in module.ops if o.name == name), None)
    if op is None:
        near = did_you_mean(name, [o.name for o in module.ops])
        raise CallTypeError(name, name, "an op of the module" + (f" ({near})" if near else ""), show(name))
    if len(arguments) > len(op.inputs):
        raise CallTypeError(op.name, op.name, f"{len(op.inputs)} inputs", str(len(arguments)))
    for place, entry in enumerate(op.inputs):
        if place >= len(arguments) or arguments[place] is None:
            raise CallTypeError(op.name, entry.name, "an input", "nothing")
    if outputs is not None and outputs > len(op.outputs):
        raise CallTypeError(op.name, op.name, f"{len(op.outputs)} results at most", str(outputs))
    known = [a for a in arguments if a is not None]
    kinds = [
        (DTYPES[a.dtype], (0,) * a.shape_rank)
        for a, i in zip(known, op.inputs, strict=True)
        if not isinstance(i, Sizes)
    ]
    given = {key: value for key, value in attributes.items() if isinstance(value, int | float | str | tuple)}
    strange = [key for key in attributes if key not in given]
    if strange:
        raise CallError(op.name, strange[0], "a number, a word or a list of numbers", "a tensor or a model")
    return Instance(op, module.functions, dict(types_of(op, kinds)), given, tuple(range(len(op.inputs))))


def wants_value(module: Module, name: str, place: int) -> bool:
    """Whether an op may ask for the integers of an argument, not for a tensor."""
    op = next((o for o in module.ops if o.name == name), None)
    return op is not None and place < len(op.inputs) and isinstance(op.inputs[place], Sizes)
