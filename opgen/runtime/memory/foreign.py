"""Objects of other libraries: whether they speak a protocol, what they mean beyond their memory, and their failures.

What they run when they are asked is code of others, or made to mislead: any exception of it becomes an error that names
op and argument.
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
    """`hasattr`, and False where looking raises anything at all."""
    try:
        getattr(value, name)
    except Exception:  # whatever code of others raises
        return False
    return True


def speaks_dlpack(value: object) -> TypeGuard[SupportsDLPack]:
    """Whether a value lends its memory by DLPack."""
    return has(value, "__dlpack__") and has(value, "__dlpack_device__")


def device_of(value: SupportsDLPack) -> tuple[int, int]:
    """The device that a value says it lies on.  Raises whatever its own code does; TypeError if that is no device."""
    found = tuple(value.__dlpack_device__())
    kind, number = (int(n) if isinstance(n, int) else None for n in found) if len(found) == 2 else (None, None)
    if kind is None or number is None:
        raise TypeError("its __dlpack_device__ gives no device")
    return kind, number


class Hidden(NamedTuple):
    """What a tensor means beyond the numbers in its memory: what is wanted in its place, and what it is."""

    expected: str
    given: str


def hidden(value: object) -> Hidden | None:
    """What a kernel that reads the memory of a tensor would get wrong; None if memory is all there is to it.

    The words are PyTorch's: tensors whose numbers are to be negated or conjugated when they are read, which record a
    gradient, or which are of a class that computes in its own way (`__torch_dispatch__`).
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
    """Whether a class that inherits DLPack from a plain tensor's says what its operations do by itself."""
    for base in kind.__mro__:
        if "__dlpack__" in base.__dict__:
            return False
        if "__torch_dispatch__" in base.__dict__:
            return True
    return False


def others(tensors: Iterable[object]) -> list[SupportsDLPack]:
    """Those tensors that are another library's: they speak DLPack, and are not numpy's."""
    own = (np.ndarray, np.generic, list, tuple, int, float)
    return [t for t in tensors if not isinstance(t, own) and speaks_dlpack(t)]


@contextmanager
def reading(op: str, argument: str, value: object) -> Iterator[None]:
    """Where an object's own code runs: whatever it raises becomes an ArgumentError."""
    try:
        yield
    except ArgumentError:
        raise
    except MemoryError as error:
        raise ArgumentMemoryError(op, argument, "a tensor that fits into memory", describe(value)) from error
    except Exception as error:  # whatever code of others raises
        expected, given = "a readable tensor", f"{describe(value)} ({_text(error)})"
        raise ArgumentTypeError(op, argument, expected, given) from error


def _text(error: Exception) -> str:
    """The first line of an error's message, not too much of it."""
    try:
        line = (str(error).splitlines() or [""])[0]
    except Exception:  # even this is code of others
        line = ""
    line = line or type(error).__name__
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."
