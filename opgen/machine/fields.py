"""A machine as a flat table, so that each number can come from a place of its own: `l1.size`, `fma_per_second`."""

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
    """All numbers of a machine, in the order in which the model has them."""
    flat: dict[str, Number] = {}
    for field in fields(machine):
        value = getattr(machine, field.name)
        if isinstance(value, Cache):
            flat |= {f"{field.name}.{part.name}": getattr(value, part.name) for part in fields(value)}
        else:
            flat[field.name] = value
    return flat


def unflatten(values: Values) -> Machine:
    """The machine with these numbers: as many as `flatten` gives."""
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
    """Whether it is a yes or no."""
    return name in ("pairs", "quads", "tiles")


def is_rate(name: str) -> bool:
    """Whether it is a rate, which may be any positive float; what is neither rate nor flag is a positive integer."""
    return name.rsplit(".", 1)[-1] in _RATES
