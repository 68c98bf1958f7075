"""Built C libraries for the tests, and calls of them by ctypes."""

from __future__ import annotations

import ctypes
import functools
import tempfile
from collections.abc import Mapping, Sequence
from ctypes import (
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_void_p,
)
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401  (registers bfloat16 with numpy)
import numpy as np
from llvmlite.binding import get_host_cpu_features

from opgen.bindings.c.build import Options, build, host_targets
from opgen.bindings.c.kernels import X86_LEVELS
from opgen.bindings.c.names import OpNames, spellings
from opgen.spec.model.model import Module, OpSpec, Sizes
from tests.bindings.modules import spec
from tools.c_library import Tensor, attributes_begun, opened

OK, INVALID, OUT_OF_MEMORY = 0, 1, 2


class Shape(Structure):
    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16), ("ndim", c_int32), ("dims", c_int64 * 8))


def tensor(shape: Sequence[int], dtype: str = "float32", array: np.ndarray | None = None) -> Tensor:
    """A descriptor; without an array it has no data."""
    found = Tensor.without_data(shape, np.dtype(dtype), None if array is None else array.ctypes.data)
    found.keep = array
    return found


def of(array: np.ndarray) -> Tensor:
    return tensor(array.shape, str(array.dtype), array)


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="opgen-c-tests-")


NEEDED = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"},
}
"""What a CPU of a level has beyond those below it."""


def own_level() -> tuple[str, ...]:
    """The level of this machine's CPU, whose kernels run here (those of the lowest are always built)."""
    if host_targets()[0] not in X86_LEVELS:
        return host_targets()
    has = {name for name, there in get_host_cpu_features().items() if there}
    return next(((level,) for level, needed in NEEDED.items() if needed <= has), (X86_LEVELS[0],))


@functools.cache
def built(
    path: Path, prefix: str | None = None, ops: tuple[str, ...] | None = None, targets: tuple[str, ...] | None = None
) -> Path:
    """The folder of a library, built once for all tests of the process (and out of the cache after the first time).

    Its kernels are for the lowest level of CPUs, if no targets are given: those of this machine's are run from Python.
    They are for this machine's if a spec declares kernels for some calls, which lower levels do not get.
    """
    large = ops is None and any(op.specializations for op in spec(path).ops)
    if targets is None:
        targets = own_level() if large else host_targets()[:1]
    name = f"{path.stem}-{prefix}-{len(ops or ())}-{'-'.join(targets)}"
    folder = Path(_folder().name) / name
    options = Options(prefix=prefix, ops=ops, targets=targets)
    build(spec(path), path.name, folder, options if large else replace(options, jobs=1))
    return folder


class Library:
    """A loaded library; `call` and `shape` give (status, message or results)."""

    def __init__(self, module: Module, folder: Path, prefix: str | None = None) -> None:
        self.module = module
        self.prefix = prefix or module.name
        self.dll = opened(module, folder, self.prefix)
        self.function(f"{self.prefix}_last_error").restype = c_char_p

    def function(self, name: str) -> Any:
        return getattr(self.dll, name)

    def error(self) -> str:
        return self.function(f"{self.prefix}_last_error")().decode("utf-8", "replace")

    def attrs(self, op: OpSpec, given: Mapping[str, Any]) -> Structure:
        """The struct of attributes with what is given set."""
        names = OpNames(op, self.prefix)
        found = attributes_begun(self.dll, op, names)
        keep: list[Any] = []
        for name, value in given.items():
            attr = next(a for a in op.attrs if name in spellings(a))
            if isinstance(value, list | tuple) and attr.payload is not None:
                attr, name = op.attr(attr.payload[1]), attr.payload[1]
            if attr.shape:
                flat = [v for item in value for v in (item if isinstance(item, list | tuple) else [item])]
                kind = c_double if attr.kind == "float" else c_int64
                array = (kind * max(1, len(flat)))(*flat)
                keep.append(array)
                setattr(found, names.fields[name], ctypes.cast(array, POINTER(kind)))
                setattr(found, names.lengths[name], len(flat))
            else:
                setattr(found, names.fields[name], value.encode() if isinstance(value, str) else value)
        found.keep = keep
        return found

    def shape(self, op: OpSpec, inputs: Sequence[Tensor | None], given: Mapping[str, Any]) -> str:
        """The results' shapes by name as text, or the message."""
        shapes = [Shape() for _ in op.outputs]
        attrs = self.attrs(op, given)
        arguments = [*(None if i is None else byref(i) for i in inputs), byref(attrs), *map(byref, shapes)]
        if self.function(OpNames(op, self.prefix).shape)(*arguments) != OK:
            return self.error()
        return str({o.name: tuple(s.dims[: s.ndim]) for o, s in zip(op.outputs, shapes, strict=True)})

    def run(
        self,
        op: OpSpec,
        inputs: Sequence[Tensor | None],
        given: Mapping[str, Any],
        outputs: Sequence[Tensor | None],
        workspace: np.ndarray | None = None,
    ) -> int:
        """The status."""
        names = OpNames(op, self.prefix)
        attrs = self.attrs(op, given)
        arguments: list[Any] = [None if i is None else byref(i) for i in inputs]
        arguments += [byref(attrs), *(None if o is None else byref(o) for o in outputs)]
        if workspace is None:
            return int(self.function(names.function)(*arguments))
        place = c_void_p(workspace.ctypes.data), c_size_t(workspace.size)
        return int(self.function(names.with_workspace)(*arguments, *place))

    def workspace(self, op: OpSpec, inputs: Sequence[Tensor], given: Mapping[str, Any]) -> int:
        size = c_size_t()
        attrs = self.attrs(op, given)
        name = OpNames(op, self.prefix).workspace
        assert self.function(name)(*map(byref, inputs), byref(attrs), byref(size)) == OK, self.error()
        return size.value


def inputs_of(op: OpSpec, shapes: Mapping[str, Sequence[int]], sizes: Mapping[str, Sequence[int]]) -> list[Tensor]:
    """Descriptors without data, but for vectors of sizes."""
    return [
        of(np.array(sizes[i.name], np.int64)) if isinstance(i, Sizes) else tensor(shapes[i.name]) for i in op.inputs
    ]
