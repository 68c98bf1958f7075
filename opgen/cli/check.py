"""`opgen check`: every mistake of every spec, with its place."""

from __future__ import annotations

from pathlib import Path

import click

from opgen.cli.as_json import JSON, declared, diagnostic, print_json
from opgen.cli.errors import USER_ERROR
from opgen.cli.options import SPECS, spec_files
from opgen.cli.progress import working
from opgen.diagnostics import Diagnostic, DiagnosticError


@click.command("check")
@SPECS
@JSON
def command(specs: tuple[Path, ...], as_json: bool) -> None:
    """Checks specs and says what each file declares; shows all mistakes and exits with 1 if there are any.

    SPECS are files or folders of `.op` files.  With --json: {files: [{file, ops, functions}], diagnostics: [{code,
    message, file, line, column, end_line, end_column, help}]}.
    """
    from opgen.grad import load
    from opgen.spec.generic.forms import check_forms

    files: list[object] = []
    mistakes: dict[Diagnostic, None] = {}  # a mistake in an imported file is met once for each importer
    for path in spec_files(specs):
        try:
            with working(f"checking {path}"):
                module = load([path])
                check_forms(module)
        except DiagnosticError as error:
            mistakes.update(dict.fromkeys(error.diagnostics))
        else:
            files.append(declared(str(path), module))
            if not as_json:
                ops = _count(len(module.ops) + len(module.generics), "op")
                click.echo(f"{path}: {ops}, {_count(len(module.functions) + len(module.formulas), 'function')}")
    if as_json:
        print_json({"files": files, "diagnostics": [diagnostic(d) for d in mistakes]})
        raise click.exceptions.Exit(USER_ERROR if mistakes else 0)
    if mistakes:
        raise DiagnosticError(tuple(mistakes))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
