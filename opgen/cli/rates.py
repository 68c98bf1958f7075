"""Ratios of this machine's rates to those that estimates assume: a note beside the explanation."""

from __future__ import annotations

FAR = 1.25
"""Ratio of a measured rate to the assumed one, or its inverse, from which on a note is printed."""

_NAMES = {
    "fma_per_second": "multiplies and adds",
    "l1.bytes_per_second": "reads L1",
    "l2.bytes_per_second": "reads L2",
    "l3.bytes_per_second": "reads L3",
    "memory_bytes_per_second": "reads memory",
}


def rates_note() -> str | None:
    """Return the note on estimates; None if rates were measured or given, or are near the assumed ones."""
    from opgen.runtime.measuring.rates import observed

    found = {name: true / assumed for name, (assumed, true) in observed().items() if name in _NAMES}
    if all(1 / FAR <= ratio <= FAR for ratio in found.values()):
        return None
    told = ", ".join(f"{_NAMES[name]} at {ratio:.2f}" for name, ratio in found.items())
    return (
        f"note: these prices go by assumed rates; a core of this machine {told} times the assumed rate. "
        "Schedules go by the assumed rates, too, until 'opgen doctor --measure'"
    )
