"""Paths of files kept between processes: built kernels, and measured numbers of the machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from opgen.cache import directory
from opgen.diagnostics import UserError, did_you_mean

ON, OFF = ("on", "1", "yes", ""), ("off", "0", "no")
"""Words that OPGEN_CACHE may have."""


def absolute(path: str) -> Path | None:
    """Return the absolute path; None if it is relative and the current folder is gone."""
    try:
        return Path(path).absolute()
    except OSError:
        return None


def location(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return the cache's directory by the environment, or None if it is off or no home directory is known.

    Raises UserError for an unknown word in OPGEN_CACHE.
    """
    env = os.environ if environment is None else environment
    word = env.get("OPGEN_CACHE", "").strip().lower()
    if word not in (*ON, *OFF):
        hint = did_you_mean(word, (ON[0], OFF[0]))
        raise UserError(f"OPGEN_CACHE is '{word}', expected on or off{f'; {hint}' if hint else ''}")
    if word in OFF or not directory.SUPPORTED:
        return None
    if own := env.get("OPGEN_CACHE_DIR"):
        return absolute(own)
    xdg = env.get("XDG_CACHE_HOME")
    if xdg and os.path.isabs(xdg):
        return Path(xdg) / "opgen"
    home = env.get("HOME") or os.path.expanduser("~")
    return Path(home) / ".cache" / "opgen" if os.path.isabs(home) else None
