"""The command line: `opgen COMMAND`.  One command a file; nothing heavy is imported before a command needs it."""

from __future__ import annotations

import click

from opgen.cli.group import OpgenGroup

COMMANDS = {
    "new": "Write a commented spec to start from.",
    "generate": "Write typed modules and documentation from specs.",
    "build": "Compile C and C++ libraries ahead of time.",
    "check": "Check specs; show every mistake with its place.",
    "fmt": "Bring specs into the one layout.",
    "run": "Run a model: shapes, time, memory.",
    "explain": "Say what a code of an error means, with an example.",
    "inspect": "Print what becomes of an op or a model, stage by stage.",
    "tune": "Look for faster schedules by measuring.",
    "bench": "Compare speed with other libraries and limits; needs a checkout.",
    "demo": "Run the ops on a photograph and recorded cases; needs a checkout.",
    "doctor": "Say what this machine offers and what opgen found.",
    "cache": "Show or clear the cache of built kernels.",
}
"""Each command and its line in `opgen --help`; the command itself is in the module of that name."""


@click.group(cls=OpgenGroup, commands_help=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="opgen", message="opgen %(version)s")
def main() -> None:
    """Operators from specs: typed APIs, checks, documentation and fast kernels, every stage open to inspection."""
