"""A kernel cache of its own for each test of a folder, whose `conftest.py` imports the fixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from opgen.runtime.kernels import loaded


@pytest.fixture(autouse=True)
def cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory, and no kernel in memory."""
    path = tmp_path / "cache"
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(path))
    monkeypatch.delenv("OPGEN_CACHE", raising=False)
    loaded.forget()
    return path
