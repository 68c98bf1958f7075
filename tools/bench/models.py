"""Whole models compared with ONNX Runtime: correctness at two sizes each, time in turns, time until ready, memory."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from opgen.cli.progress import working
from tools.bench.contestants import Worker, WorkerError
from tools.bench.peers import Found, Peer
from tools.models.manifest import Input, Manifest, read_all, write

TOLERANCE = 1e-3
"""The most that a float of a result may differ, of the largest; integers are equal."""
LIMIT = 900.0
"""Seconds that a worker may take over one answer."""
LONG = 0.05
"""Seconds of a run from which on one sample a turn is enough."""
PEER = "ONNX Runtime"

Array = npt.NDArray[Any]
Results = dict[str, Array]


@dataclass
class Row:
    """A model at one of its sizes.  `seconds`, `ready` (s) and `bytes` are by contestant; ours and the peer's."""

    model: str
    size: int
    shapes: str
    refused: str = ""
    wrong: str = ""
    compared: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """In one word."""
        if self.refused:
            return "refused"
        return "wrong" if self.wrong else "right" if self.compared else "runs"

    @property
    def ratio(self) -> float | None:
        """Return the peer's time over ours: above 1, ours is faster."""
        if len(self.seconds) < 2:
            return None
        own, peer = self.seconds.values()
        return peer / own


def compare(
    folder: Path, names: Sequence[str], found: Found, threads: int, rounds: int, seed: int, tell: Callable[[str], None]
) -> list[Row]:
    """Return every model of the folder (or those named) at each of its sizes; FileNotFoundError if one is missing."""
    peer = next((p for p in found.peers if p.title == PEER), None)
    rows: list[Row] = []
    for manifest in read_all(folder, names):
        tell(manifest.name)
        made = of_model(folder, manifest, peer, threads, rounds, seed)
        for row in made:
            print(f"{row.model} at {row.shapes}: {row.state}", file=sys.stderr, flush=True)
        rows += made
    return rows


def report(
    console: Console, folder: Path, names: Sequence[str], found: Found, threads: int, rounds: int, seed: int
) -> bool:
    """Compares, with progress on stderr, and prints the table; whether all are right."""
    with working("models") as tell:
        rows = compare(folder, names, found, threads, rounds, seed, tell)
    show(console, rows, found)
    return bool(rows) and all(row.state in ("right", "runs") for row in rows)


def changing(
    folder: Path, name: str, axis: int, sizes: Sequence[int], found: Found, seed: int, tell: Callable[[str], None]
) -> list[Row]:
    """Run a model at many sizes of the last input's dimension `axis`, one after the other in one process; no times."""
    manifest = read_all(folder, [name])[0]
    peer = next((p for p in found.peers if p.title == PEER), None)
    tell(f"{name}: {len(sizes)} sizes")
    with tempfile.TemporaryDirectory() as scratch:
        model = Path(scratch) / manifest.model.name
        model.symlink_to(manifest.model.resolve())
        varied = [tuple(_resized(i, axis, size) for i in manifest.sizes[0]) for size in sizes]
        many = Manifest(name, model, manifest.about, tuple(varied))
        write(many)
        return of_model(Path(scratch), many, peer, 1, 0, seed)


def _resized(entry: Input, axis: int, size: int) -> Input:
    return replace(entry, shape=(*entry.shape[:axis], size, *entry.shape[axis + 1 :]))


def show_changing(console: Console, rows: Sequence[Row]) -> bool:
    """Print the numbers of correct models and of programs, and the final memory; return True if all is well."""
    bad = [row for row in rows if row.state not in ("right", "runs")]
    for row in bad:
        why = row.refused or row.wrong
        console.print(f"{row.state}: {row.model} at {row.shapes}: {why}", markup=False, highlight=False, soft_wrap=True)
    facts = [row.facts.get("opgen", {}) for row in rows]
    programs = max((int(f.get("programs", 0)) for f in facts), default=0)
    grown = [
        sum(f.get("bytes", 0.0) for f in half) / 2**20 for half in (facts[: len(facts) // 2], facts[len(facts) // 2 :])
    ]
    console.print(
        f"{len(rows) - len(bad)} of {len(rows)} sizes are right; at most {programs} programs; memory grew by "
        f"{grown[0]:.0f} MiB in the first half, {grown[1]:.0f} MiB in the second",
        highlight=False,
    )
    return bool(rows) and not bad


def of_model(folder: Path, manifest: Manifest, peer: Peer | None, threads: int, rounds: int, seed: int) -> list[Row]:
    """Return a model, in processes of its own."""
    with ExitStack() as stack:
        workers = {"opgen": Worker(sys.executable, "model_worker", threads, limit=LIMIT)}
        if peer is not None:
            workers[PEER] = Worker(peer.python, "onnxruntime_model_worker", threads, limit=LIMIT)
        for worker in workers.values():
            stack.enter_context(closing(worker))
        rows = []
        for size, inputs in enumerate(manifest.sizes):
            row = Row(manifest.name, size, ", ".join("x".join(map(str, i.shape)) for i in inputs[:1]))
            case = {"manifest": str((folder / f"{manifest.name}.json").resolve()), "size": size}
            measure(row, case, workers, rounds, seed)
            rows.append(row)
        return rows


def measure(row: Row, case: dict[str, Any], workers: dict[str, Worker], rounds: int, seed: int) -> None:
    """Fills in a row: results compared, then time in turns."""
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as scratch:
        results: dict[str, Results] = {}
        for number, (title, worker) in enumerate(workers.items()):
            path = Path(scratch) / f"{number}.npz"
            request = {"variant": "", "case": case, "seed": seed, "offset": 0, "result": str(path)}
            try:
                answer = worker.ask({"do": "prepare", **request})
            except WorkerError as error:
                if title == PEER:
                    continue
                row.refused = str(error)
                return
            seconds, facts = answer["seconds"], answer["facts"]
            counts[title] = 1 if isinstance(seconds, float) and seconds > LONG else 3
            row.facts[title] = facts if isinstance(facts, dict) else {}
            results[title] = load(path)
        if len(results) == 2:
            row.compared, row.wrong = True, difference(*results.values())
    taken: dict[str, list[float]] = {title: [] for title in counts}
    for turn in range(rounds):
        for title in list(counts)[:: 1 if turn % 2 else -1]:
            taken[title] += workers[title].time(counts[title])
    row.seconds = {title: statistics.median(times) for title, times in taken.items() if times}
    for worker in workers.values():
        worker.ask({"do": "forget"})


def load(path: Path) -> Results:
    """Load the results of a model that `protocol.save` wrote."""
    with np.load(path) as file:
        return {str(name): file[f"arr_{number}"] for number, name in enumerate(file["names"])}


def difference(ours: Results, theirs: Results) -> str:
    """Return the error of our results; empty if there is none."""
    if list(ours) != list(theirs):
        return f"results {', '.join(ours)} instead of {', '.join(theirs)}"
    return "; ".join(f"{name}: {why}" for name in ours if (why := _unlike(ours[name], theirs[name])))


def _unlike(own: Array, right: Array) -> str:
    if (own.dtype, own.shape) != (right.dtype, right.shape):
        return f"{own.dtype}{list(own.shape)} instead of {right.dtype}{list(right.shape)}"
    if own.dtype.kind not in "fV":
        count = int(np.count_nonzero(own != right))
        return f"{count} of {own.size} elements differ" if count else ""
    own, right = own.astype(np.float64), right.astype(np.float64)
    strange = ~(np.isfinite(own) & np.isfinite(right))
    if not np.array_equal(own[strange], right[strange], equal_nan=True):
        return "infinities or NaNs elsewhere"
    own, right = own[~strange], right[~strange]
    gap, largest = (float(np.abs(a).max(initial=0.0)) for a in (own - right, right))
    return "" if gap <= TOLERANCE * largest else f"differs by {gap / largest if largest else gap:.2g} of the largest"


def losses_first(rows: Sequence[Row]) -> list[Row]:
    """Return wrong and refused ones, then the slowest compared with the peer."""
    order = {"wrong": 0, "refused": 1, "runs": 2, "right": 3}
    return sorted(rows, key=lambda r: (order[r.state], r.ratio or 0.0, r.model, r.size))


def show(console: Console, rows: Sequence[Row], found: Found) -> None:
    """The table, and a summary behind it."""
    if PEER in found.absent:
        console.print(f"absent: {PEER}: {found.absent[PEER]}", markup=False, highlight=False, soft_wrap=True)
    table = Table(title=f"models beside {PEER} (speed above 1: opgen is faster), worst first", title_justify="left")
    for name in ("model", "size", "result"):
        table.add_column(name)
    for name in ("ms", "peer's", "speed", "ready s", "peer's", "MiB", "peer's"):
        table.add_column(name, justify="right")
    ordered = losses_first(rows)
    for row in ordered:
        ratio = row.ratio
        speed = "" if ratio is None else f"[{'red' if ratio < 1 else 'green'}]{ratio:.2f}[/]"
        pairs = [_cells(row, title) for title in ("opgen", PEER)]
        times, ready, memory = zip(*pairs, strict=True)
        state = row.state if row.state == "right" else f"[red]{row.state}[/]"
        table.add_row(row.model, row.shapes, state, *times, speed, *ready, *memory)
    console.print(table)
    for row in ordered:
        if why := row.refused or row.wrong:
            text = f"{row.state}: {row.model} at {row.shapes}: {why}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    models = {row.model for row in rows}
    good = models - {row.model for row in rows if row.state not in ("right", "runs")}
    console.print(f"{len(good)} of {len(models)} models are right at all their sizes", highlight=False)


def _cells(row: Row, title: str) -> tuple[str, str, str]:
    """Milliseconds of a run, seconds until ready, MiB that it took."""
    seconds, facts = row.seconds.get(title), row.facts.get(title, {})
    times = "" if seconds is None else f"{seconds * 1e3:.3f}"
    ready, memory = facts.get("ready"), facts.get("bytes")
    return times, "" if ready is None else f"{ready:.2f}", "" if memory is None else f"{memory / 2**20:.0f}"
