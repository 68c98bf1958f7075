"""Sources of a model: a file, bytes, or a message that is in memory already."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, TypeAlias

from opgen.diagnostics import UserError
from opgen.onnx.errors import Complaint, MalformedModelError
from opgen.onnx.external import Folder
from opgen.onnx.given import Opened, opened
from opgen.onnx.package import onnx, parse_error
from opgen.onnx.text import torn_text

ModelSource: TypeAlias = "str | os.PathLike[str] | bytes | Any"
"""A path, the bytes of a model, or a `ModelProto`."""


@dataclass(frozen=True)
class Source:
    """A model as it was given; `folder` may contain its external data, None if it came from no file."""

    proto: Any
    name: str
    folder: Folder | None


def read(source: ModelSource) -> Source:
    """Return the model's message.  Raise FileRefusedError, MalformedModelError, and UserError for anything else."""
    if isinstance(source, str | os.PathLike | bytes | bytearray | memoryview):
        return parsed(opened(source))
    if isinstance(source, onnx().ModelProto):
        return Source(_checked(source, "<model>"), source.graph.name or "<model>", None)
    raise UserError(f"expected the path of a model, its bytes or a ModelProto, given {type(source).__name__}")


def parsed(given: Opened) -> Source:
    """Return the message that bytes hold.  Raises MalformedModelError, FileRefusedError."""
    return Source(_parsed(given.content(), given.name), given.name, given.folder)


def _parsed(data: bytes, name: str) -> Any:
    """Return the message that bytes hold."""
    message = onnx().ModelProto  # first of all: without the package there is no error to catch either
    try:
        proto = message.FromString(data)
    except parse_error() as error:
        raise MalformedModelError(name, [Complaint(f"it does not parse: {error}")]) from error
    return _checked(proto, name)


def _checked(proto: Any, name: str) -> Any:
    """Return the message, if it has a graph and its texts are texts."""
    torn = [f"the text of a field '{field}' is not UTF-8: {value[:40]!r}" for field, value in torn_text(proto)]
    if not proto.HasField("graph"):
        torn.append("it holds no graph")
    if torn:
        raise MalformedModelError(name, [Complaint(reason) for reason in dict.fromkeys(torn)])
    return proto
