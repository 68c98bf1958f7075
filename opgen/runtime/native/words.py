"""A kernel's arguments as 64-bit words.

[0] the address of the parallel loop (0: none), [1] the number of threads, then the addresses of the buffers (inputs,
then outputs), then a word for each parameter: an integer, a bool as 0 or 1, the bits of a float64 for a float.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsIndex

from opgen.diagnostics import InternalError

if TYPE_CHECKING:
    from opgen.loop.nodes import Parameter

FIRST_BUFFER = 2

_FLOAT = struct.Struct("=d")
_WORD = struct.Struct("=q")
_WORD_RANGE = range(-(1 << 63), 1 << 63)


def parameter_word(parameter: Parameter, value: SupportsIndex | float) -> int:
    """Return one parameter as a word.  Raises InternalError if the value is not of the parameter's kind or range."""
    if parameter.dtype.is_float:
        return int(_WORD.unpack(_FLOAT.pack(value))[0])
    if isinstance(value, float) or not hasattr(value, "__index__"):
        raise InternalError(f"parameter {parameter.name} is of {parameter.dtype}, given {value!r}")
    word = operator.index(value)
    if word not in _WORD_RANGE:
        raise InternalError(f"parameter {parameter.name} does not fit in 64 bits: {word}")
    return word


def parameter_words(parameters: Sequence[Parameter], values: Sequence[SupportsIndex | float]) -> tuple[int, ...]:
    """Return all parameters as words, in their order."""
    if len(parameters) != len(values):
        raise InternalError(f"{len(parameters)} parameters are needed, given {len(values)}")
    return tuple(parameter_word(p, v) for p, v in zip(parameters, values, strict=True))
