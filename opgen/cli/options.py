"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from opgen import files
from opgen.diagnostics import UserError


class GivenPath(click.Path):
    """A path that is not empty: `-o "$UNSET"` must not mean the current folder.  A file that is read must be plain."""

    def __init__(self, *, plain: bool = False, **kinds: Any) -> None:  # click's own arguments
        super().__init__(**kinds)
        self.plain = plain

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or a usage error."""
        if not str(value).strip():
            self.fail("the path is empty (a variable that is not set?)", param, ctx)
        if "\0" in str(value):
            self.fail("a path has no NUL characters", param, ctx)
        path = Path(str(super().convert(value, param, ctx)))
        if self.plain:
            reason = files.why_not_plain(path.stat())
            if reason and not path.is_dir():
                self.fail(f"'{path}' cannot be read: {reason}.", param, ctx)
        return path


class SpecPath(GivenPath):
    """A spec file or a folder of them; a bare name that is not here is looked for among the specs of opgen itself."""

    def __init__(self) -> None:
        super().__init__(exists=True, plain=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path, or a usage error."""
        from opgen.spec.shipped import located

        text = str(value)
        return super().convert(located(Path(text), text) if text.strip("\0 ") else text, param, ctx)


FILE = GivenPath(exists=True, dir_okay=False, readable=True, plain=True)
"""A file that is read."""

FILE_OR_FOLDER = GivenPath(exists=True, plain=True)
"""One of these that is read."""

FOLDER = GivenPath(file_okay=False)
"""A folder that is written to."""

OVERWRITE = click.option("--overwrite", is_flag=True, help="Also replace files in FOLDER that opgen did not write.")
"""Permission to replace files that are not opgen's."""

SPECS = click.argument("specs", nargs=-1, required=True, type=SpecPath())
"""Spec files, or folders of them."""

SPECS_FOLDER = click.option(
    "--specs", type=SpecPath(), help="A spec file, or a folder of them.  [default: ./specs, else opgen's own]"
)
"""Places where an op is looked for."""


def specs_or_default(given: Path | None) -> Path:
    """Return `SPECS_FOLDER` if given; else the folder `specs` here, else the specs that come with opgen."""
    from opgen.spec.shipped import folder

    found = given or (Path("specs") if Path("specs").is_dir() else folder())
    if found is None:
        raise UserError("there is no folder 'specs' here; name a spec file or a folder with --specs")
    return found


def spec_files(specs: tuple[Path, ...]) -> list[Path]:
    """Return the given files; a folder stands for every `.op` file under it, in order."""
    found: list[Path] = []
    for path in specs:
        found += sorted(path.rglob("*.op")) if path.is_dir() else [path]
    if not found:
        raise click.UsageError(f"no .op file in {', '.join(map(str, specs))}")
    return found
