"""Every package of `opgen/` has a README, the files that it names are there, and CONTRIBUTING lists it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.repository import ROOT

PACKAGES = sorted(p.parent for p in (ROOT / "opgen").glob("*/__init__.py"))
PAGES = sorted((ROOT / "opgen").rglob("README.md"))
NAMED = re.compile(r"`([\w./]+\.(?:py|md|op))`")


def test_every_package_has_a_page() -> None:
    assert [package.name for package in PACKAGES if not (package / "README.md").is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=[str(p.parent.relative_to(ROOT)) for p in PAGES])
def test_the_files_that_a_page_names_are_there(page: Path) -> None:
    below = [f"/{f.relative_to(page.parent).as_posix()}" for f in page.parent.rglob("*")]
    around = (ROOT, ROOT / "opgen", page.parent.parent)

    def found(name: str) -> bool:
        return any(f.endswith(f"/{name}") for f in below) or any((folder / name).exists() for folder in around)

    named = [n for n in NAMED.findall(page.read_text()) if n.islower()]
    assert [n for n in named if not found(n)] == []


def test_the_modules_that_docstrings_and_comments_name_are_there() -> None:
    files = {
        "/" + p.relative_to(ROOT).as_posix() for top in ("opgen", "tests", "tools") for p in (ROOT / top).rglob("*.py")
    }

    def missing(path: Path) -> list[str]:
        named = re.findall(r"`([a-z][\w/]*\.py)`", path.read_text())
        return [n for n in named if not any(f.endswith(f"/{n}") for f in files)]

    found = {str(path.relative_to(ROOT)): missing(path) for path in (ROOT / "opgen").rglob("*.py")}
    assert {path: names for path, names in found.items() if names} == {}


def test_the_table_of_contributing_has_every_package_in_the_order_of_imports() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    rows = re.findall(r"^\| ((?:`[\w./]+`(?:, )?)+) \|", page, re.MULTILINE)
    named = [name.removesuffix("/").removesuffix(".py") for row in rows for name in re.findall(r"`([^`]+)`", row)]
    folders = {package.name for package in PACKAGES}
    assert folders <= set(named), folders - set(named)

    contract = re.search(r"^layers = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    assert contract is not None
    layers = re.findall(r'^ *"(.*)",$', contract[1], re.MULTILINE)[::-1]
    layer = {name.removeprefix("opgen."): n for n, names in enumerate(layers) for name in names.split(" | ")}
    assert sorted(named) == sorted(layer)
    assert [layer[name] for name in named] == sorted(layer.values())
