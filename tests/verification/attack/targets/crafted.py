"""Objects that no op should be given, or that lie about what they are."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable

import numpy as np


class BoomError(Exception):
    """Raised by objects that fail when they are looked at: what they raise is theirs."""


def _attribute(name: str, value: object) -> object:
    return type("Crafted", (), {name: value})()


def _method(name: str, result: Callable[[], object]) -> object:
    return type("Crafted", (), {name: lambda *_, **__: result()})()


def _boom() -> object:
    raise BoomError("looked at")


LyingArray = type("LyingArray", (np.ndarray,), {"shape": property(lambda _: (1 << 20, 3))})
"""An array whose shape is not what it says."""


def _nested(depth: int) -> object:
    found: object = 1.0
    for _ in range(depth):
        found = [found]
    return found


def _circle() -> object:
    found: list[object] = []
    found.append(found)
    return found


def _capsule(name: bytes) -> object:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(1 << 40, name, None)


_NAME = b"something else"
_OBJECTS: tuple[Callable[[], object], ...] = (
    lambda: None,
    lambda: True,
    lambda: -1,
    lambda: 1 << 70,
    lambda: 10**5000,
    lambda: float("nan"),
    lambda: 1e308,
    lambda: 1j,
    lambda: "text",
    lambda: "9" * 5000,
    lambda: b"bytes",
    list,
    lambda: [[1.0], [2.0, 3.0]],
    lambda: [1, "a", None],
    lambda: _nested(40),
    lambda: _nested(100_000),
    _circle,
    lambda: {"a": 1},
    lambda: {1, 2},
    lambda: range(10**18),
    lambda: object(),
    lambda: type,
    lambda: len,
    lambda: iter([1.0]),
    lambda: np.float32(3),
    lambda: np.zeros((2, 2), np.complex64),
    lambda: np.array(["a"]),
    lambda: np.array([None]),
    lambda: np.zeros(2, "M8[s]"),
    lambda: np.zeros(2, [("a", "f4")]),
    lambda: np.zeros((2, 2), ">f4"),
    lambda: np.zeros((1,) * 32, np.float32),
    lambda: np.broadcast_to(np.float32(1), (1 << 40, 2)),
    lambda: np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (4, 2), (-4, 4)),
    lambda: np.zeros(41, np.uint8)[1:].view(np.float32).reshape(5, 2),
    lambda: np.zeros((4, 4), np.float32)[::-1, ::2],
    lambda: np.zeros((0, 3), np.float32),
    lambda: np.float64(np.nan),
    lambda: np.ma.MaskedArray(np.zeros((2, 2)), True),
    lambda: np.matrix([[1.0, 2.0]]),
    lambda: np.memmap,
    lambda: np.zeros((3, 2), np.float32).view(LyingArray),
    lambda: memoryview(b"12345678"),
    lambda: (ctypes.c_float * 4)(),
    lambda: _attribute("shape", (2, 2)),
    lambda: _attribute("__array_interface__", {"shape": (2, 2), "typestr": "<f4", "version": 3}),
    lambda: _attribute("__array_interface__", {"shape": (-2, 2), "typestr": "<f4", "data": b"", "version": 3}),
    lambda: _attribute("__array_interface__", 3),
    lambda: _method("__array__", lambda: 3),
    lambda: _method("__array__", lambda: np.zeros((2, 2), np.float32)),
    lambda: _method("__array__", _boom),
    lambda: _method("__dlpack__", _boom),
    lambda: _method("__dlpack__", lambda: 3),
    lambda: _method("__dlpack__", lambda: _capsule(_NAME)),
    lambda: _method("__dlpack_device__", lambda: (2, 0)),
    lambda: _method("__float__", _boom),
    lambda: _method("__index__", _boom),
    lambda: _method("__len__", lambda: 1 << 62),
    lambda: _method("__iter__", _boom),
    lambda: _method("__index__", lambda: 1 << 80),
)


def crafted(choose: random.Random) -> object:
    """One of them."""
    return choose.choice(_OBJECTS)()
