"""`opgen check`: every mistake of every spec, with its place."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opgen.cli.as_json import JSON, declared, diagnostic, print_json
from opgen.cli.errors import USER_ERROR
from opgen.cli.options import SPECS, spec_files
from opgen.cli.progress import working
from opgen.diagnostics import Diagnostic, DiagnosticError, Span

if TYPE_CHECKING:
    from opgen.spec.model.model import Module


@click.command("check")
@SPECS
@JSON
def command(specs: tuple[Path, ...], as_json: bool) -> None:
    """Checks specs and says what each file declares; shows all mistakes and exits with 1 if there are any.

    SPECS are files or folders of `.op` files.  With --json: {files: [{file, ops, functions}], diagnostics: [{code,
    message, file, line, column, end_line, end_column, help}]}.
    """
    from opgen.examples import verify_examples
    from opgen.grad import load
    from opgen.spec.generic.forms import check_forms

    files: list[object] = []
    mistakes: dict[Diagnostic, None] = {}  # a mistake in an imported file is met once for each importer
    given = spec_files(specs)
    apart = {path.resolve() for path in given}
    for path in given:
        try:
            with working(f"checking {path}"):
                module = load([path])
                own = _without(module, apart - {path.resolve()})
                check_forms(own)
                verify_examples(own)
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


def _without(module: Module, files: Set[Path]) -> Module:
    """Return a module without the ops of files that are checked by themselves."""
    ops = tuple(op for op in module.ops if op.span is None or _file(op.span) not in files)
    generics = tuple(op for op in module.generics if _file(op.decl.span) not in files)
    return replace(module, ops=ops, generics=generics)


def _file(span: Span) -> Path:
    return Path(span.source.name).resolve()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
