"""The operating system's data on the processor: its caches, clock and cores.  Missing data is left out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opgen.machine.fields import LEVELS, Number

_CPU = "sys/devices/system/cpu/cpu0"
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class System:
    """Data of a processor.

    `values` are the numbers of a machine that were read; `hertz` is its highest clock, to 0.1 GHz; `model` is its name.
    """

    values: dict[str, Number]
    hertz: float | None
    model: str


def read_system(root: Path = Path("/")) -> System:
    """Return the data in /sys and /proc, below another root if given; on systems without them, only a little."""
    information = _information(root / "proc/cpuinfo")
    values: dict[str, Number] = {"cores": os.cpu_count() or 1}
    for level, numbers in _caches(root / _CPU / "cache"):
        values |= {f"{level}.{name}": number for name, number in numbers.items()}
    return System(values, _clock(root, information), information.get("model name", ""))


def _caches(folder: Path) -> Iterator[tuple[str, dict[str, Number]]]:
    """Yield the data caches as the first core sees them: size, ways and line of each level."""
    for index in sorted(folder.glob("index[0-9]*")):
        level = f"l{_text(index / 'level')}"
        if level in LEVELS and _text(index / "type") in ("Data", "Unified"):
            found = {
                "size": _size(_text(index / "size")),
                "ways": _size(_text(index / "ways_of_associativity")),
                "line": _size(_text(index / "coherency_line_size")),
            }
            yield level, {name: number for name, number in found.items() if number > 0}


def _size(text: str) -> int:
    """Return `32K` in bytes; 0 for anything that is not a size (a cache without a known number of ways says 0)."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    return int(match[1]) * _UNITS[match[2]] if match else 0


def _clock(root: Path, information: dict[str, str]) -> float | None:
    """Return the highest guaranteed clock, never the present one, which changes from process to process."""
    highest = _size(_text(root / _CPU / "cpufreq/cpuinfo_max_freq"))
    if highest:
        return _rounded(highest * 1e3)
    if match := re.search(r"@ ([\d.]+) ?GHz", information.get("model name", "")):
        return _rounded(float(match[1]) * 1e9)
    if "model name" in information and (match := re.fullmatch(r"[\d.]+", information.get("bogomips", ""))):
        return _rounded(float(match[0]) / 2 * 1e6)  # on x86, twice the base clock in MHz
    return None


def _rounded(hertz: float) -> float | None:
    return round(hertz / 1e8) * 1e8 or None


def _information(path: Path) -> dict[str, str]:
    """Return the first processor's lines of /proc/cpuinfo."""
    first = _text(path).split("\n\n")[0]
    pairs = (line.split(":", 1) for line in first.split("\n") if ":" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
