"""Objects of other libraries: the protocols they support, their meaning beyond their memory, and their failures.

Reading them runs code of others, or code made to mislead: any exception of it becomes an error that names op and
argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeGuard

import numpy as np

from opgen.diagnostics.calls import ArgumentError, ArgumentMemoryError, ArgumentTypeError
from opgen.diagnostics.describe import describe
from opgen.runtime.memory.dlpack import SupportsDLPack

_SHOWN = 200


def has(value: object, name: str) -> bool:
    """Return `hasattr(value, name)`; False if reading raises any exception."""
    try:
        getattr(value, name)
    except Exception:  # foreign code may raise anything
        return False
    return True


def speaks_dlpack(value: object) -> TypeGuard[SupportsDLPack]:
    """Return True if a value lends its memory by DLPack."""
    return has(value, "__dlpack__") and has(value, "__dlpack_device__")


def device_of(value: SupportsDLPack) -> tuple[int, int]:
    """Return the device that a value reports.  Raises any exception of its own; TypeError for an invalid device."""
    found = tuple(value.__dlpack_device__())
    kind, number = (int(n) if isinstance(n, int) else None for n in found) if len(found) == 2 else (None, None)
    if kind is None or number is None:
        raise TypeError("its __dlpack_device__ gives no device")
    return kind, number


class Hidden(NamedTuple):
    """A tensor's meaning beyond the numbers in its memory: the expected tensor, and the given one."""

    expected: str
    given: str


def hidden(value: object) -> Hidden | None:
    """Return the part of a tensor's meaning that its memory lacks; None if memory is all there is to it.

    The flags are PyTorch's: numbers that are negated or conjugated when they are read, a recorded gradient, or a class
    that computes in its own way (`__torch_dispatch__`).
    """
    if _is_set(value, "is_neg"):
        return Hidden("a tensor without the negative bit (.resolve_neg() makes one)", "one that has it")
    if _is_set(value, "is_conj"):
        return Hidden("a tensor without the conjugate bit (.resolve_conj() makes one)", "one that has it")
    if getattr(value, "requires_grad", False) is True:
        return Hidden("a tensor that requires no gradient (.detach() makes one)", "one that does")
    if _dispatches(type(value)):
        given = f"an object of type {type(value).__name__}, whose memory is not what it means"
        return Hidden("a plain tensor", given)
    return None


def _is_set(value: object, name: str) -> bool:
    bit = getattr(value, name, None)
    return callable(bit) and bit() is True


def _dispatches(kind: type) -> bool:
    """Return True if a class that inherits DLPack from a plain tensor's defines its own operations."""
    for base in kind.__mro__:
        if "__dlpack__" in base.__dict__:
            return False
        if "__torch_dispatch__" in base.__dict__:
            return True
    return False


def others(tensors: Iterable[object]) -> list[SupportsDLPack]:
    """Return the tensors that are another library's: they support DLPack, and are not numpy's."""
    own = (np.ndarray, np.generic, list, tuple, int, float)
    return [t for t in tensors if not isinstance(t, own) and speaks_dlpack(t)]


@contextmanager
def reading(op: str, argument: str, value: object) -> Iterator[None]:
    """Run an object's own code inside; any exception of it becomes an ArgumentError."""
    try:
        yield
    except ArgumentError:
        raise
    except MemoryError as error:
        raise ArgumentMemoryError(op, argument, "a tensor that fits into memory", describe(value)) from error
    except Exception as error:  # foreign code may raise anything
        expected, given = "a readable tensor", f"{describe(value)} ({_text(error)})"
        raise ArgumentTypeError(op, argument, expected, given) from error


def _text(error: Exception) -> str:
    """Return the first line of an error's message, cut if it is long."""
    try:
        line = (str(error).splitlines() or [""])[0]
    except Exception:  # even this runs foreign code
        line = ""
    line = line or type(error).__name__
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."
