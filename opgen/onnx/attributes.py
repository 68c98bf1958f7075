"""Attributes of nodes, in their message form, and as values."""

from __future__ import annotations

from typing import Any, cast

from opgen.graph.build.model import Attribute
from opgen.graph.ir.nodes import Data
from opgen.onnx.external import Folder
from opgen.onnx.package import onnx
from opgen.onnx.tensors import TensorError, TensorRefusedError, array

_FIELDS = {
    "FLOAT": "f",
    "INT": "i",
    "STRING": "s",
    "TENSOR": "t",
    "GRAPH": "g",
    "FLOATS": "floats",
    "INTS": "ints",
    "STRINGS": "strings",
}
"""The field of a message that holds the value of an attribute of a type."""


class AttributeMalformedError(Exception):
    """An attribute that is none; the text is the reason."""


class AttributeRefusedError(Exception):
    """An attribute of a kind that is not supported; the text is the reason."""


def kind_of(attribute: Any) -> str:
    """Return the word for an attribute's type.  Raises AttributeMalformedError."""
    kinds = onnx().AttributeProto.AttributeType
    if attribute.type not in kinds.values() or attribute.type == 0:
        raise AttributeMalformedError(f"attribute '{attribute.name}' has no type")
    return str(kinds.Name(attribute.type))


def value_of(attribute: Any, folder: Folder | None) -> Attribute:
    """Return an attribute's value, not a graph.  Raises AttributeMalformedError and AttributeRefusedError."""
    kind = kind_of(attribute)
    if kind not in _FIELDS or kind == "GRAPH":
        raise AttributeRefusedError(f"attribute '{attribute.name}' is of kind {kind.lower()}, which is not supported")
    value = getattr(attribute, _FIELDS[kind])
    try:
        if kind == "TENSOR":
            return Data(array(value, folder))
        if kind == "STRING":
            return _text(value)
        if kind == "STRINGS":
            return tuple(_text(each) for each in value)
        return cast(Attribute, tuple(value) if kind in ("FLOATS", "INTS") else value)
    except (TensorError, UnicodeDecodeError) as error:
        raise AttributeMalformedError(f"attribute '{attribute.name}': {error}") from error
    except TensorRefusedError as error:
        raise AttributeRefusedError(f"attribute '{attribute.name}': {error}") from error


def _text(value: bytes) -> str:
    return value.decode("utf-8")
