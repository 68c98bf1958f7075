"""`opgen bench`: runs `tools.bench` of the repository; its own options are passed on."""

from __future__ import annotations

import click

from opgen.cli.checkout import run_tool


@click.command("bench", context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> None:
    """Compare speed with installed libraries and the machine's limits (see `opgen bench --help`).

    Needs a checkout of opgen's repository: run it inside one.
    """
    raise click.exceptions.Exit(run_tool("bench", arguments))
