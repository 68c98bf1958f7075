"""The numbers of the processor that runs this process: read, measured, assumed, or provided by its owner.

Measurements (`opgen doctor --measure`) are kept in the cache's directory as a small JSON file, one for each processor
and version of opgen.  Nothing is ever measured implicitly: without that file, rates are assumed.  Observed errors of
these numbers (shown by `opgen inspect --stage why`) are in a file of their own, and decide nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from opgen import files
from opgen.cache import directory
from opgen.cache import location as place
from opgen.machine.describe import Described, assemble
from opgen.machine.fields import Number, is_flag, is_rate
from opgen.machine.kinds import assumed, known_as, pairs_pay
from opgen.machine.override import LARGEST, LIMIT, VARIABLE, read_override
from opgen.machine.system import System, read_system
from opgen.version import VERSION

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target

MEASURED = (
    *("fma_per_second", "latency", "pairs", "memory_bytes_per_second"),
    *(f"l{n}.bytes_per_second" for n in (1, 2, 3)),
)
"""The numbers that a measurement provides."""


def describe(target: Target) -> Described:
    """Return the numbers of this machine for its LLVM target, and the origin of each.  Raises MachineFileError."""
    system = read_system()
    vector_bytes = target.vector_bits // 8
    cpu = known_as(target.cpu, target.has)
    rates, assumption = assumed(cpu, vector_bytes, system.hertz)
    known: dict[str, Number] = {
        "vector_bytes": vector_bytes,
        "registers": target.vector_registers,
        "pairs": target.has_pairs and pairs_pay(cpu, vector_bytes),
        "quads": target.has_quads,
        "tiles": target.has_tiles,
    }
    layers = [("assumed", rates), ("read", {**known, **system.values}), ("measured", measured(target, system))]
    if given := os.environ.get(VARIABLE):
        layers.append((f"given by {VARIABLE}", read_override(Path(given))))
    return assemble(layers, f"the rates of {assumption}; `opgen doctor --measure` measures them")


def measured(target: Target, system: System, kind: str = "machine") -> dict[str, Number]:
    """Return the measurements kept for this machine; empty if the file is missing or invalid."""
    folder = place.location()
    if folder is None:
        return {}
    try:
        with directory.opened(folder, create=False) as d:
            content = directory.read(d, _file(target, system, kind), LIMIT)
        document = files.parsed(content or b"null")
    except (OSError, ValueError, directory.UntrustedError):
        return {}
    return document if _is_measurement(document) else {}


def _is_measurement(document: object) -> TypeGuard[dict[str, Number]]:
    return isinstance(document, dict) and all(_is_measured(name, value) for name, value in document.items())


def _is_measured(name: str, value: object) -> bool:
    if name not in MEASURED or is_flag(name):
        return name in MEASURED and isinstance(value, bool)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 1 <= value <= LARGEST:
        return False
    return is_rate(name) or isinstance(value, int)


def keep(target: Target, values: dict[str, Number], kind: str = "machine") -> Path | None:
    """Keep measurements for later processes; return the path, or None if nothing can be kept."""
    folder, name = place.location(), _file(target, read_system(), kind)
    if folder is None:
        return None
    try:
        with directory.opened(folder, create=True) as d:
            directory.write(d, name, (json.dumps(values, indent=1) + "\n").encode())
    except (OSError, directory.UntrustedError):
        return None
    return folder / name


def _file(target: Target, system: System, kind: str) -> str:
    """Return a file name for this processor and version; it differs between processors of a shared home."""
    identity = "\n".join((VERSION, target.cpu, target.features, system.model, repr(sorted(system.values.items()))))
    return f"{kind}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"
