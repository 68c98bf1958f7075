"""A machine assembled from several sources, and the source of each of its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from opgen.machine.fields import Number, Values, unflatten
from opgen.machine.model import Machine


@dataclass(frozen=True)
class Described:
    """A machine, and the source of each of its numbers (by dotted name): read, measured, assumed or given.

    `assumption` names the CPU that the assumed numbers are from.
    """

    machine: Machine
    sources: dict[str, str]
    assumption: str = ""


def assemble(layers: Iterable[tuple[str, Values]], assumption: str = "") -> Described:
    """Return the machine of (source, numbers) pairs: a later one has precedence, and the first has all numbers."""
    values: dict[str, Number] = {}
    sources: dict[str, str] = {}
    for source, numbers in layers:
        values |= numbers
        sources |= dict.fromkeys(numbers, source)
    return Described(unflatten(values), sources, assumption)


def lines(described: Described) -> list[tuple[str, str]]:
    """Return (topic, text) pairs for people; numbers of the same source are grouped."""
    m, sources = described.machine, described.sources
    rate = f"{m.fma_per_second / 1e9:.3g}e9 a second, {m.flops / 1e9:.4g} float32 GFLOP/s a core"
    found = [
        ("vectors", [(f"{m.registers} registers", "registers"), (f"of {m.vector_bytes} bytes", "vector_bytes")]),
        ("multiply-adds", [(rate, "fma_per_second"), (f"{m.latency} under way", "latency")]),
        (
            "bfloat16 pairs",
            [
                ("multiplied by one instruction" if m.pairs else "one after the other", "pairs"),
                ("tiles of them by a matrix unit" if m.tiles else "no matrix unit", "tiles"),
            ],
        ),
        ("bytes", [("four multiplied by one instruction" if m.quads else "one after the other", "quads")]),
    ]
    for number, cache in enumerate((m.l1, m.l2, m.l3), 1):
        size = f"{cache.size >> 10} KiB" if cache.size < 1 << 20 else f"{cache.size / 2**20:.4g} MiB"
        texts = (size, f"{cache.ways} ways", f"lines of {cache.line} bytes", _rate(cache.bytes_per_second))
        names = (f"l{number}.{name}" for name in ("size", "ways", "line", "bytes_per_second"))
        found.append((f"cache level {number}", list(zip(texts, names, strict=True))))
    found.append(("memory", [(_rate(m.memory_bytes_per_second), "memory_bytes_per_second")]))
    found.append(("cores", [(str(m.cores), "cores")]))
    assumed = [("assumed are", described.assumption)] if "assumed" in sources.values() and described.assumption else []
    return [*((topic, _with_sources(items, sources)) for topic, items in found), *assumed]


def _rate(bytes_per_second: float) -> str:
    return f"{bytes_per_second / 1e9:.3g} GB/s read by one core"


def _with_sources(items: list[tuple[str, str]], sources: dict[str, str]) -> str:
    """Return the items with their sources: `32 KiB, 8 ways (read); 220 GB/s (measured)`."""
    groups: list[tuple[str, list[str]]] = []
    for text, name in items:
        source = sources[name]
        if not groups or groups[-1][0] != source:
            groups.append((source, []))
        groups[-1][1].append(text)
    return "; ".join(f"{', '.join(texts)} ({source})" for source, texts in groups)
