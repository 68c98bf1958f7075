"""The layout of `tests/`: test modules share helpers through other modules, never through each other."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.repository import ROOT

MODULES = sorted((ROOT / "tests").rglob("*.py"))
NAMED = re.compile(r"(?:from|import) (tests(?:\.\w+)*\.test_\w+)|from (tests(?:\.\w+)*) import (test_\w+)")


def named(text: str) -> set[str]:
    """The test modules that a text imports, in the text of a program, too."""
    return {whole or f"{package}.{name}" for whole, package, name in NAMED.findall(text)}


def imported(path: Path) -> set[str]:
    """The other test modules that a file imports."""
    own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    return named(path.read_text(encoding="utf-8")) - {own}


def test_no_module_imports_a_test_module() -> None:
    found = {str(path.relative_to(ROOT)): sorted(imported(path)) for path in MODULES}
    assert len(found) > 400
    assert {path: names for path, names in found.items() if names} == {}, "move what they share to tests/support"


def test_an_import_of_a_test_module_is_seen(tmp_path: Path) -> None:
    of = "tests.a"
    text = f"from {of}.test_b import c\nfrom {of} import test_d\nprogram = '''\n    import {of}.test_e\n'''\n"
    assert named(text) == {"tests.a.test_b", "tests.a.test_d", "tests.a.test_e"}
