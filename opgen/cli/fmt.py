"""`opgen fmt`: specs in the one layout."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from opgen import files
from opgen.cli.options import SPECS, spec_files
from opgen.diagnostics import Diagnostic, DiagnosticError


@click.command("fmt")
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is not formatted.")
@SPECS
def command(specs: tuple[Path, ...], check: bool) -> None:
    """Rewrites specs in the one layout; comments stay.

    SPECS are files or folders of `.op` files.
    """
    from opgen.spec.syntax.format import format_source

    changed: list[Path] = []
    mistakes: list[Diagnostic] = []
    for path in spec_files(specs):
        text = files.text(path)
        try:
            formatted = format_source(text, str(path))
        except DiagnosticError as error:
            mistakes += error.diagnostics
            continue
        if formatted != text:
            changed.append(path)
            if not check:
                files.write(path, formatted.encode())
    for path in changed:
        click.echo(f"{'would reformat' if check else 'reformatted'} {path}")
    if mistakes:
        raise DiagnosticError(mistakes)
    if check and changed:
        sys.exit(1)
