"""Plain Java sources that every library has, moved into its package.

They are below `sources/`, in the package `opgen`, as an editor or `javac` reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).with_name("sources")


def plain_sources(package: str) -> Iterator[tuple[str, str]]:
    """Yield the path of each source within the package, without its end, and its text in that package."""
    root = SOURCES / "opgen"
    for file in sorted(root.rglob("*.java")):
        yield file.relative_to(root).with_suffix("").as_posix(), moved(file.read_text(encoding="utf-8"), package)


def moved(text: str, package: str) -> str:
    """Return a source of the package `opgen` as one of `package`: only its package line and imports change."""
    return re.sub(r"^(package|import) opgen(?=[.;])", rf"\1 {package}", text, flags=re.MULTILINE)
