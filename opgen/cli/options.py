"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from opgen.diagnostics import UserError

SPECS = click.argument("specs", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
"""Spec files, or folders of them."""


def spec_files(specs: tuple[Path, ...]) -> list[Path]:
    """The files meant: a folder stands for every `.op` file under it, in order."""
    found: list[Path] = []
    for path in specs:
        found += sorted(path.rglob("*.op")) if path.is_dir() else [path]
    if not found:
        raise click.UsageError(f"no .op file in {', '.join(map(str, specs))}")
    return found


def read_text(path: Path) -> str:
    """A file's text, with its line endings as they are."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from error
