"""A built C library called from Python by ctypes: its structs, and as much of a call as the benchmark of it needs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

import numpy as np

from opgen.bindings.c.header import header_view
from opgen.bindings.c.interface import MESSAGE_SIZE
from opgen.bindings.c.names import STRUCT_SIZE, OpNames, spellings
from opgen.diagnostics import UserError
from opgen.dtypes import DLPACK_CODES, DTYPES
from opgen.spec.model.model import Module, OpSpec

_KINDS: dict[str, Any] = {"int": c_int64, "float": c_double, "bool": c_int64}


class Tensor(Structure):
    """The library's tensor, which is DLPack's."""

    _fields_ = (
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
        ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )  # fmt: skip

    @classmethod
    def of(cls, array: np.ndarray) -> Tensor:
        """Return a descriptor of an array, which the caller keeps alive."""
        return cls.without_data(array.shape, array.dtype, array.ctypes.data)

    @classmethod
    def without_data(cls, shape: Sequence[int], dtype: np.dtype, data: int | None = None) -> Tensor:
        """Return a descriptor of a shape and a type, for uses that need no more of a tensor."""
        of = DTYPES[dtype.name]
        dims = (c_int64 * max(1, len(shape)))(*shape)
        return cls(data, 1, 0, len(shape), DLPACK_CODES[of.kind_code], of.digits, 1, dims, None, 0)


def attributes_struct(op: OpSpec, names: OpNames) -> type[Structure]:
    """Return the struct of an op's attributes."""
    fields: list[tuple[str, Any]] = [(STRUCT_SIZE, c_size_t)] if op.attrs else []
    for attr in op.attrs:
        for name in spellings(attr):
            kind = _KINDS.get(attr.kind, c_char_p)
            fields.append((names.fields[name], POINTER(kind) if attr.shape else kind))
            fields += [(names.lengths[name], c_int64)] if name in names.lengths else []
    return type("Attributes", (Structure,), {"_fields_": fields})


def attributes_begun(dll: ctypes.CDLL, op: OpSpec, names: OpNames) -> Structure:
    """Return the struct of an op's attributes, each at its default."""
    found = attributes_struct(op, names)()
    if op.attrs:
        getattr(dll, names.attrs_init)(ctypes.byref(found), c_size_t(ctypes.sizeof(found)))
    return found


def opened(module: Module, folder: Path, prefix: str) -> ctypes.CDLL:
    """Return the library of a module in a folder.  Raises UserError with its message if it is of another layout."""
    dll = ctypes.CDLL(str(folder / "lib" / f"lib{prefix}.so"))
    interface = header_view(module, prefix, "").interface
    message = ctypes.create_string_buffer(MESSAGE_SIZE)
    if getattr(dll, f"{prefix}_require_abi")(c_uint64(interface.number), message, c_size_t(MESSAGE_SIZE)) != 0:
        raise UserError(message.value.decode())
    return dll


class Library:
    """A library of a module in a folder that `opgen build` wrote; `prefix` begins its names."""

    def __init__(self, module: Module, folder: Path, prefix: str) -> None:
        self.prefix = prefix
        self._dll = opened(module, folder, prefix)
        getattr(self._dll, f"{prefix}_last_error").restype = c_char_p
        getattr(self._dll, f"{prefix}_cpu_level").restype = c_char_p

    def set_threads(self, count: int) -> None:
        getattr(self._dll, f"{self.prefix}_set_num_threads")(c_int32(count))

    @property
    def level(self) -> str:
        """Return the level of the CPU whose kernels run."""
        return str(getattr(self._dll, f"{self.prefix}_cpu_level")().decode())

    def call(
        self, op: OpSpec, inputs: Sequence[np.ndarray], attrs: Mapping[str, Sequence[int] | str], output: np.ndarray
    ) -> Callable[[], None]:
        """Return a call ready to be repeated; it raises RuntimeError with the library's message if it fails."""
        names = OpNames(op, self.prefix)
        given = self._attributes(op, names, attrs)
        tensors = [Tensor.of(a) for a in (*inputs, output)]
        *read, written = [ctypes.byref(t) for t in tensors]
        function, arguments = getattr(self._dll, names.function), (*read, ctypes.byref(given), written)

        def run(kept: object = (tensors, given, inputs, output)) -> None:
            if function(*arguments) != 0:
                raise RuntimeError(getattr(self._dll, f"{self.prefix}_last_error")().decode())

        return run

    def _attributes(self, op: OpSpec, names: OpNames, given: Mapping[str, Sequence[int] | str]) -> Structure:
        found = attributes_begun(self._dll, op, names)
        for name, value in given.items():
            if isinstance(value, str):
                setattr(found, names.fields[name], value.encode())
                setattr(found, names.lengths[name], len(value.encode()))
            else:
                setattr(found, names.fields[name], (c_int64 * len(value))(*value))
                setattr(found, names.lengths[name], len(value))
        return found
