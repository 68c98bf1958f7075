"""Published data of CPU kinds that a running system does not show: multiply-adds a cycle, and their latency."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opgen.machine.fields import Number, flatten
from opgen.machine.model import typical

TYPICAL_HERTZ = 3.7e9
"""The clock of the rates in `typical`."""


@dataclass(frozen=True)
class Kind:
    """Of vectors of `vector_bytes`: multiply-adds that one core begins in a cycle, and cycles until one is done; bytes
    that it reads in a cycle from the last cache, if that is not what is typical; whether its dot product of bfloat16
    pairs, if it has one, takes less than the two multiply-adds that it does.
    """

    vector_bytes: int
    per_cycle: int
    latency: int
    l3_per_cycle: float | None = None
    pairs_pay: bool = True


_TWO_OF_32 = dict.fromkeys(("znver3", "skylake", "alderlake", "raptorlake", "meteorlake"), Kind(32, 2, 4))
_TWO_OF_32_LATE = dict.fromkeys(("znver2", "haswell", "broadwell"), Kind(32, 2, 5))
_ONE_OF_64 = dict.fromkeys(("znver4", "icelake-client", "tigerlake", "rocketlake"), Kind(64, 1, 4))
_TWO_OF_64 = dict.fromkeys(
    ("skylake-avx512", "cascadelake", "cooperlake", "icelake-server"),
    Kind(64, 2, 4, 10),  # the last cache is spread over a mesh
)
_TWO_OF_64_LATE = dict.fromkeys(
    ("sapphirerapids", "emeraldrapids"),
    Kind(64, 2, 4, 10, False),  # measured: a dot product takes as long as four multiply-adds
)
_TWO_OF_16 = dict.fromkeys(("neoverse-n1", "neoverse-n2", "cortex-a76"), Kind(16, 2, 4))
_FOUR_OF_16 = dict.fromkeys(("neoverse-v1", "neoverse-v2", "apple-m1", "apple-m2", "apple-m3"), Kind(16, 4, 4))
_KINDS = {
    "znver1": Kind(32, 1, 5),
    "znver5": Kind(64, 2, 4),
    **_TWO_OF_32,
    **_TWO_OF_32_LATE,
    **_ONE_OF_64,
    **_TWO_OF_64,
    **_TWO_OF_64_LATE,
    **_TWO_OF_16,
    **_FOUR_OF_16,
}
"""By LLVM's names."""


def known_as(cpu: str, has: Callable[[str], bool]) -> str:
    """Return the name to use for a CPU that calls itself `cpu` and has these features (by LLVM's names).

    A virtual machine may bear the name of another CPU; its features are more reliable.
    """
    return "sapphirerapids" if has("amx-tile") and _KINDS.get(cpu) != _KINDS["sapphirerapids"] else cpu


def kind_of(cpu: str, vector_bytes: int) -> Kind | None:
    """Return the kind of a CPU by LLVM's name for it, if it is known with vectors of that size."""
    kind = _KINDS.get(cpu)
    return kind if kind is not None and kind.vector_bytes == vector_bytes else None


def pairs_pay(cpu: str, vector_bytes: int) -> bool:
    """Return True if a dot product of bfloat16 pairs takes less time than two multiply-adds, as on unknown CPUs."""
    kind = kind_of(cpu, vector_bytes)
    return kind is None or kind.pairs_pay


def assumed(cpu: str, vector_bytes: int, hertz: float | None) -> tuple[dict[str, Number], str]:
    """Return all numbers of an unmeasured CPU, and the assumption in words.

    The numbers are typical ones, with rates by kind and clock.
    """
    values = flatten(typical(vector_bytes))
    clock = TYPICAL_HERTZ if hertz is None else hertz
    kind = kind_of(cpu, vector_bytes)
    if kind is not None:
        values |= {"fma_per_second": kind.per_cycle * clock, "latency": kind.latency * kind.per_cycle}
    else:
        values["fma_per_second"] *= clock / TYPICAL_HERTZ
    for level in ("l1", "l2", "l3"):  # caches run at the core's clock; memory does not
        values[f"{level}.bytes_per_second"] *= clock / TYPICAL_HERTZ
    if kind is not None and kind.l3_per_cycle is not None:
        values["l3.bytes_per_second"] = kind.l3_per_cycle * clock
    values["memory_bytes_per_second"] = min(values["memory_bytes_per_second"], values["l3.bytes_per_second"])
    return values, f"{'a typical CPU' if kind is None else cpu} at {clock / 1e9:.1f} GHz"
