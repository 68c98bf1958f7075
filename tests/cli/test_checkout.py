"""Commands that need the repository find it."""

from __future__ import annotations

from pathlib import Path

import pytest

from opgen.cli import checkout
from tests.support.repository import ROOT


def test_the_repository_is_found_from_a_folder_inside_it_and_from_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checkout.is_checkout(ROOT)
    assert not checkout.is_checkout(tmp_path)
    for folder in (ROOT, ROOT / "opgen" / "spec", tmp_path):
        monkeypatch.chdir(folder)
        assert checkout.repository() == ROOT
