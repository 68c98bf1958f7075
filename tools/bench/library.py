"""A built C library called from Python: just what its benchmark needs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, Structure, c_bool, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from pathlib import Path

import numpy as np

from opgen.bindings.c.names import OpNames, spellings
from opgen.spec.model import OpSpec

_KINDS: dict[str, type[ctypes._SimpleCData[object]]] = {"int": c_int64, "float": ctypes.c_double, "bool": c_bool}  # type: ignore[dict-item]


class Tensor(Structure):
    """The library's tensor, which is DLPack's."""

    _fields_ = (
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32), ("code", c_uint8),
        ("bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )  # fmt: skip

    @staticmethod
    def of(array: np.ndarray) -> Tensor:
        """A descriptor of an array of float32, or of int64 for sizes, which the caller keeps alive."""
        code = 2 if array.dtype.kind == "f" else 0
        dims = (c_int64 * max(1, array.ndim))(*array.shape)
        return Tensor(array.ctypes.data, 1, 0, array.ndim, code, array.dtype.itemsize * 8, 1, dims, None, 0)


class Library:
    """A library in a folder that `opgen build` wrote; `prefix` begins its names."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.prefix = prefix
        self._dll = ctypes.CDLL(str(folder / "lib" / f"lib{prefix}.so"))
        getattr(self._dll, f"{prefix}_last_error").restype = c_char_p
        getattr(self._dll, f"{prefix}_cpu_level").restype = c_char_p

    def set_threads(self, count: int) -> None:
        getattr(self._dll, f"{self.prefix}_set_num_threads")(c_int32(count))

    @property
    def level(self) -> str:
        """The level of the CPU whose kernels run."""
        return str(getattr(self._dll, f"{self.prefix}_cpu_level")().decode())

    def call(
        self, op: OpSpec, inputs: Sequence[np.ndarray], attrs: Mapping[str, Sequence[int] | str], output: np.ndarray
    ) -> Callable[[], None]:
        """A call ready to be made again and again; it raises RuntimeError with the library's message if it fails."""
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
        fields: list[tuple[str, object]] = []
        for attr in op.attrs:
            for name in spellings(attr):
                kind = _KINDS.get(attr.kind, c_char_p)
                fields.append((names.fields[name], POINTER(kind) if attr.shape else kind))
                fields += [(names.lengths[name], c_int32)] if attr.shape else []
        found: Structure = type("Attributes", (Structure,), {"_fields_": fields})()
        getattr(self._dll, names.attrs_default)(ctypes.byref(found))
        for name, value in given.items():
            if isinstance(value, str):
                setattr(found, names.fields[name], value.encode())
            else:
                setattr(found, names.fields[name], (c_int64 * len(value))(*value))
                setattr(found, names.lengths[name], len(value))
        return found
