"""A matrix product scheduled by hand, step by step, as `specs/SCHEDULES.md` tells it: its speed after each step.

    python -m tools.by_hand                 the page's schedules, interleaved, in one thread
    python -m tools.by_hand --rounds 21     medians of more rounds

The schedules are read from the page.  Speeds are shares of the automatic schedule's (1.00), on this machine.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

import click

from opgen.compiler import toolchain
from opgen.compiler.artifact import Artifact
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, OpVariant
from opgen.grad import load
from opgen.loop.nodes import Kernel
from opgen.lower import variant_of
from opgen.runtime.measuring.tuner import Runner
from opgen.runtime.threads import set_num_threads
from opgen.schedule.parse import parse_steps
from opgen.schedule.schedule import Schedule, apply
from opgen.spec import solve

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "specs" / "SCHEDULES.md"
SPEC = ROOT / "tools" / "common_ops.op"
OP = "MatMul"
SIZES = (480, 1024, 1024)
"""Rows, depth and columns; rows of `b` are 4 KiB apart."""
STAGE = re.compile(r"^### (?P<title>[^\n]+)\n.*?```schedule\n(?P<steps>.*?)```", re.MULTILINE | re.DOTALL)


def stages(page: str) -> list[tuple[str, str]]:
    """Return the (title, schedule) pairs of a page, in its order."""
    return [(match["title"], match["steps"]) for match in STAGE.finditer(page)]


def product(sizes: tuple[int, int, int] = SIZES) -> Artifact:
    """Return the product of matrices of these sizes, float32, for this machine."""
    module = load(SPEC)
    op = module.op(OP)
    rows, depth, columns = sizes
    call = solve(op, module, {"a": (rows, depth), "b": (depth, columns)}, {}, {})
    source = OpVariant(module, op, variant_of(op, {"T": "float32"}, {}))
    return artifact(Compilation(source, toolchain.host(), call))


def by_hand(plain: Kernel, steps: str) -> Kernel:
    """Return a kernel after the steps of a schedule's text."""
    return apply(plain, Schedule(parse_steps(steps)))


def medians(kernels: Sequence[Kernel], rounds: int) -> list[float]:
    """Seconds of one run of each kernel, measured in turns in one thread."""
    runner = Runner(kernels[0], (), toolchain.host(), seed=0)
    candidates = [runner.build(kernel) for kernel in kernels]
    times = [[c.seconds() for c in candidates] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


@click.command(help=__doc__)
@click.option("--rounds", default=7, show_default=True, help="Rounds of which the median is taken.")
def main(rounds: int) -> None:
    made = product()
    found = stages(PAGE.read_text())
    kernels = [made.scheduled, made.loop, *(by_hand(made.loop, steps) for _, steps in found)]
    set_num_threads(1)
    automatic, *others = medians(kernels, rounds)
    for title, seconds in zip(("No schedule", *(title for title, _ in found)), others, strict=True):
        click.echo(f"{automatic / seconds:5.2f}  {title}")


if __name__ == "__main__":
    main()
