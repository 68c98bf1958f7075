"""`opgen tune`: faster schedules for certain calls, found by measuring and kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opgen import files
from opgen.cli.errors import say
from opgen.cli.inspect_op import DEFINITION, by_algorithm, find, read_call, read_schedule, request
from opgen.cli.options import FILE, SPECS_FOLDER, specs_or_default
from opgen.cli.progress import working
from opgen.diagnostics import UserError, did_you_mean

if TYPE_CHECKING:
    from opgen.compiler.artifact import Artifact
    from opgen.schedule.schedule import Schedule


@dataclass(frozen=True)
class TuneCall:
    """A call, in the words of the command line."""

    op: str
    dtypes: tuple[str, ...]
    shapes: tuple[str, ...]
    sizes: tuple[str, ...]
    attrs: tuple[str, ...]
    algorithm: str | None = None

    def __str__(self) -> str:
        by = () if self.algorithm is None else (f"by {self.algorithm}",)
        return " ".join((self.op, *self.dtypes, *self.shapes, *self.sizes, *self.attrs, *by))


@click.command("tune")
@click.argument("op", metavar="[OP]", required=False)
@SPECS_FOLDER
@click.option("--dtype", "dtypes", multiple=True, metavar="[T=]TYPE", help="The scalar type.  [default: float32]")
@click.option("--shape", "shapes", multiple=True, metavar="INPUT=1,8,8,3", help="The shape of an input.")
@click.option("--sizes", multiple=True, metavar="INPUT=1,8,8,3", help="The value of an input that gives sizes.")
@click.option("--attr", "attrs", multiple=True, metavar="NAME=VALUE", help="An attribute: strides=1,2,2,1.")
@click.option("--calls", type=FILE,
              help="A JSON list of calls: {op, dtype, shapes, sizes, attrs, algorithm}.")  # fmt: skip
@click.option("--schedule", "schedule_file", type=FILE,
              help="A schedule to try first; no other one with --seconds 0.")  # fmt: skip
@click.option("--algorithm", metavar="NAME",
              help="Of an algorithm of the op, in place of its definition.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(min=0), default=20.0, show_default=True, help="Time for each call.")
@click.option("--seed", type=int, default=0, show_default=True, help="Decides the order of the search.")
@click.option("--list", "listing", is_flag=True, help="Show what was kept.")
@click.option("--forget", metavar="KEY|OP|all", help="Drop what was kept.")
def command(
    op: str | None,
    specs: Path | None,
    dtypes: tuple[str, ...],
    shapes: tuple[str, ...],
    sizes: tuple[str, ...],
    attrs: tuple[str, ...],
    calls: Path | None,
    schedule_file: Path | None,
    algorithm: str | None,
    seconds: float,
    seed: int,
    listing: bool,
    forget: str | None,
) -> None:
    """Looks for a faster schedule for calls of OP with certain shapes, and keeps the one it finds.

    What is found is used from then on, in new processes, wherever the same loops with the same sizes and types are
    built for the same CPU.  It is kept in the file OPGEN_TUNED, else in the kernel cache's folder.  Tuning is never
    needed: the default schedules stand without it.

    With --schedule, a schedule written by hand is kept and used if it is the fastest.  Tuned is the op's definition, or
    with --algorithm an algorithm of its spec; which of them calls take is not changed.
    """
    if listing:
        _show()
    elif forget is not None:
        _forget(forget)
    else:
        wanted = [] if op is None else [TuneCall(op, dtypes, shapes, sizes, attrs, algorithm)]
        wanted += [] if calls is None else list(_read(calls))
        if not wanted:
            raise click.UsageError("there is nothing to tune: give an OP with --shape, or --calls FILE")
        steps = None if schedule_file is None else read_schedule(schedule_file, "cpu")
        for call in wanted:
            click.echo(_tune(call, specs_or_default(specs), seconds, seed, steps))


def _tune(call: TuneCall, specs: Path, seconds: float, seed: int, given: Schedule | None) -> str:
    """Tune one call; return a description of the result."""
    from opgen.cli.forms import Given
    from opgen.compiler import toolchain, tuned
    from opgen.compiler.make import artifact
    from opgen.compiler.sharing import is_for_one
    from opgen.runtime import threads
    from opgen.runtime.measuring.tuner import tune

    if tuned.place() is None:
        raise UserError("there is no file for what is found: set OPGEN_TUNED to a file, or turn the cache on")
    tuned.require_writable()
    module, declared = find(call.op, specs)
    if not call.shapes and not call.sizes:
        raise UserError(f"{call}: the shapes of all inputs are needed (--shape)")
    module, arguments = read_call(module, declared, Given(call.dtypes, call.shapes, call.sizes, call.attrs))
    asked = request(module, arguments.op, arguments, "host", None)
    line = artifact(by_algorithm(asked, call.algorithm or DEFINITION))
    target = toolchain.host()
    with working(f"tuning {call.op}") as show:
        found = tune(
            line.loop, line.arguments, target, seconds, seed, given,
            lambda tried, usual, ratio: show(f"tuning {call.op}: {_so_far(tried, usual, ratio)}"),
        )  # fmt: skip
    if not found.steady:
        spread = f"the default schedule took from {_time(found.default)} to {_time(found.slow)}"
        say(f"note: {call.op}: {spread}: this machine is busy, so small gains may be none; tune again when it is idle")
    times = f"default {1e6 * found.default:.1f} us, {found.tried} others tried"
    if found.given is not None:
        times += f", the given one {1e6 * found.given:.1f} us"
    elif given is not None:
        times += ", the given one not timed: its results are not those of the default one"
    if not found.better:
        return f"{call}: {times}, none faster{_beside(line, artifact(asked))}"
    steps = tuple(str(step) for step in found.schedule.steps)
    key = tuned.key_of(line.loop, target)
    usual, best = round(1e6 * found.default, 3), round(1e6 * found.best, 3)
    count = 1 if is_for_one(line.loop, target.machine) else threads.get_num_threads()
    tuned.store(tuned.Entry(key, str(call), target.cpu, count, usual, best, steps))
    return (
        f"{call}: {times}, kept one of {best:.1f} us ({usual / best:.2f} times as fast){_beside(line, artifact(asked))}"
    )


def _so_far(tried: int, usual: float, ratio: float) -> str:
    """Show the progress of a search while it goes on."""
    best = "none faster" if ratio == 1 else f"the best {_time(usual * ratio)} ({1 / ratio:.2f} times as fast)"
    return f"default {_time(usual)}, {tried} others tried, {best}"


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.2f} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.1f} us"


def _beside(line: Artifact, taken: Artifact) -> str:
    """Return a note if calls take another kernel than the one that was tuned."""
    if taken.algorithm == line.algorithm:
        return ""
    other = "the definition" if taken.algorithm is None else "another algorithm"
    return f"; such calls take {other} now (OPGEN_ALGORITHMS, --algorithm)"


def _show() -> None:
    from opgen.compiler import tuned

    click.echo(tuned.finding())
    for e in tuned.entries():
        state = f"ignored: {e.refused}" if e.refused else f"{e.default_us:.1f} -> {e.tuned_us:.1f} us"
        click.echo(f"{e.key}  {e.cpu}, {e.threads} thread{'' if e.threads == 1 else 's'}  {state}  {e.call}")


def _forget(word: str) -> None:
    from opgen.compiler import tuned

    count = tuned.forget(word)
    if not count and word != "all":
        raise UserError(f"nothing was kept under '{word}' (opgen tune --list shows what is)")
    click.echo(f"forgot {count} schedule{'' if count == 1 else 's'}")


_PARTS = ("op", "dtype", "shapes", "sizes", "attrs", "algorithm")


def _read(path: Path) -> Iterator[TuneCall]:
    """Yield the calls of a file."""
    listed = files.document(path)
    if not isinstance(listed, list):
        raise UserError(f"{path}: expected a list of calls")
    for call in listed:
        if not isinstance(call, dict) or not isinstance(call.get("op"), str):
            raise UserError(f"{path}: expected an object with an op, given {json.dumps(call)[:80]}")
        for name in call:
            if name not in _PARTS:
                hint = did_you_mean(name, _PARTS) or f"it can have {', '.join(_PARTS)}"
                raise UserError(f"{path}: a call of {call['op']} has no '{name}'; {hint}")
        dtype = (str(call["dtype"]),) if "dtype" in call else ()
        shapes, sizes, attrs = (_pairs(path, call, part) for part in ("shapes", "sizes", "attrs"))
        algorithm = str(call["algorithm"]) if "algorithm" in call else None
        yield TuneCall(call["op"], dtype, shapes, sizes, attrs, algorithm)


def _pairs(path: Path, call: Mapping[str, object], part: str) -> tuple[str, ...]:
    given = call.get(part, {})
    if not isinstance(given, dict):
        raise UserError(f"{path}: '{part}' of {call['op']}: expected an object of names and values")
    return tuple(f"{name}={_text(value)}" for name, value in given.items())


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
