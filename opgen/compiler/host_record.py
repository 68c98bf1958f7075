"""LLVM's description of this machine, kept beside the kernels for processes that run those without LLVM installed."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from opgen.cache import directory
from opgen.cache import location as place
from opgen.version import VERSION

LIMIT = 1 << 16
"""The largest file that is read, in bytes."""
_CPU = Path("/proc/cpuinfo")
_TOLD = ("model name", "flags", "Features", "CPU part", "microcode")


@dataclass(frozen=True)
class Host:
    """LLVM's triple, CPU and features of this machine, and LLVM's version."""

    triple: str
    cpu: str
    features: str
    llvm: str


def keep(host: Host) -> None:
    """Keep the record, unless it is already there or nothing can be kept."""
    folder, name = place.location(), _file()
    if folder is None or read() == host:
        return
    try:
        with directory.opened(folder, create=True) as d:
            directory.write(d, name, (json.dumps(asdict(host), indent=1) + "\n").encode())
    except (OSError, directory.UntrustedError):  # LLVM is queried again
        return


def read() -> Host | None:
    """Return the record kept for this machine; None if it has none."""
    folder = place.location()
    if folder is None:
        return None
    try:
        with directory.opened(folder, create=False) as d:
            found = json.loads(directory.read(d, _file(), LIMIT) or b"null")
    except (OSError, ValueError, RecursionError, directory.UntrustedError):
        return None
    names = {f.name for f in fields(Host)}
    if not isinstance(found, dict) or set(found) != names or not all(isinstance(v, str) for v in found.values()):
        return None
    return Host(**found)


def _file() -> str:
    """Return a file name for this processor and version of opgen."""
    try:
        lines = _CPU.read_text(errors="replace").split("\n\n")[0].splitlines()
    except OSError:
        lines = [platform.processor()]
    told = [line for line in lines if line.split("\t")[0].split(":")[0].strip() in _TOLD]
    identity = "\n".join((VERSION, platform.machine(), platform.system(), *told))
    return f"host-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"
