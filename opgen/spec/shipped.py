"""Specs shipped with opgen, found by file name: those of the installed package, or of the checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def folder() -> Path | None:
    """Return the folder of the shipped specs; None if it is missing."""
    installed, beside = _PACKAGE / "specs", _PACKAGE.parent / "specs"
    if installed.is_dir():
        return installed
    return beside if beside.is_dir() and (_PACKAGE.parent / "pyproject.toml").is_file() else None


def located(path: Path, written: str) -> Path:
    """Return the path of a spec file; if it does not exist, the shipped file of the same relative path."""
    if Path(written).is_absolute() or ".." in Path(written).parts or path.exists():
        return path
    here = folder()
    shipped = path if here is None else here / written
    return shipped if shipped.is_file() else path
