"""Memory that the process may take: the machine's, or less in a container."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

GROUPS, MOUNTED = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def available(groups: Path = GROUPS, mounted: Path = MOUNTED) -> int:
    """Return the bytes that the machine has, or the least bound of the process's control groups (cgroup v2)."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0
    group = _group(groups)
    for folder in () if group is None else (group, *group.parents):
        with contextlib.suppress(OSError, ValueError):  # no such file, or the word `max`
            found = min(found, int((mounted / folder.relative_to("/") / "memory.max").read_text()))
    return found


def _group(groups: Path) -> Path | None:
    """Return the process's group as a path from the root of groups; None without cgroup v2."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        for line in groups.read_text().splitlines():
            if line.startswith("0::/"):
                return Path(line[3:])
    return None
