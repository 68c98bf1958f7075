"""Commands run on bombs, each in a process of its own with little time and memory; a JSON line tells how each ended.

python -m tests.spec.confined COMMANDS NAMES SEEDS     # each a list with `;` between; SEEDS are numbers
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import opgen
import opgen.bindings.generate
import opgen.compiler.artifact
from opgen import cli
from opgen.diagnostics import UserError
from opgen.spec import load_text
from tests.spec import bombs

SECONDS, MEGABYTES = 5, 512
"""What a command may take of the processor, and have resident, on a spec of less than 100 kB."""

ROOM = 2 << 30
"""Bytes of address space: what is not resident (libraries, stacks of threads) counts here too."""

Line = Callable[[Path], list[str]]


@dataclass(frozen=True)
class Ended:
    """How a command ended: `status` is its exit code, or less than 0 the signal that ended it."""

    bomb: str
    command: str
    status: int
    seconds: float
    megabytes: float
    output: str


def _op(path: Path) -> str:
    names = re.findall(r"^op (\w+)", path.read_bytes().decode(), re.MULTILINE)
    return names[-1] if names else "Bomb"


def _inspect(stage: str) -> Line:
    return lambda path: ["inspect", _op(path), "--specs", str(path), "--stage", stage]


COMMANDS: dict[str, Line | None] = {
    "check": lambda path: ["check", str(path)],
    "fmt": lambda path: ["fmt", "--check", str(path)],
    "generate": lambda path: ["generate", str(path), "-o", str(path.parent / "out")],
    "load": None,
    **{f"inspect {stage}": _inspect(stage) for stage in ("spec", "model", "loop")},
}


def confined(bomb: str, text: str, command: str) -> Ended:
    """Runs a command on a text in a child process under limits."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bomb.op"
        path.write_bytes(text.encode())
        child = os.fork()
        if child == 0:
            _run(path, COMMANDS[command])
        _, status, used = os.wait4(child, 0)
        with (path.parent / "log").open("rb") as log:
            output = log.read(2000).decode("utf-8", "replace")
    code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return Ended(bomb, command, code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, output)


def _run(path: Path, line: Line | None) -> None:
    """In the child: never returns."""
    log = os.open(path.parent / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    code = 70
    try:
        if line is None:
            opgen.load(str(path))
            code = 0
        else:
            cli.main(line(path))
    except UserError as error:
        print(str(error)[:1000])
        code = 1
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 0
    except BaseException as error:  # whatever came out is what is asked about
        print(f"{type(error).__name__}: {error}"[:1000])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def ran(commands: list[str], names: list[str], seeds: list[int]) -> Iterator[Ended]:
    load_text("op Warm { input x: float32[n] output y: float32[n] y[i] = x[i] }")
    for bomb, text in bombs.texts(names, seeds).items():
        for command in commands:
            yield confined(bomb, text, command)


if __name__ == "__main__":
    given = [part.split(";") if part else [] for part in sys.argv[1:4]]
    for ended in ran(given[0], given[1] if given[1] != ["all"] else list(bombs.BOMBS), [int(s) for s in given[2]]):
        print(json.dumps(asdict(ended)), flush=True)
