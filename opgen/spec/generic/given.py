"""Matching of a call's arguments with the inputs of a generic op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from opgen.dtypes import FLOAT32, lookup
from opgen.spec.call.arguments import AttrArgument, CallError, CallTypeError
from opgen.spec.generic.attributes import given_for
from opgen.spec.generic.form import Argument
from opgen.spec.model.model import GenericOp
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.strings import plural

Known: TypeAlias = "tuple[int, ...] | tuple[float, ...] | float"
"""The values of a static input: numbers, or one."""


@dataclass(frozen=True)
class Tensors:
    """The arguments that a call gives for an input, and their positions."""

    arguments: tuple[Argument, ...]
    positions: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """A call of a generic op: inputs and attributes by name, and the number of outputs."""

    op: GenericOp
    inputs: Mapping[str, Tensors]
    attributes: Mapping[str, AttrArgument]
    outputs: int
    values: Mapping[str, Known] = field(default_factory=dict)


def call_of(
    op: GenericOp, arguments: Sequence[Argument | None], attributes: Mapping[str, object], outputs: int | None
) -> Call:
    """Match the arguments with the inputs; raise CallError if some are missing or too many."""
    inputs: dict[str, Tensors] = {}
    values: dict[str, Known] = {}
    decls = op.inputs
    for at, decl in enumerate(decls):
        name = decl.name.name
        if isinstance(decl, s.SeveralDecl):
            rest = [(a, at + k) for k, a in enumerate(arguments[at:]) if a is not None]
            if not rest or len(rest) < len(arguments) - at:
                raise CallTypeError(op.name, name, "one tensor or more", "nothing")
            inputs[name] = Tensors(tuple(a for a, _ in rest), tuple(p for _, p in rest))
            break
        argument = arguments[at] if at < len(arguments) else None
        if argument is None:
            if isinstance(decl, s.SizesDecl) or not decl.optional:
                raise CallTypeError(op.name, name, "a tensor", "nothing")
            continue
        if isinstance(decl, s.StaticDecl):
            values[name] = _value(op, decl, argument)
        else:
            inputs[name] = Tensors((argument,), (at,))
    else:
        if len(arguments) > len(decls):
            expected = f"at most {plural(len(decls), 'tensor')}"
            last = decls[-1].name.name if decls else op.name
            raise CallTypeError(op.name, last, expected, str(len(arguments)))
    return Call(op, inputs, given_for(op, attributes), _outputs(op, outputs), values)


def _value(op: GenericOp, decl: s.StaticDecl, argument: Argument) -> Known:
    name, value = decl.name.name, argument.value
    if value is None:
        raise CallError(op.name, name, "values that are known before the call runs", "a tensor that is computed")
    told = all(isinstance(i, s.StaticDecl) for i in op.inputs) and not any(a.type.kind.name == "type" for a in op.attrs)
    if argument.dtype != decl.dtype.name and told:
        # Nothing else determines the results' type: they have the declared type only if this argument has it.
        raise CallTypeError(op.name, name, f"a tensor of type {decl.dtype.name}", f"type {argument.dtype}")
    if decl.scalar:
        values = value if isinstance(value, tuple) else (value,)
        if len(values) != 1:
            raise CallError(op.name, name, "one number", f"{len(values)}")
        return float(values[0]) if decl.dtype.name not in ("int32", "int64", "bool") else int(values[0])
    numbers = value if isinstance(value, tuple) else (value,)
    floats = decl.dtype.name not in ("int32", "int64", "bool")
    return tuple(map(float, numbers)) if floats else tuple(map(int, numbers))


def _outputs(op: GenericOp, wanted: int | None) -> int:
    """Return the number of outputs: all that are not optional, unless the call says; at least one."""
    needed = sum(1 for o in op.outputs if isinstance(o, s.SeveralDecl) or not o.optional)
    if wanted is None:
        return max(1, needed)
    most = None if any(isinstance(o, s.SeveralDecl) for o in op.outputs) else len(op.outputs)
    if wanted < 1 or (most is not None and wanted > most):
        raise CallError(op.name, "outputs", _counted(most), str(wanted))
    return max(wanted, needed)


def _counted(most: int | None) -> str:
    return "at least 1 result" if most is None else "1 result" if most == 1 else f"1 to {most} results"


def type_of(op: GenericOp, call: Call, decl: s.TypeDecl) -> str | None:
    """Return the type that a call binds a type variable to; raise CallTypeError if it is not allowed."""
    allowed = [t.name for t in (lookup(i.name) for i in decl.allowed) if t is not None]
    first: str | None = None
    for tensor in op.inputs:
        if isinstance(tensor, s.SizesDecl | s.StaticDecl) or tensor.dtype.name != decl.name.name:
            continue
        for argument in call.inputs[tensor.name.name].arguments if tensor.name.name in call.inputs else ():
            if argument.dtype not in allowed:
                expected = f"a tensor of type {' or '.join(allowed)}"
                raise CallTypeError(op.name, tensor.name.name, expected, f"type {argument.dtype}")
            if first is not None and argument.dtype != first:
                raise CallTypeError(op.name, tensor.name.name, f"a tensor of type {first}", f"type {argument.dtype}")
            first = argument.dtype
    return first


def type_untold(op: GenericOp, call: Call, decl: s.TypeDecl) -> str | None:
    """Return the type of a type variable that no argument determines; None unless an optional input has it.

    It is the type of the first determined variable if that is allowed, else float32, else the first allowed type.
    """
    inputs = [i for i in op.inputs if isinstance(i, s.TensorDecl) and i.dtype.name == decl.name.name]
    allowed = [t.name for t in (lookup(i.name) for i in decl.allowed) if t is not None]
    if not allowed or not any(i.optional for i in inputs):
        return None
    others = (type_of(op, call, i) for i in op.decl.items if isinstance(i, s.TypeDecl) and i is not decl)
    told = next((t for t in others if t is not None), FLOAT32.name)
    return next((t for t in (told, FLOAT32.name) if t in allowed), allowed[0])
