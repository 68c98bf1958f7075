"""Signature of a spec's op for matching a node with it: by name, before any rank or type is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np

from opgen.graph.build.model import Attribute
from opgen.onnx.tensors import TensorError, TensorRefusedError, scalar_type
from opgen.spec.model.model import GenericOp, Module, OpSpec
from opgen.spec.syntax import nodes as s

Op: TypeAlias = "OpSpec | GenericOp"


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output; `several`: it takes any number of tensors, one at least."""

    name: str
    optional: bool = False
    several: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """An attribute: its kind of value, or a list of such; `words` are those of an enumeration.

    `counter` names the op that computes the value from the same inputs: models do not give it.  `default` is that of a
    single number of kind float.
    """

    name: str
    kind: str
    listed: bool
    words: tuple[str, ...]
    required: bool
    counter: str = ""
    optional: bool = False
    default: float | None = None

    @property
    def rounded(self) -> float | None:
        """Return the default as ONNX has it, in float32, if that is another number: 1e-5 becomes 9.99999975e-6."""
        number = None if self.default is None else float(np.float32(self.default))
        return None if number == self.default else number

    def untold(self, value: object) -> bool:
        """Return True if a value means "not given": 0, which is not a type, for a type that has a default."""
        return self.kind == "type" and not self.required and value == 0


@dataclass(frozen=True, slots=True)
class Interface:
    """The inputs and outputs of an op, in order, and its attributes by the names that ONNX has for them."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    attributes: Mapping[str, Parameter]


class MisfitError(Exception):
    """An attribute that does not fit its description in the spec; the text is the reason."""


def spec_of(module: Module, domain: str, name: str, version: int) -> Op | None:
    """Return the op of an operator of a domain in a version of it, or None."""
    return module.by_version(_full(domain, name), version)


def each_of(module: Module, domain: str, name: str, version: int) -> str:
    """Return the input from which on an operator's op takes one of the node's several tensors at a time; "" if none."""
    held = module.holding(_full(domain, name), version)
    return "" if held is None else held.each


def _full(domain: str, name: str) -> str:
    """Return the specs' name of an operator: for one of ONNX's own domain, its name alone."""
    return f"{domain}.{name}" if domain else name


def interface(op: Op) -> Interface:
    """Return the interface of an op."""
    if isinstance(op, GenericOp):
        return Interface(
            tuple(_port(i) for i in op.inputs),
            tuple(_port(o) for o in op.outputs),
            {_foreign(a.name.name): _declared(a) for a in op.attrs},
        )
    return Interface(
        tuple(Port(i.name) for i in op.inputs),
        tuple(Port(o.name) for o in op.outputs),
        {
            _foreign(a.name): Parameter(
                a.name,
                a.kind,
                a.shape != (),
                a.values,
                not (a.has_default or a.optional or a.counter),
                a.counter,
                default=_number(a.default) if a.kind == "float" else None,
            )
            for a in op.attrs
        },
    )


def _port(decl: s.TensorDecl | s.SeveralDecl | s.StaticDecl | s.SizesDecl) -> Port:
    optional = isinstance(decl, s.TensorDecl | s.StaticDecl) and decl.optional
    return Port(decl.name.name, optional, isinstance(decl, s.SeveralDecl))


def _declared(decl: s.AttrDecl) -> Parameter:
    kind = decl.type.kind.name
    words = () if kind == "type" else tuple(w.name.name for w in decl.type.words)
    required = decl.default is None and not decl.counter
    optional = isinstance(decl.default, s.ListValue) and not decl.default.items
    number = float(decl.default.text) if kind == "float" and isinstance(decl.default, s.Constant) else None
    listed = decl.type.shape != ()
    return Parameter(decl.name.name, kind, listed, words, required, decl.counter, optional, _number(number))


def _number(value: object) -> float | None:
    """Return a single number as such; None for a list or a word."""
    return float(value) if isinstance(value, int | float) else None


def _foreign(name: str) -> str:
    """Return a name as it is outside specs: in specs, a name equal to a word of the language ends in an underscore."""
    return name.removesuffix("_")


def port_mistake(ports: Sequence[Port], given: Sequence[str | None], what: str) -> str | None:
    """Return the reason why a node's inputs (or outputs) do not fit, or None."""
    if len(given) > len(ports) and not any(p.several for p in ports):
        return f"it has {len(given)} {what}s, of which {len(ports)} are supported"
    for at, port in enumerate(ports):
        if not port.optional and (at >= len(given) or given[at] is None) and what == "input":
            return f"{what} {at + 1} ('{port.name}') is missing"
    return None


def fitted(parameter: Parameter, value: Attribute) -> Attribute:
    """Return a value as the attribute takes it.  Raises MisfitError.

    It is a flag for 0 or 1, a type for its number, a list of one for a number that may be absent.
    """
    if parameter.optional and not isinstance(value, tuple):
        value = (value,)  # type: ignore[assignment]
    if isinstance(value, tuple) != parameter.listed:
        is_one = "a list" if isinstance(value, tuple) else "no list"
        raise MisfitError(f"attribute '{_foreign(parameter.name)}' is {is_one}")
    if isinstance(value, tuple):
        return cast(Attribute, tuple(_element(parameter, each) for each in value))
    return _element(parameter, value)


def _element(parameter: Parameter, value: object) -> int | float | bool | str:
    """Return one number or word of an attribute."""
    name, kind = _foreign(parameter.name), parameter.kind
    if kind in ("enum", "layout"):
        words = tuple(map(_foreign, parameter.words))
        if value not in words:
            raise MisfitError(f"attribute '{name}' is {value!r}; supported are {', '.join(words)}")
        return str(value)
    if kind == "equation" and isinstance(value, str):
        return value
    if not isinstance(value, int | float) or (kind != "float" and not isinstance(value, int)):
        raise MisfitError(f"attribute '{name}' is {value!r}, which is no {kind}")
    if kind == "type":
        return _type(name, int(value))
    return bool(value) if kind == "bool" else float(value) if kind == "float" else int(value)


def _type(name: str, code: int) -> str:
    try:
        return scalar_type(code).name
    except (TensorError, TensorRefusedError) as error:
        raise MisfitError(f"attribute '{name}': {error}") from error
