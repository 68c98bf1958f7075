"""Where things are kept between processes: built kernels, and what was measured of the machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from opgen.runtime import directory


def location(environment: Mapping[str, str] | None = None) -> Path | None:
    """The cache's directory by the environment, or None if it is off or there is no home to put it in."""
    env = os.environ if environment is None else environment
    if env.get("OPGEN_CACHE", "").strip().lower() in ("off", "0", "no") or not directory.SUPPORTED:
        return None
    if own := env.get("OPGEN_CACHE_DIR"):
        return Path(own).absolute()
    xdg = env.get("XDG_CACHE_HOME")
    if xdg and os.path.isabs(xdg):
        return Path(xdg) / "opgen"
    home = env.get("HOME") or os.path.expanduser("~")
    return Path(home) / ".cache" / "opgen" if os.path.isabs(home) else None
