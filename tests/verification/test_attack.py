"""The campaign of attacks, short and with a fixed seed; and that it finds what it should where something is planted."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from opgen.diagnostics import InternalError
from tests.verification.attack.__main__ import main
from tests.verification.attack.campaign import Campaign
from tests.verification.attack.finding import FoundError, Target
from tests.verification.attack.targets import TARGETS
from tests.verification.attack.targets.language import Language

SEED = 22
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_nothing_gives_way(name: str) -> None:
    """In a process of its own, as people run it: attempts are forked, which wants a process without threads."""
    command = [sys.executable, "-m", "tests.verification.attack", name, "--seed", str(SEED), "--minutes", "0.02"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^{name}: [1-9]\d* attempts in \d+ s, 0 findings$", done.stdout, re.MULTILINE), done.stdout


def test_every_construct_of_the_language_is_among_what_is_mutated(tmp_path: Path) -> None:
    target = Language(tmp_path)
    target.prepare()
    texts = [shared + op for shared, op, _ in target.cases]
    constructs = (r" (add|mul|max|min|set)= ", r"(as|des)cending\[", r"\[t - 1,", r"^  count ", r"^op Attention ",
                  r"philox", r"^  static ", r"^inputs|  inputs ", r"^  rank ", r"^  algorithm ", r"^  constant ",
                  r"^  gradient of ", r"^  sizes ", r"^function ", r"^fragment ", r" layout ")  # fmt: skip
    assert [c for c in constructs if not any(re.search(c, text, re.MULTILINE) for text in texts)] == []


class Planted(Target):
    """Goes wrong at certain seeds."""

    name = "planted"
    batch = 4
    seconds = 0.3
    memory = 64 << 20

    def prepare(self) -> None:
        """Nothing is shared."""

    def attempt(self, choose: random.Random) -> None:
        match seed_of(choose):
            case 1:
                os.kill(os.getpid(), 11)
            case 2:
                raise FoundError("found 7 of them", "here")
            case 5:
                while True:
                    pass
            case 6:
                bytearray(1 << 30)
            case 7:
                raise InternalError("two is three")


def seed_of(choose: random.Random) -> int:
    """The small seed that a source was made from."""
    state = choose.getstate()
    return next(n for n in range(100) if random.Random(n).getstate() == state)


def test_what_is_planted_is_found(tmp_path: Path) -> None:
    """A crash, a hang, too much memory and errors, each with its seed; those beside them in a process go on."""
    tally = Campaign(Planted(tmp_path), 0).run(60, attempts=10)
    assert tally.attempts == 10
    kinds = {f.seed: f.kind for f in tally.findings}
    assert kinds[1] == "ended by SIGSEGV"
    assert kinds[2] == "found 7 of them"
    assert kinds[5] == "more than 0.3 s of processor time"
    assert kinds[6].startswith("MemoryError")
    assert kinds[7].startswith("InternalError")
    assert sorted(kinds) == [1, 2, 5, 6, 7]
    assert tally.findings[1].group == "found # of them"


def test_time_ends_it(tmp_path: Path) -> None:
    class Idle(Planted):
        """Nothing goes wrong."""

        def attempt(self, choose: random.Random) -> None:
            time.sleep(0.01)

    begin = time.monotonic()
    tally = Campaign(Idle(tmp_path), 0).run(0.3)
    assert tally.findings == []
    assert 3 < tally.attempts < 40
    assert time.monotonic() - begin < 5


def test_the_command_tells_how_to_make_a_finding_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "calls", Planted)
    result = CliRunner().invoke(main, ["calls", "--seed", "1", "--attempts", "2"])
    assert result.exit_code == 1
    assert "calls: 2 attempts in" in result.output
    again = "python -m tests.verification.attack planted --seed 2 --attempts 1"
    assert f"planted: 1 times: found 7 of them\n    {again}\n    | here\n" in result.output
    assert CliRunner().invoke(main, ["calls", "--seed", "8", "--attempts", "2"]).exit_code == 0


def test_the_targets_are_listed() -> None:
    result = CliRunner().invoke(main, ["--list"])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == sorted(TARGETS)
