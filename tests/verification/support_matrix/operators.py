"""The matrix of ONNX's operators: all cells, or a few of each operator, judged."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import onnx
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from opgen.grad import load
from opgen.spec.model.model import Module, Version
from tests.verification.support_matrix import on_cuda
from tests.verification.support_matrix.cells import MOST, Cell, cells
from tests.verification.support_matrix.judge import judge
from tests.verification.support_matrix.workers import verdicts

SPECS = Path(__file__).resolve().parents[3] / "specs" / "onnx" / "onnx_ops.op"
STRETCH = 20
"""How many neighbouring cells a process judges at a time."""
FINE = ("right", "refused rightly", "more types", "no meaning", "not compared", "left out")
"""What a cell may be: `tests.verification.support_matrix.meaning` says what the last ones are."""
KINDS = (*FINE, "wrong", "refused", "accepted", "no model")
"""What verdicts begin with."""


def operators(module: Module, names: Sequence[str]) -> list[Version]:
    """The versions of operators whose cells are wanted: all, or those whose op or operator is named."""
    return [v for v in module.versions if not names or v.op in names or v.name in names]


def newest(version: Version) -> int:
    """The newest version of the set that an operator is of."""
    domain = version.name.rpartition(".")[0]
    return int(max(s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.domain == domain))


def judged(names: Sequence[str], seed: int, sample: int | None, jobs: int, how: str = "cpu") -> list[tuple[Cell, str]]:
    """All cells of operators with their verdicts; or of each operator as many as `sample`, those first in its array.

    `how` they run: `cpu`, or as CUDA C on a device (`cuda`) or `emulated`: then calls that are refused do not count
    among those of a sample, having no kernels; what is refused, a CPU shows as well.
    """
    module = load(SPECS)
    if how == "cpu" or sample is None:
        found = [c for v in operators(module, names) for c in cells(module, v, newest(v), seed, sample or MOST)]
    else:
        found = [c for v in operators(module, names) for c in running(module, v, seed, sample)]
    with _kernels(), Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("operators", total=len(found))
        judge_one = (lambda c: judge(c, seed)) if how == "cpu" else (lambda c: on_cuda.judge(c, seed, how))
        said = verdicts(found, judge_one, jobs, STRETCH, lambda n: progress.update(task, completed=n))
    return list(zip(found, said, strict=True))


def running(module: Module, version: Version, seed: int, sample: int) -> list[Cell]:
    """The first cells of an operator that run; the first of all if none does."""
    running = (c for c in cells(module, version, newest(version), seed) if on_cuda.runs(c, seed))
    return list(islice(running, sample)) or list(cells(module, version, newest(version), seed, 1))


@contextmanager
def _kernels() -> Iterator[None]:
    """A cache of its own, so that kernels for cells do not crowd out those in use."""
    before = os.environ.get("OPGEN_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="opgen-matrix-") as folder:
        os.environ["OPGEN_CACHE_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["OPGEN_CACHE_DIR"]
            if before is not None:
                os.environ["OPGEN_CACHE_DIR"] = before


def kind_of(verdict: str) -> str:
    """What a verdict counts as."""
    return verdict.split(":")[0]


def show(found: Sequence[tuple[Cell, str]], most: int) -> int:
    """The counts of each operator that has a cell which is not right, then such cells, and all counts; how many cells
    are not what they may be.
    """
    counts: dict[str, Counter[str]] = {}
    for cell, verdict in found:
        counts.setdefault(cell.op, Counter())[kind_of(verdict)] += 1
    table = Table(title="ONNX's operators: those with cells that are not right", title_justify="left")
    for name in ("op", *KINDS):
        table.add_column(name, justify="left" if name == "op" else "right")
    for op, count in counts.items():
        if any(count[kind] for kind in KINDS if kind not in FINE):
            table.add_row(op, *(str(count[kind]) for kind in KINDS))
    whole = sum(counts.values(), Counter())
    table.add_row(f"all {len(counts)}", *(str(whole[kind]) for kind in KINDS))
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    failures = [(cell, verdict) for cell, verdict in found if kind_of(verdict) not in FINE]
    for cell, verdict in failures[:most]:
        print(f"{verdict}\n    {cell}")
    lacking = Counter((c.operator, v.partition(": ")[2]) for c, v in found if kind_of(v) == "not compared")
    if lacking:
        print("not compared with a reference, but with the interpreter:")
    for (operator, why), times in sorted(lacking.items()):
        print(f"    {times} of {operator}: {why.splitlines()[0]}")
    return len(failures)
