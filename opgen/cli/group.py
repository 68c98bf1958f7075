"""A click group that imports a command's module only when that command runs, and reports every error in one way."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any, NoReturn, TypeAlias

import click

from opgen.cli import streams
from opgen.cli.errors import USER_ERROR, reported, say
from opgen.cli.interrupts import ended_in_machine_code
from opgen.cli.settings import with_settings
from opgen.diagnostics import InternalError

INTERRUPTED = 130
"""Exit code after Ctrl-C, by the shell's custom: 128 and the signal's number."""

Resolved: TypeAlias = tuple[str | None, click.Command | None, list[str]]


class OpgenGroup(click.Group):
    """Commands live in `opgen.cli.NAME` under the name `command`; `commands_help` is each one's line of help."""

    def __init__(self, *args: Any, commands_help: Mapping[str, str], **kwargs: Any) -> None:  # click's own signature
        super().__init__(*args, **kwargs)
        self.commands_help = commands_help

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:  # click's own signature
        """Run the command line and exit with its exit code, even if stdout and stderr are broken."""
        streams.complete()
        with streams.ended_by_signals(), ended_in_machine_code():
            code = self._code(*args, **{**kwargs, "standalone_mode": False})
        sys.exit(code if streams.flush() else code or USER_ERROR)

    def _code(self, *args: Any, **kwargs: Any) -> int | str:
        try:
            result = super().main(*args, **kwargs)
        except click.ClickException as error:
            try:
                error.show()
            except OSError:
                streams.hush(2)
            return error.exit_code
        except click.Abort:
            say("interrupted")
            return INTERRUPTED
        except SystemExit as error:
            return error.code or 0
        except OSError as error:  # commands report theirs: this one is of help that nobody takes
            say(f"error: {error.strerror or error}")
            streams.hush(1)
            return USER_ERROR
        return result if isinstance(result, int) else 0

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands_help)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands_help:
            return None
        command = importlib.import_module(f"opgen.cli.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise InternalError(f"opgen.cli.{cmd_name}.command is not a command")
        return with_settings(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.commands_help.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.commands_help and not name.startswith("-"):
            raise click.UsageError(unknown("command", name, self.commands_help), ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        with reported():
            return super().invoke(ctx)


def unknown(kind: str, name: str, known: Mapping[str, str]) -> str:
    """Return the sentence for a misspelt name, with the nearest known one."""
    from opgen.diagnostics import did_you_mean

    hint = did_you_mean(name, known)
    return f"no such {kind} '{name}'" + (f"; {hint}" if hint else "")
