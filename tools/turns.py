"""How long calls of the benchmark's layers take beside those of another commit, both in turns.

    python -m tools.turns HEAD~1                 200 calls, by chance
    python -m tools.turns v0.3 --count 1200      of three directions, two layouts, four types, one image and eight
    python -m tools.turns HEAD~1 --rows changed  those that a file names, as `tools.schedules against` prints them

Each commit has a process of its own on the same processors, and they take turns at every call; both have the same
numbers.  Ratios are of medians, the other commit's time over this one's: above 1 this one is faster.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from tools.bench.contestants import ROOT, Contestant, Worker, own_worker
from tools.bench.layers import DIRECTIONS, DTYPES, FORMATS, LAYERS, Case, Choice, Tensors, read_cases
from tools.bench.session import LONG

SLOWER = 0.95
"""Calls whose ratio is below are listed."""


@dataclass(frozen=True)
class Turns:
    """A call by its name, and the seconds that it takes by the other commit and by this one."""

    name: str
    other: float
    this: float

    @property
    def ratio(self) -> float:
        return self.other / self.this


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A commit's files, for a moment; raises UsageError if there is no such commit."""
    with tempfile.TemporaryDirectory() as folder:
        tree = str(Path(folder) / "tree")
        if _git("worktree", "add", "--detach", tree, commit):
            raise click.UsageError(f"argument 'commit': expected a commit of this repository, given {commit!r}")
        try:
            yield Path(tree)
        finally:
            _git("worktree", "remove", "--force", tree)


def _git(*words: str) -> int:
    return subprocess.run(["git", *words], cwd=ROOT, check=False, capture_output=True).returncode


def some_cases(count: int, seed: int, rows: str | None = None) -> list[Case]:
    """Return as many calls of the benchmark's layers, by chance; of those that begin a line of `rows`, if any."""
    everything = read_cases(LAYERS, Choice((1, 8), DIRECTIONS, FORMATS, DTYPES))
    if rows is not None:
        named = {line.partition(":")[0] for line in rows.splitlines()}
        everything = [case for case in everything if case.name in named]
    return random.Random(seed).sample(everything, min(count, len(everything)))


def measured(cases: Sequence[Case], roots: tuple[Path, Path], threads: int, rounds: int) -> Iterator[Turns]:
    """Yield each call by the checkouts at two roots, in turns; the first is the other commit's."""
    with ExitStack() as stack:
        workers: list[Worker] = []
        for root in roots:
            workers.append(own_worker(root / "generated" / "nn_ops.py", threads, root))
            stack.callback(workers[-1].close)
        both = [Contestant(worker, worker.variants[0]) for worker in workers]
        for case in cases:
            samples = 1 if max([c.prepare(case, Tensors(), None) for c in both]) > LONG else 3
            taken: tuple[list[float], list[float]] = ([], [])
            for turn in range(rounds):
                for at in (0, 1) if turn % 2 else (1, 0):
                    taken[at].extend(both[at].time(samples))
            for c in both:
                c.forget()
            yield Turns(case.name, *map(statistics.median, taken))


def report(turns: Sequence[Turns]) -> Iterator[str]:
    """Yield the calls that take longer, the worst first, and the mean."""
    for t in sorted((t for t in turns if t.ratio < SLOWER), key=lambda t: t.ratio):
        yield f"{t.ratio:5.2f}  {t.name}: {1e6 * t.other:.0f} us, now {1e6 * t.this:.0f}"
    mean = statistics.geometric_mean([t.ratio for t in turns])
    yield f"{mean:5.3f} times as fast in the geometric mean of {len(turns)} calls"


@click.command(help=__doc__)
@click.argument("commit")
@click.option("--count", type=click.IntRange(1), default=200, show_default=True, help="Calls.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the choice of calls.")
@click.option("--rows", type=click.File(), help="Names of calls, one a line; what follows a colon is passed over.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=7, show_default=True, help="Turns at each call.")
def main(commit: str, count: int, seed: int, rows: TextIO | None, threads: int, rounds: int) -> None:
    cases = some_cases(count, seed, None if rows is None else rows.read())
    if not cases:
        raise click.UsageError("argument 'rows': expected a name of a call of the layers, given none")
    with checked_out(commit) as tree:
        turns = list(measured(cases, (tree, ROOT), threads, rounds))
    for line in report(turns):
        click.echo(line)


if __name__ == "__main__":
    main()
