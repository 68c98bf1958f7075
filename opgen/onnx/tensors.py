"""Conversion of a model's tensors to arrays: their claims are compared with the data before any allocation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from opgen.diagnostics import brief
from opgen.dtypes import DType, lookup
from opgen.graph.ir.nodes import Array
from opgen.onnx.external import ExternalDataError, Folder, mapped
from opgen.onnx.package import onnx

_RANK = 32
"""The most dimensions of a tensor (`opgen.spec.syntax.limits` has the same for specs)."""


class TensorError(Exception):
    """A tensor that is none; the text is the reason, without the tensor's name."""


class TensorRefusedError(Exception):
    """A tensor of a kind that is not supported; the text is the reason."""


def scalar_type(code: int) -> DType:
    """Return the scalar type of ONNX's number.  Raises TensorRefusedError, and TensorError for an unknown number."""
    known = onnx().TensorProto.DataType
    if code not in known.values() or code == 0:
        raise TensorError(f"{code} is no scalar type")
    found = lookup(onnx().helper.tensor_dtype_to_np_dtype(code).name)
    if found is None:
        raise TensorRefusedError(f"the scalar type {known.Name(code).lower()} is not supported")
    return found


def array(tensor: Any, folder: Folder | None) -> Array:
    """Return the elements of a `TensorProto`.  Raises TensorError and TensorRefusedError."""
    dtype = scalar_type(tensor.data_type)
    shape = tuple(tensor.dims)
    if len(shape) > _RANK or any(size < 0 for size in shape):
        raise TensorError(f"{brief(str(list(shape)))} is not a shape")
    if 0 in shape and math.prod(filter(None, shape)) * dtype.bytes >= 1 << 63:  # numpy makes no such array
        raise TensorError(f"{list(shape)} is not a shape of an array: its sizes are too large")
    if tensor.HasField("segment"):
        raise TensorRefusedError("tensors in segments are not supported")
    count = math.prod(shape)
    kind = onnx().helper.tensor_dtype_to_np_dtype(tensor.data_type).newbyteorder("<")
    if dtype.width:
        stored = _found(tensor, folder, np.dtype(np.uint8), -(-count * dtype.width // 8))
        apart: Array = _unpacked(stored, dtype.width, count).view(kind)
        return apart.reshape(shape)
    native = _found(tensor, folder, kind, count).astype(kind.newbyteorder("="), copy=False)
    return _decided(native, dtype).reshape(shape)


def _found(tensor: Any, folder: Folder | None, kind: np.dtype[Any], count: int) -> Array:
    """Return the contents of a tensor, as they are stored."""
    if tensor.data_location == onnx().TensorProto.EXTERNAL:
        return _external(tensor, folder, kind, count)
    if tensor.HasField("raw_data"):
        return _raw(tensor.raw_data, kind, count)
    return _listed(tensor, kind, count)


def _unpacked(stored: Array, width: int, count: int) -> Array:
    """Unpack elements of fewer than 8 bits into a byte each; stored bytes have the first in the lowest bits."""
    apart = stored.reshape(-1, 1).view(np.uint8) >> np.arange(0, 8, width, dtype=np.uint8)
    elements: Array = (apart & np.uint8((1 << width) - 1)).reshape(-1)
    return elements[:count]


def _decided(found: Array, dtype: DType) -> Array:
    """Return the elements; of a bool each is 0 or 1."""
    return found.view(np.uint8) != 0 if dtype.kind == "bool" else found


def _external(tensor: Any, folder: Folder | None, kind: np.dtype[Any], count: int) -> Array:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    try:
        return np.frombuffer(mapped(folder, entries, count * kind.itemsize), kind)
    except ExternalDataError as error:
        raise TensorError(str(error)) from error


def _raw(data: bytes, kind: np.dtype[Any], count: int) -> Array:
    if len(data) != count * kind.itemsize:
        raise TensorError(f"it holds {len(data)} bytes, and its shape needs {count * kind.itemsize}")
    return np.frombuffer(data, kind)


def _listed(tensor: Any, kind: np.dtype[Any], count: int) -> Array:
    """Return elements that are given as numbers; those of at most 16 bits are their bits."""
    numbers = getattr(tensor, onnx().helper.tensor_dtype_to_field(tensor.data_type))
    if len(numbers) != count:
        raise TensorError(f"it holds {len(numbers)} elements, and its shape needs {count}")
    if kind.kind in "iub":  # several elements of fewer than 8 bits stand as one number
        wide = np.array(numbers, np.uint64 if kind == np.uint64 else np.int64)
        return wide.astype(kind)
    if kind.itemsize <= 2:
        return np.array(numbers, np.int64).astype(f"<u{kind.itemsize}").view(kind)
    return np.array(numbers, kind)
