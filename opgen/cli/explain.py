"""`opgen explain`: what a code of a diagnostic means, with an example and the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from opgen.cli.as_json import JSON, explained, print_json
from opgen.cli.errors import colored
from opgen.diagnostics import DiagnosticError, InternalError, UserError, brief, did_you_mean

if TYPE_CHECKING:
    from opgen.diagnostics.codes.code import Code

ENDINGS = {"spec": "op", "loop": "loop", "schedule": "schedule", "graph": "graph"}
"""Endings of files with each language."""


@click.command("explain")
@click.argument("name", metavar="CODE", required=False)
@JSON
def command(name: str | None, as_json: bool) -> None:
    """Says what a code such as S012 means: an explanation, an example that draws it, the remedy.

    Without CODE, it lists all codes.
    """
    from opgen.diagnostics.codes import CODES

    if name is None and as_json:
        print_json([explained(code) for code in CODES.values()])
    elif name is None:
        for code in CODES.values():
            click.echo(f"{click.style(f'{code.name:14}', fg='red', bold=True)} {code.title}")
    elif as_json:
        found = find(name)
        print_json({**explained(found), "message": str(drawn(found))})
    else:
        _print(find(name))


def find(name: str) -> Code:
    """Return the code of a name, in any case; raise UserError for an unknown one."""
    from opgen.diagnostics.codes import CODES

    folded = {known.lower(): code for known, code in CODES.items()}
    if name.lower() not in folded:
        hint = did_you_mean(name, CODES) or "'opgen explain' lists all"
        raise UserError(f"unknown code '{brief(name)}'; {hint}")
    return folded[name.lower()]


def _print(code: Code) -> None:
    """Print a code for people."""
    click.echo(f"{click.style(code.name, fg='red', bold=True)}: {click.style(code.title, bold=True)}\n")
    click.echo(f"{code.explanation}\n\nFor example, this {_noun(code)}:\n")
    click.echo(_indented(code.example))
    click.echo("draws:\n")
    for diagnostic in drawn(code).diagnostics:
        click.echo(_indented(colored(diagnostic.render()) + "\n"))
    click.echo(f"{click.style('remedy', fg='green', bold=True)}: {code.remedy}")


def _noun(code: Code) -> str:
    return {"spec": "spec", "loop": "listing", "schedule": "schedule", "graph": "text"}[code.language]


def _indented(text: str) -> str:
    return "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))


def drawn(code: Code) -> DiagnosticError:
    """Return the error that a code's example draws, found as for any other text."""
    try:
        _read(code, f"{code.name}.{ENDINGS[code.language]}")
    except DiagnosticError as error:
        return error
    raise InternalError(f"the example of {code.name} draws no error")


def _read(code: Code, name: str) -> None:
    """Read an example as the commands do that take such a text."""
    match code.language:
        case "spec":
            from opgen.examples import verify_examples
            from opgen.grad import load_text
            from opgen.spec.generic.forms import check_forms

            module = load_text(code.example, name)
            check_forms(module)
            verify_examples(module)
        case "loop":
            from opgen.loop.parse import parse_kernel

            parse_kernel(code.example, name)
        case "schedule":
            from opgen.schedule.parse import parse_steps

            parse_steps(code.example, name)
        case "graph":
            from opgen.graph.ir.text import parse_graph

            parse_graph(code.example, {}, name)
