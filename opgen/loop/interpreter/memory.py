"""Buffers that check every access: inside the bounds, and written before it is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import NoReturn

import numpy as np

from opgen.diagnostics import InternalError
from opgen.dtypes import DType
from opgen.loop.arithmetic import NUMPY, Array

Index = Sequence["int | Array"]


class Memory:
    """A dense row-major buffer of the interpreter.

    `load(i, j, ...)` and `store(value, i, j, ...)` access one element, `load_lanes` and `store_lanes` one a lane.
    Every one raises `InternalError` if an index is out of bounds or the element read was never written.
    """

    def __init__(self, name: str, dtype: DType, shape: tuple[int, ...], contents: Array | None = None) -> None:
        if any(size < 0 for size in shape):
            raise InternalError(f"buffer '{name}' has a negative size: {list(shape)}")
        self.name = name
        self.dtype = dtype
        self.shape = shape
        size = prod(shape)
        self.data: Array = _poison(dtype, size) if contents is None else contents
        self.flags = bytearray(size) if contents is None else bytearray(b"\1") * size
        self.written = np.frombuffer(self.flags, dtype=np.uint8)
        load, store = _accessors(len(shape), dtype.kind)
        self.load: Callable[..., object] = load(self)
        self.store: Callable[..., object] = store(self)

    def load_lanes(self, index: Index, lanes: int, mask: Array | None = None) -> Array:
        """Load one element a lane; 0 where the mask is off."""
        active = np.ones(lanes, dtype=np.bool_) if mask is None else mask
        offsets = self._offsets(index, active)
        if not len(self.data):
            return np.zeros(lanes, dtype=self.data.dtype)
        missing = np.logical_and(active, self.written[offsets] == 0)
        if missing.any():
            self.unwritten(int(offsets[missing.argmax()]))
        return np.where(active, self.data[offsets], np.zeros((), dtype=self.data.dtype))

    def store_lanes(self, value: Array, index: Index, lanes: int, mask: Array | None = None) -> None:
        """Store one element a lane, in lane order; none where the mask is off."""
        active = np.ones(lanes, dtype=np.bool_) if mask is None else mask
        offsets = self._offsets(index, active)[active]
        self.data[offsets] = value[active]
        self.written[offsets] = 1

    def _offsets(self, index: Index, active: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """Return the row-major offset of every lane, 0 where the lane is off."""
        offsets = np.zeros(len(active), dtype=np.int64)
        for i, size in zip(index, self.shape, strict=True):
            outside = np.logical_and(active, np.less(i, 0) | np.greater_equal(i, size))
            if outside.any():
                lane = int(outside.argmax())
                self.out_of_bounds(tuple(int(np.broadcast_to(j, len(active))[lane]) for j in index))
            offsets = offsets * size + np.asarray(i, dtype=np.int64)
        return np.where(active, offsets, 0)

    def out_of_bounds(self, index: tuple[int, ...]) -> NoReturn:
        raise InternalError(f"index {list(index)} of buffer '{self.name}' is outside its shape {list(self.shape)}")

    def unwritten(self, offset: int) -> NoReturn:
        index = [int(i) for i in np.unravel_index(offset, self.shape)] if self.shape else []
        raise InternalError(f"element {index} of buffer '{self.name}' is read before it is written")

    def array(self) -> Array:
        return self.data.reshape(self.shape)


def _poison(dtype: DType, size: int) -> Array:
    """Return contents that no one should see: NaNs, or integers with all bits set."""
    kind = NUMPY[dtype.name]
    if dtype.kind == "bool":
        return np.ones(size, dtype=kind)
    return np.full(size * kind.itemsize, 0xFF, dtype=np.uint8).view(kind)


@cache
def _accessors(rank: int, kind: str) -> tuple[Callable[[Memory], Callable[..., object]], ...]:
    """Makers of the two scalar accessors, written out for a rank: they are most of the interpreter's time."""
    names = [f"i{d}" for d in range(rank)]
    inside = " and ".join(f"0 <= i{d} < n{d}" for d in range(rank)) or "True"
    offset = "0"
    for d in range(rank):
        offset = f"({offset}) * n{d} + i{d}" if d else "i0"
    given = ", ".join(names)
    whole = f"({given},)" if rank else "()"
    sizes = "".join(f"    n{d} = memory.shape[{d}]\n" for d in range(rank))
    element = "data.item(at)" if kind in ("int", "bool") else "data[at]"
    guard = f"        if not ({inside}):\n            memory.out_of_bounds({whole})\n        at = {offset}\n"
    head = f"def make(memory):\n    data, flags = memory.data, memory.flags\n{sizes}"
    load = f"{head}    def load({given}):\n{guard}        if not flags[at]:\n            memory.unwritten(at)\n"
    load += f"        return {element}\n    return load\n"
    store = f"{head}    def store({', '.join(['value', *names])}):\n{guard}        data[at] = value\n"
    store += "        flags[at] = 1\n    return store\n"
    return _made(load), _made(store)


def _made(source: str) -> Callable[[Memory], Callable[..., object]]:
    namespace: dict[str, Callable[[Memory], Callable[..., object]]] = {}
    exec(source, namespace)
    return namespace["make"]
