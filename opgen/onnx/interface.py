"""What a spec says that its op takes, for matching a node with it: by name, before any rank or type is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from opgen.graph.model import Attribute
from opgen.spec.model import Attr, Module, OpSpec


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output; `several`: it stands for any number of tensors, one at least."""

    name: str
    optional: bool = False
    several: bool = False


@dataclass(frozen=True, slots=True)
class Interface:
    """The inputs and outputs of an op, in order, and its attributes."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    attributes: Mapping[str, Attr]


def spec_of(module: Module, domain: str, name: str, version: int) -> OpSpec | None:
    """The op of an operator of ONNX's own domain in a version of it, or None."""
    return next((op for op in module.ops if domain == "" and op.name == name), None)


class MisfitError(Exception):
    """An attribute that does not fit what the spec says of it; the text is the reason."""


def interface(op: OpSpec) -> Interface:
    """The interface of an op."""
    return Interface(
        tuple(Port(i.name) for i in op.inputs), tuple(Port(o.name) for o in op.outputs), {a.name: a for a in op.attrs}
    )


def port_mistake(ports: Sequence[Port], given: Sequence[str | None], what: str) -> str | None:
    """Why the inputs (or outputs) that a node has do not fit, or None."""
    if len(given) > len(ports) and not any(p.several for p in ports):
        return f"it has {len(given)} {what}s, of which {len(ports)} are supported"
    for at, port in enumerate(ports):
        if not port.optional and (at >= len(given) or given[at] is None) and what == "input":
            return f"{what} {at + 1} ('{port.name}') is missing"
    return None


def fitted(attr: Attr, value: Attribute) -> Attribute:
    """A value as the attribute takes it: a flag for 0 or 1, a type for its number.  Raises MisfitError."""
    if isinstance(value, tuple) != bool(attr.shape):
        raise MisfitError(f"attribute '{attr.name}' is {'a list' if isinstance(value, tuple) else 'no list'}")
    if isinstance(value, tuple):
        return cast(Attribute, tuple(_element(attr, each) for each in value))
    return _element(attr, value)


def _element(attr: Attr, value: object) -> int | float | bool | str:
    """One number or word of an attribute."""
    if attr.kind in ("enum", "layout"):
        if value not in attr.values:
            raise MisfitError(f"attribute '{attr.name}' is {value!r}; supported are {', '.join(attr.values)}")
        return str(value)
    if isinstance(value, str) or (attr.kind != "float" and not isinstance(value, int)):
        raise MisfitError(f"attribute '{attr.name}' is {value!r}, which is no {attr.kind}")
    if not isinstance(value, int | float):
        raise MisfitError(f"attribute '{attr.name}' is no number or word")
    return bool(value) if attr.kind == "bool" else float(value) if attr.kind == "float" else int(value)
