"""The schedules of all benchmark rows, as hashes, and which of them another version of the scheduler makes otherwise.

    python -m tools.schedules write base.json                 # of this checkout
    python -m tools.schedules --sample 200 compare base.json  # of this checkout, with those of a file
    python -m tools.schedules --sample 200 against HEAD~1     # with those of another commit, checked out for a moment
    python -m tools.schedules --machine 64x2 show r50_4_1x1/1/forward

Rows are the benchmark's layers (three directions, two layouts, four types, one image and eight), each by its definition
and by its algorithms, the ops of `tools.bench_ops`, and random layers; machines are of 16, 32 and 64 bytes a vector and
one with a matrix unit, each with one core and with two.  Of each the schedule and the legalised kernel are hashed.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

import click

from opgen.compiler import toolchain
from opgen.compiler.choose import choose, definition_of, takes
from opgen.compiler.request import Compilation, OpVariant
from opgen.grad import load
from opgen.loop.nodes import Kernel
from opgen.loop.print import print_kernel
from opgen.lower import variant_of
from opgen.machine import Cache, Machine, typical
from opgen.passes.legalize import legalize
from opgen.schedule.default import scheduled
from opgen.spec import solve
from tools.bench.kernels import request_of
from tools.bench.layers import DIRECTIONS, DTYPES, FORMATS, LAYERS, Case, Choice, cases_of, read_cases
from tools.bench.odd import odd_layers
from tools.bench.op_rows import CASES, SPEC

ROOT = Path(__file__).resolve().parent.parent
HASH = 12
"""Digits of a hash."""

Hashes: TypeAlias = dict[str, dict[str, str]]
"""For each row, for each machine."""


def machines() -> dict[str, Machine]:
    """By name: bytes of a vector, or `tiles`, and cores."""
    typical_64 = replace(typical(64), pairs=True)
    tiles = replace(
        typical_64,
        fma_per_second=2 * 2.7e9,
        latency=8,
        l1=Cache(48 << 10, 12, 64, 300e9),
        l2=Cache(2 << 20, 16, 64, 150e9),
        l3=Cache(64 << 20, 16, 64, 30e9),
        memory_bytes_per_second=12e9,
        pairs=False,
        tiles=True,
    )
    kinds = {"16": typical(16), "32": typical(32), "64": typical_64, "tiles": tiles}
    return {f"{name}x{cores}": replace(m, cores=cores) for name, m in kinds.items() for cores in (1, 2)}


@dataclass(frozen=True)
class Row:
    """A kernel by its name: a layer's, by an algorithm if one is named, or that of an op of `tools.bench_ops`."""

    name: str
    case: Case | None = None
    algorithm: str = ""
    op: str = ""
    shapes: tuple[tuple[int, ...], ...] = ()

    def kernel(self) -> Kernel:
        """Return the kernel to be scheduled, all of its sizes bound."""
        if self.case is None:
            return choose(_common(self.op, self.shapes)).kernel
        return choose(replace(definition_of(request_of(self.case)), algorithm=self.algorithm or None)).kernel


def rows(extra: int = 0) -> list[Row]:
    """Return all rows, and `extra` random layers, the same ones each time."""
    every = read_cases(LAYERS, Choice((1, 8), DIRECTIONS, FORMATS, DTYPES))
    found = [row for case in (*every, *_random_cases(extra)) for row in _rows(case)]
    ops = (Row(f"{op} {' '.join('x'.join(map(str, s)) for s in shapes)}", None, "", op, shapes) for op, shapes in CASES)
    return [*found, *ops]


def _rows(case: Case) -> Iterator[Row]:
    request = request_of(case)
    source = request.source
    assert isinstance(source, OpVariant)
    yield Row(case.name, case)
    for algorithm in source.op.algorithms:
        if takes(algorithm, source.variant.types, request.call):
            yield Row(f"{case.name} by {algorithm.name}", case, algorithm.name)


def _random_cases(count: int) -> Iterator[Case]:
    """Return layers of sizes that are in no table, each in one direction, layout and type."""
    rng = random.Random(0)
    for layer in odd_layers(count, 0):
        words = (rng.choice(DIRECTIONS),), (rng.choice(FORMATS),), (rng.choice(DTYPES),)
        yield from cases_of([layer], Choice((rng.choice((1, 1, 2, 8)),), *words))


def _common(name: str, shapes: Sequence[tuple[int, ...]]) -> Compilation:
    module = load(SPEC)
    op = next(o for o in module.ops if o.function_name == name)
    call = solve(op, module, dict(zip((t.name for t in op.tensors), shapes, strict=False)), {}, {})
    dtype = "int32" if name.endswith("int32") else "float32"
    return Compilation(OpVariant(module, op, variant_of(op, {"T": dtype}, {})), toolchain.host(), call)


def hashes_of(row: Row, names: Sequence[str]) -> dict[str, str]:
    """Return the hash of a row's schedule and legalised kernel on each of some machines."""
    known, kernel = machines(), row.kernel()
    legal: dict[str, str] = {}
    found = {}
    for name in names:
        schedule, after = scheduled(kernel, "cpu", known[name])
        text = str(schedule)
        if text not in legal:
            legal[text] = print_kernel(legalize(after))
        found[name] = hashlib.sha1((text + legal[text]).encode()).hexdigest()[:HASH]
    return found


@cache
def _all_rows(extra: int) -> dict[str, Row]:
    return {row.name: row for row in rows(extra)}


def _one(name: str, names: Sequence[str], extra: int) -> tuple[str, dict[str, str]]:
    return name, hashes_of(_all_rows(extra)[name], names)


@dataclass(frozen=True)
class Choices:
    """Selection of rows and machines: a sample of rows (0: all) by a seed, of those whose names contain a text."""

    sample: int
    seed: int
    extra: int
    match: str
    machine: tuple[str, ...]
    processes: int

    def names(self) -> list[str]:
        """Return the rows."""
        found = [name for name in _all_rows(self.extra) if self.match in name]
        return sorted(random.Random(self.seed).sample(found, self.sample)) if 0 < self.sample < len(found) else found

    def freeze(self, told: Callable[[str, dict[str, str]], None]) -> Hashes:
        """Return the hashes of these rows; `told` is called for each when it is there."""
        names, found = self.names(), Hashes()
        arguments = ([value] * len(names) for value in (list(self.machine), self.extra))
        with ProcessPoolExecutor(self.processes) as pool:
            for name, hashes in pool.map(_one, names, *arguments, chunksize=4):
                found[name] = hashes
                told(name, hashes)
        return found

    def arguments(self) -> list[str]:
        """Return the same choice for another process."""
        numbers = {"sample": self.sample, "seed": self.seed, "random": self.extra, "processes": self.processes}
        given = [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
        return [*given, "--match", self.match, *(word for name in self.machine for word in ("--machine", name))]


def differences(base: Mapping[str, Mapping[str, str]], name: str, hashes: Mapping[str, str]) -> list[str]:
    """Return the machines on which a row's schedule differs from `base`; those missing in `base` are skipped."""
    known = base.get(name, {})
    return [machine for machine, value in hashes.items() if known.get(machine, value) != value]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--sample", type=click.IntRange(0), default=0, help="Only so many rows, drawn by the seed.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample.")
@click.option("--random", "extra", type=click.IntRange(0), default=0, help="So many random layers more.")
@click.option("--match", default="", help="Only rows whose names hold this text.")
@click.option("--machine", type=click.Choice(list(machines())), multiple=True, help="Only this one.  [default: all]")
@click.option("--processes", type=click.IntRange(1), default=2, show_default=True)
@click.pass_context
def main(
    context: click.Context, sample: int, seed: int, extra: int, match: str, machine: tuple[str, ...], processes: int
) -> None:
    """Freezes the schedules of the benchmark's rows, and compares them with frozen ones."""
    context.obj = Choices(sample, seed, extra, match, machine or tuple(machines()), processes)


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def write(choices: Choices, file: Path) -> None:
    """Writes the hashes to FILE."""
    found = choices.freeze(lambda name, hashes: None)
    file.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    click.echo(f"{len(found)} rows")


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_obj
def compare(choices: Choices, file: Path) -> None:
    """Names the rows whose schedules differ from those of FILE; fails if there are any."""
    _compare(choices, json.loads(file.read_text(encoding="utf-8")))


@main.command()
@click.argument("commit")
@click.pass_obj
def against(choices: Choices, commit: str) -> None:
    """Names the rows whose schedules differ from those of another COMMIT; fails if there are any."""
    with tempfile.TemporaryDirectory() as folder:
        tree, file = Path(folder) / "tree", Path(folder) / "base.json"
        _git("worktree", "add", "--detach", str(tree), commit)
        try:
            shutil.copy(__file__, tree / "tools" / Path(__file__).name)
            command = [sys.executable, "-m", "tools.schedules", *choices.arguments(), "write", str(file)]
            subprocess.run(command, cwd=tree, check=True, stdout=subprocess.DEVNULL)
        finally:
            _git("worktree", "remove", "--force", str(tree))
        _compare(choices, json.loads(file.read_text(encoding="utf-8")))


@main.command()
@click.argument("row")
@click.pass_obj
def show(choices: Choices, row: str) -> None:
    """Prints the schedules of a ROW, by its full name."""
    known, names = machines(), _all_rows(choices.extra)
    if row not in names:
        raise click.UsageError(f"no row is named {row!r}; --match and `write` list those that are")
    for machine in choices.machine:
        click.echo(f"# {row} on {machine}\n{scheduled(names[row].kernel(), 'cpu', known[machine])[0]}")


def _compare(choices: Choices, base: Hashes) -> None:
    changed = 0

    def told(name: str, hashes: Mapping[str, str]) -> None:
        nonlocal changed
        found = differences(base, name, hashes)
        changed += bool(found)
        if found:
            click.echo(f"{name}: {' '.join(found)}")

    compared = choices.freeze(told)
    unknown = len(compared.keys() - base.keys())
    click.echo(f"{changed} of {len(compared)} rows changed{f', {unknown} are new' if unknown else ''}")
    if changed or unknown == len(compared):
        raise SystemExit(1)


def _git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True)


if __name__ == "__main__":
    main()
