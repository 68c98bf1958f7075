"""How errors reach the person at the terminal: on stderr, with an exit code, without a traceback."""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from opgen.cli.streams import hush
from opgen.diagnostics import DiagnosticError, UserError

USER_ERROR = 1
"""Exit code for a mistake of the user (click itself exits with 2 for a wrong command line)."""

INTERNAL_ERROR = 3
"""Exit code for a bug in opgen."""


@contextmanager
def reported() -> Iterator[None]:
    """Turns every error inside into a message on stderr and an exit code."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except DiagnosticError as error:
        show_diagnostics(error)
        raise click.exceptions.Exit(USER_ERROR) from error
    except UserError as error:
        fail(str(error))
    except BrokenPipeError as error:
        hush(1)
        raise click.exceptions.Exit(USER_ERROR) from error
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        fail(f"{where}{error.strerror or error}")
    except Exception as error:  # whatever else comes here is a bug, and must not look like the user's
        show_bug(error)
        raise click.exceptions.Exit(INTERNAL_ERROR) from error


def say(text: str) -> None:
    """Print a line on stderr; if nobody can read it, the exit code says enough."""
    try:
        click.echo(text, err=True)
    except OSError:
        hush(2)


def fail(message: str) -> NoReturn:
    """Prints `error: message` and leaves with the exit code of a user's mistake."""
    say(click.style("error", fg="red", bold=True) + f": {message}")
    raise click.exceptions.Exit(USER_ERROR)


def show_diagnostics(error: DiagnosticError) -> None:
    """Show every diagnostic with its place and caret, then how many there were and which command says more."""
    for diagnostic in error.diagnostics:
        say(colored(diagnostic.render()) + "\n")
    count = len(error.diagnostics)
    first = error.diagnostics[0].code
    say(f"{count} error{'s' if count != 1 else ''}; 'opgen explain {first}' says more")


def colored(rendered: str) -> str:
    """Return a rendered diagnostic with the code in red and the caret in green (click drops colours off a terminal)."""
    rendered = re.sub(r"error\[[^\]]*\]", lambda m: click.style(m[0], fg="red", bold=True), rendered, count=1)
    return re.sub(r"(?m)(?<=\| )( *)(\^+)$", lambda m: m[1] + click.style(m[2], fg="green", bold=True), rendered)


def show_bug(error: Exception) -> None:
    """Says that the fault is opgen's; the traceback only if `OPGEN_DEBUG` asks for it."""
    kind = type(error).__name__
    say(click.style("internal error", fg="red", bold=True) + f": {kind}: {error}")
    if os.environ.get("OPGEN_DEBUG") == "1":
        say("".join(traceback.format_exception(error)))
        hint = "the traceback is above"
    else:
        hint = "OPGEN_DEBUG=1 prints the traceback"
    say(f"This is a bug in opgen, not in your input ({hint}).")
