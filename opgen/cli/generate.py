"""`opgen generate`: specs to typed modules and documentation."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from opgen.cli.options import SPECS
from opgen.cli.progress import working


@click.command("generate")
@SPECS
@click.option("-o", "--output", "folder", required=True, type=click.Path(file_okay=False, path_type=Path),
              help="The folder to write to.")  # fmt: skip
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if any file is not what would be written.")
def command(specs: tuple[Path, ...], folder: Path, check: bool) -> None:
    """Writes a typed module, its documentation and listings for each spec file.

    SPECS are files or folders of `.op` files.  Files that would not change are left alone.
    """
    with working("starting") as say:
        from opgen.bindings.generate import generate

        changed = generate(specs, folder, check=check, progress=say)
    for path in changed:
        click.echo(f"{'differs' if check else 'wrote'}  {path}")
    if check and changed:
        are = "1 file in {0} is" if len(changed) == 1 else f"{len(changed)} files in {{0}} are"
        click.echo(f"{are.format(folder)} not what the specs give; run 'opgen generate'", err=True)
        sys.exit(1)
    if not changed:
        click.echo(f"{folder} is up to date")
