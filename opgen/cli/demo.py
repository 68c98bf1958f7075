"""`opgen demo`: runs `tools.demo` of the repository; its own options are passed on."""

from __future__ import annotations

import click

from opgen.cli.checkout import run_tool


@click.command("demo", context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Run the generated ops on a photograph and on recorded cases; save a picture and print the agreement.

    Needs a checkout of opgen's repository: run it inside one.
    """
    raise click.exceptions.Exit(run_tool("demo", arguments))
