"""The command line run in this process, judged by its exit code and what it says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from click.testing import CliRunner

from opgen.cli import main
from tests.verification.attack.finding import FoundError, described

CODES = (0, 1, 2)
"""Exit codes of a command line, right or wrong; 3 is a bug."""


def run(arguments: Sequence[str], shown: str = "") -> str:
    """The output of a command line.  Raises FoundError if it ends otherwise than in success or in a typed message."""
    result = CliRunner().invoke(main, list(arguments), env={"OPGEN_DEBUG": "1"})
    line = f"opgen {shlex.join(arguments)}\n{shown}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise FoundError(f"escaped: {described(result.exception)}", line)
    if result.exit_code not in CODES:
        said = re.search(r"(?m)^(internal error: .*)$", result.stderr)
        places = re.findall(r'File ".*?/opgen/(\S+?)", line (\d+)', result.stderr)
        where = ":".join(places[-1]) if places else ""
        raise FoundError(
            f"exit code {result.exit_code} {where} {said[1][:150] if said else ''}", line + result.stderr[-1500:]
        )
    if result.exit_code and not result.output.strip():
        raise FoundError(f"exit code {result.exit_code} without a word", line)
    return result.stdout
