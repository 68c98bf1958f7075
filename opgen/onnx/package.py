"""The package `onnx`, which opgen needs only where a model is read: an extra, imported when it is first used."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from opgen.onnx.errors import PackageMissingError

OLDEST = 7
"""The oldest opset that is read: the first with numpy's broadcasting."""


@cache
def onnx() -> Any:
    """Return the package.  Raises PackageMissingError."""
    try:
        for part in ("onnx.defs", "onnx.helper", "onnx.shape_inference"):
            import_module(part)
        return import_module("onnx")
    except ImportError as error:
        raise PackageMissingError from error


@cache
def parse_error() -> type[Exception]:
    """Return the error of bytes that are not a message.  Raises PackageMissingError."""
    try:
        found: type[Exception] = import_module("google.protobuf.message").DecodeError
    except ImportError as error:
        raise PackageMissingError from error
    return found


def newest() -> int:
    """Return the newest opset that the package knows."""
    return int(onnx().defs.onnx_opset_version())
