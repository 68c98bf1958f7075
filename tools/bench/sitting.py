"""The whole measurement: for each number of threads fresh workers, for each case their turns."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tools.bench import limits, overheads
from tools.bench.contestants import Contestant, Worker, WorkerError, limits_worker, own_worker, peer_worker
from tools.bench.layers import Case, Tensors
from tools.bench.peers import Found
from tools.bench.results import PLACE, Overhead, Results, Row
from tools.bench.session import measure


@dataclass(frozen=True)
class Options:
    """Options of the measurements and their duration."""

    cases: tuple[Case, ...]
    threads: tuple[int, ...]
    rounds: int
    tensors: Tensors
    module: Path
    overheads: int
    """Number of measurements of each overhead; 0: none of them."""


@dataclass(frozen=True)
class Team:
    """The contestants on a number of threads, ours first, and the reasons why others are missing."""

    contestants: tuple[Contestant, ...]
    versions: dict[str, str]
    missing: dict[str, str]
    yardsticks: tuple[Contestant, ...] = ()


@contextmanager
def team(module: Path, found: Found, threads: int) -> Iterator[Team]:
    """The running workers; one that does not start is missing, with its last words."""
    with ExitStack() as stack:
        workers, missing = [own_worker(module, threads)], dict(found.absent)
        stack.callback(workers[0].close)
        for peer in found.peers:
            try:
                worker: Worker = peer_worker(peer, threads)
            except WorkerError as error:
                missing[peer.title] = str(error)
                continue
            stack.callback(worker.close)
            workers.append(worker)
        machine = limits_worker(threads)
        stack.callback(machine.close)
        contestants = tuple(Contestant(worker, variant) for worker in workers for variant in worker.variants)
        yardsticks = tuple(Contestant(machine, variant) for variant in machine.variants)
        yield Team(contestants, {worker.library: worker.version for worker in workers}, missing, yardsticks)


def run(options: Options, found: Found) -> Results:
    """Return the sitting, with progress on stderr."""
    columns = (SpinnerColumn(), TextColumn("{task.completed}/{task.total} {task.description}"), TimeElapsedColumn())
    rows: list[Row] = []
    extra: list[Overhead] = []
    titles: dict[str, None] = {}
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("limits of the machine", total=len(options.cases) * len(options.threads) + 1)
        for threads in options.threads:
            with team(options.module, found, threads) as members:
                for case in options.cases:
                    progress.update(task, advance=1, description=f"{case.name}, {threads} threads")
                    turns = (options.tensors, options.rounds, members.yardsticks)
                    rows.append(measure(case, threads, members.contestants, *turns))
                titles |= dict.fromkeys(c.title for c in members.contestants)
                versions |= members.versions
                missing |= members.missing
                if options.overheads and not extra:
                    progress.update(task, description="overheads")
                    extra = _overheads(options, members.contestants)
        bounds = tuple(limits.measure(n) for n in options.threads)
    own, *peers = titles
    machine = {"Python": platform.python_version(), "machine": platform.machine()}
    machine[PLACE] = f"{options.tensors.offset} bytes behind a cache line"
    return Results(tuple(rows), bounds, tuple(extra), {**versions, **machine}, own, tuple(peers), missing)


def _overheads(options: Options, contestants: Sequence[Contestant]) -> list[Overhead]:
    return [
        *overheads.tiny_calls(contestants, options.rounds),
        *overheads.builds(options.module, options.overheads),
        *overheads.commands(options.overheads),
    ]
