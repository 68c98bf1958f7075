"""The command line as a whole: its help, its errors, its exit codes."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from opgen.cli import COMMANDS, main
from opgen.cli.errors import INTERNAL_ERROR, USER_ERROR, colored, reported
from opgen.diagnostics import Diagnostic, DiagnosticError, InternalError, Source, Span, UserError


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "opgen", *arguments], capture_output=True, text=True, check=False)


def test_help_lists_every_command_with_its_line() -> None:
    result = run("--help")
    assert result.returncode == 0
    for name, line in COMMANDS.items():
        assert f"  {name} " in result.stdout
        assert line.split(";")[0] in result.stdout


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from opgen.cli import main\n"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0\n"
        "heavy = {'numpy', 'llvmlite', 'lark', 'jinja2', 'rich', 'pygments', 'ml_dtypes'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_command_has_a_help_page() -> None:
    for name in COMMANDS:
        if name not in ("bench", "demo"):  # those two start a program of the repository: tests/tools
            result = CliRunner().invoke(main, [name, "--help"])
            assert result.exit_code == 0, (name, result.output)
            assert result.output.startswith(f"Usage: main {name}")


def test_a_misspelt_command_is_a_usage_error_with_a_hint() -> None:
    result = run("ispect")
    assert result.returncode == 2
    assert "no such command 'ispect'; did you mean 'inspect'?" in result.stderr
    assert result.stdout == ""


def test_version() -> None:
    result = run("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("opgen ")


def failing(error: BaseException) -> click.Command:
    """A command that raises."""

    @click.command()
    def command() -> None:
        with reported():
            raise error

    return command


def span() -> Span:
    return Span(Source("a.op", "op X {\n  bad line\n}\n"), 2, 3, 2, 6)


def test_diagnostics_are_rendered_and_counted() -> None:
    error = DiagnosticError([Diagnostic("S001", "not good", span(), "be good"), Diagnostic("S002", "also not good")])
    result = CliRunner().invoke(failing(error))
    assert result.exit_code == USER_ERROR
    assert result.stdout == ""
    assert result.stderr == (
        "a.op:2:3: error[S001]: not good\n"
        "   |\n"
        " 2 |   bad line\n"
        "   |   ^^^\n"
        "   = help: be good\n"
        "\n"
        "error[S002]: also not good\n"
        "\n"
        "2 errors; 'opgen explain S001' says more\n"
    )


def test_carets_are_green_on_a_terminal() -> None:
    shown = colored(Diagnostic("S001", "not good", span()).render())
    assert "\x1b[31m\x1b[1merror[S001]\x1b[0m" in shown
    assert "\x1b[32m\x1b[1m^^^\x1b[0m" in shown
    assert click.unstyle(shown) == Diagnostic("S001", "not good", span()).render()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UserError("no such thing"), USER_ERROR, "error: no such thing\n"),
        (FileNotFoundError(2, "No such file", "x.op"), USER_ERROR, "error: x.op: No such file\n"),
        (
            InternalError("two is three"),
            INTERNAL_ERROR,
            "internal error: InternalError: two is three\n"
            "This is a bug in opgen, not in your input (OPGEN_DEBUG=1 prints the traceback).\n",
        ),
        (
            KeyError("x"),
            INTERNAL_ERROR,
            "internal error: KeyError: 'x'\n"
            "This is a bug in opgen, not in your input (OPGEN_DEBUG=1 prints the traceback).\n",
        ),
    ],
)  # fmt: skip
def test_errors_have_a_message_and_an_exit_code(
    error: Exception, code: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPGEN_DEBUG", raising=False)
    result = CliRunner().invoke(failing(error))
    assert (result.exit_code, result.stderr, result.stdout) == (code, message, "")


def test_the_traceback_of_a_bug_is_there_for_those_who_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_DEBUG", "1")
    result = CliRunner().invoke(failing(KeyError("x")))
    assert "Traceback (most recent call last)" in result.stderr
