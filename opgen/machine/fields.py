"""Machines as flat tables, so that each number can have its own source: `l1.size`, `fma_per_second`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from opgen.machine.model import Cache, Machine

Number = int | float
Values = Mapping[str, Number]
"""Some or all numbers of a machine by their dotted names."""

LEVELS = ("l1", "l2", "l3")
_RATES = ("fma_per_second", "memory_bytes_per_second", "bytes_per_second")


def flatten(machine: Machine) -> dict[str, Number]:
    """Return all numbers of a machine, in the model's order."""
    flat: dict[str, Number] = {}
    for field in fields(machine):
        value = getattr(machine, field.name)
        if isinstance(value, Cache):
            flat |= {f"{field.name}.{part.name}": getattr(value, part.name) for part in fields(value)}
        else:
            flat[field.name] = value
    return flat


def unflatten(values: Values) -> Machine:
    """Return the machine with these numbers, which must be all that `flatten` returns."""
    l1, l2, l3 = (_cache(values, level) for level in LEVELS)
    return Machine(
        vector_bytes=int(values["vector_bytes"]),
        registers=int(values["registers"]),
        fma_per_second=float(values["fma_per_second"]),
        latency=int(values["latency"]),
        l1=l1,
        l2=l2,
        l3=l3,
        memory_bytes_per_second=float(values["memory_bytes_per_second"]),
        cores=int(values["cores"]),
        pairs=bool(values["pairs"]),
        quads=bool(values["quads"]),
        tiles=bool(values["tiles"]),
    )


def _cache(values: Values, level: str) -> Cache:
    size, ways, line = (int(values[f"{level}.{name}"]) for name in ("size", "ways", "line"))
    return Cache(size, ways, line, float(values[f"{level}.bytes_per_second"]))


def is_flag(name: str) -> bool:
    """Return True if the number is a flag."""
    return name in ("pairs", "quads", "tiles")


def is_rate(name: str) -> bool:
    """Return True for a rate, which may be any positive float; all but rates and flags are positive integers."""
    return name.rsplit(".", 1)[-1] in _RATES
