"""The repository, and fixtures for the generated module that tools and verification programs work with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from opgen.bindings.generate import generate

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def fresh_module(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A tool imports the module that it is given, as if it had a process of its own; nothing of it is left."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = sys.modules.pop("nn_ops", None)
    yield
    sys.modules.pop("nn_ops", None)
    if before is not None:
        sys.modules["nn_ops"] = before


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The path of `nn_ops.py`; kernels that are built go to a cache beside it."""
    folder = tmp_path_factory.mktemp("generated")
    generate([ROOT / "specs"], folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPGEN_CACHE_DIR", str(folder / "cache"))
        yield folder / "nn_ops.py"
