"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from opgen.diagnostics import UserError


class SpecPath(click.Path):
    """A spec file or a folder of them; a bare name that is not here is looked for among the specs of opgen itself."""

    def __init__(self) -> None:
        super().__init__(exists=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # click's own
        from opgen.spec.shipped import located

        return super().convert(located(Path(value), str(value)), param, ctx)


SPECS = click.argument("specs", nargs=-1, required=True, type=SpecPath())
"""Spec files, or folders of them."""

SPECS_FOLDER = click.option(
    "--specs", type=SpecPath(), help="A spec file, or a folder of them.  [default: ./specs, else opgen's own]"
)
"""Where an op is looked for."""


def specs_or_default(given: Path | None) -> Path:
    """What `SPECS_FOLDER` gave; else the folder `specs` here, else the specs that come with opgen."""
    from opgen.spec.shipped import folder

    found = given or (Path("specs") if Path("specs").is_dir() else folder())
    if found is None:
        raise UserError("there is no folder 'specs' here; name a spec file or a folder with --specs")
    return found


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
