"""Casts between scalar types, each rounding once."""

from __future__ import annotations

from collections.abc import Callable

from opgen.codegen.cuda.code import EQUALITY, TERNARY, UNARY, Code, Interval, full_interval, within
from opgen.codegen.cuda.types import VALUE_TYPES, literal
from opgen.dtypes import BOOL, FLOAT32, FLOAT64, DType

Use = Callable[[str], str]
"""Notes that a helper is used, and returns its name."""


def conversion(use: Use, source: DType, target: DType, value: Code) -> Code:
    """Return the value, of type `source`, as a `target`."""
    if source == target:
        return value
    if source.is_int and source.is_stored:
        compute = source.compute_type
        wide = _call(use, f"{VALUE_TYPES[compute]}_from_{VALUE_TYPES[source]}", value, full_interval(source))
        return conversion(use, compute, target, wide)
    if source.is_float and source.is_stored:
        wide = _call(use, f"f32_from_{VALUE_TYPES[source]}", value)
        return conversion(use, FLOAT32, target, wide)
    if target == BOOL:
        zero = literal(0, source)
        return Code(f"{value.at(EQUALITY + 1)} != {zero}", EQUALITY)
    if source == BOOL:
        one, zero = literal(1, target), literal(0, target)
        return Code(f"{value.at(TERNARY + 1)} ? {one} : {zero}", TERNARY, (0, 1) if target.is_int else None)
    if target.is_int and target.is_stored:
        if source.is_float:
            return _call(use, f"{VALUE_TYPES[target]}_from_{VALUE_TYPES[source]}", value)
        byte = conversion(use, source, target.compute_type, value)
        return _call(use, f"{VALUE_TYPES[target]}_from_{VALUE_TYPES[target.compute_type]}", byte)
    if target.is_int:
        return _to_integer(use, source, target, value)
    return _to_float(use, source, target, value)


def bits(use: Use, source: DType, target: DType, value: Code) -> Code:
    """Return the bits of the value, of type `source`, as a `target` of as many bits."""
    if source.is_float == target.is_float:
        return conversion(use, source, target, value)
    interval = full_interval(target) if target.is_int else None
    return _call(use, f"{VALUE_TYPES[target]}_of_bits_of_{VALUE_TYPES[source]}", value, interval)


def _to_integer(use: Use, source: DType, target: DType, value: Code) -> Code:
    if source.is_float:
        return _call(use, f"{VALUE_TYPES[target]}_from_{VALUE_TYPES[source]}", value, full_interval(target))
    known = value.interval or full_interval(source)
    full = full_interval(target)
    return _c_cast(target, value, known if within(known, full) else full)


def _to_float(use: Use, source: DType, target: DType, value: Code) -> Code:
    if target in (FLOAT32, FLOAT64):
        return _c_cast(target, value)
    narrow = VALUE_TYPES[target]
    if source.is_int:
        exact = (
            _c_cast(FLOAT64, value) if source.bits <= 32 else _call(use, f"f64_odd_from_{VALUE_TYPES[source]}", value)
        )
        return _call(use, f"{narrow}_from_f64", exact)
    return _call(use, f"{narrow}_from_{VALUE_TYPES[source]}", value)


def _call(use: Use, helper: str, value: Code, interval: Interval | None = None) -> Code:
    return Code(f"{use(helper)}({value.text})", interval=interval)


def _c_cast(target: DType, value: Code, interval: Interval | None = None) -> Code:
    return Code(f"({VALUE_TYPES[target]}){value.at(UNARY)}", UNARY, interval)
