"""`opgen generate`: specs to typed modules and documentation."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from opgen.cli.errors import say
from opgen.cli.options import FOLDER, OVERWRITE, SPECS
from opgen.cli.progress import working


@click.command("generate")
@SPECS
@click.option("-o", "--output", "folder", required=True, type=FOLDER, help="The folder to write to.")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if any file is not what would be written.")
@click.option("--dry-run", is_flag=True, help="Write nothing; say what would be written and removed.")
@OVERWRITE
def command(specs: tuple[Path, ...], folder: Path, check: bool, dry_run: bool, overwrite: bool) -> None:
    """Writes a typed module, its documentation and listings for each spec file.

    SPECS are files or folders of `.op` files.  Files that would not change are left alone.  MODULE.manifest lists what
    was written for a module; what it lists and the spec no longer gives is removed, and nothing else.
    """
    with working("starting") as progress:
        from opgen.bindings.generate import generate

        write = not check and not dry_run
        changed = generate(specs, folder, write=write, overwrite=overwrite, progress=progress)
    wrote, removed = (
        ("differs ", "stale   ") if check else ("would write ", "would remove") if dry_run else ("wrote ", "removed")
    )
    lines = [(name, wrote) for name in changed.written] + [(name, removed) for name in changed.removed]
    for name, what in sorted(lines):
        click.echo(f"{what} {folder / name}")
    for note in changed.notes:
        say(f"note: {note}")
    if check and changed:
        are = "1 file in {0} is" if len(lines) == 1 else f"{len(lines)} files in {{0}} are"
        say(f"{are.format(folder)} not what the specs give; run 'opgen generate'")
        sys.exit(1)
    if not changed:
        click.echo(f"{folder} is up to date")
