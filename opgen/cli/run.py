"""`opgen run`: a model, once, on files or random numbers."""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opgen import files
from opgen.cli.as_json import JSON, print_json
from opgen.cli.models import DIMS, SHAPES, declared, kinds_of
from opgen.cli.options import FILE
from opgen.cli.progress import bar
from opgen.diagnostics import UserError, did_you_mean

if TYPE_CHECKING:
    from opgen.graph.compiled.compiled import CompiledModel
    from opgen.graph.ir.values import Array, Outline

LONG = 2.0
"""Seconds that repeated runs take in all, about."""


@click.command("run")
@click.argument("model", type=FILE)
@click.option("--random", is_flag=True, help="Random numbers for inputs that no --input gives (0 and 1 for integers).")
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="The values of an input.")
@click.option("--output", "outputs", multiple=True, metavar="[NAME=]FILE.npy",
              help="Where to write an output; without a name, the first.")  # fmt: skip
@SHAPES
@DIMS
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random numbers.")
@click.option("--threads", type=click.IntRange(1), help="How many threads.  [default: all processors]")
@click.option("--repeat", type=click.IntRange(1), default=20, show_default=True,
              help="Runs at most whose time is measured; they end after two seconds.")  # fmt: skip
@click.option("--explain", is_flag=True, help="Also print what passes did, and each node with its work and time.")
@JSON
def command(
    model: Path,
    random: bool,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    seed: int,
    threads: int | None,
    repeat: int,
    explain: bool,
    as_json: bool,
) -> None:
    """Runs a MODEL in ONNX's format, and prints shapes, time and memory.

    \b
    opgen run model.onnx --random --shape x=1,3,224,224
    opgen run model.onnx --input x=x.npy --output y.npy
    """
    import opgen
    from opgen.runtime.threads import set_num_threads

    if threads is not None:
        set_num_threads(threads)
    begin = time.perf_counter()
    with bar(f"reading {model.name}") as progress:
        compiled = opgen.compile(model, progress=progress)
        found = from_files(compiled.outline, inputs)
        compiled = compiled.taking(found)
        read = compiled.outline
        given = tensors(read, found, random, shapes, dims, seed)
        targets = _targets(read, outputs)
        results = compiled.run(given)
    ready = time.perf_counter() - begin
    for name, path in targets.items():
        files.write(path, _npy(results[name]))
    seconds = times(lambda: compiled.run(given), repeat)
    if as_json:
        more = {"explanation": compiled.explain(times=True).splitlines()} if explain else {}
        print_json({**_as_json(given, results, ready, seconds, compiled), **more})
        return
    _show(read, given, results, ready, seconds, compiled)
    if explain:
        click.echo("\n" + compiled.explain(times=True), nl=False)
        click.echo(_call_row(statistics.median(seconds)))


def _call_row(seconds: float) -> str:
    """Return the last row of the table of nodes: the time of a call, and its work besides the nodes."""
    from opgen.graph.program.amounts import count
    from opgen.runtime.threads import get_num_threads

    also = "tensors looked at, results in new memory, threads started and waited for"
    told = f"by {count(get_num_threads(), 'thread')} (median): {also}"
    return f"{'call':>5} {'':>50} {seconds * 1e6:9.1f} {'':>7}  {told}"


def from_files(model: Outline, inputs: Sequence[str]) -> dict[str, Array]:
    """Return the values of inputs that are in files."""
    names = [i.name for i in (*model.inputs, *model.defaults)]
    found: dict[str, Array] = {}
    for text in inputs:
        name, equals, path = text.partition("=")
        while equals and name not in names and "=" in path:  # a name may have `=` in it
            more, _, path = path.partition("=")
            name = f"{name}={more}"
        if not equals or name not in names:
            hint = did_you_mean(name, names) or f"there is {', '.join(names) or 'none'}"
            raise UserError(f"--input {text}: expected NAME=FILE.npy with the name of an input; {hint}")
        if name in found:
            raise UserError(f"--input {name} is given twice")
        found[name] = _read(Path(path))
    return found


def tensors(
    model: Outline, found: Mapping[str, Array], random: bool, shapes: Sequence[str], dims: Sequence[str], seed: int
) -> dict[str, Array]:
    """Return the values of all inputs, at random where none are given."""
    from opgen.runtime.measuring.random_inputs import drawn

    missing = [i for i in model.inputs if i.name not in found]
    if missing and not random:
        needed = " ".join(f"--input {i.name}=FILE.npy" for i in missing)
        raise UserError(
            f"no values for {', '.join(f'{i.name}: {declared(i)}' for i in missing)}; give {needed}, or --random"
        )
    known = [f"{name}={','.join(map(str, a.shape))}" for name, a in found.items()]
    kinds = kinds_of(model, [*shapes, *known], dims)
    return {**drawn(kinds, seed), **found}


def _read(path: Path) -> Array:
    """Return the array of a `.npy` file."""
    import numpy as np

    if reason := files.why_not_plain(path.stat()):
        raise UserError(f"{path} cannot be read: {reason}.")
    try:
        found: Array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise UserError(f"{path}: expected an array in numpy's format (.npy): {error}") from error
    if not isinstance(found, np.ndarray):
        raise UserError(f"{path}: expected one array in numpy's format (.npy), given an archive of several")
    return found


def _npy(array: Array) -> bytes:
    import numpy as np

    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _targets(model: Outline, outputs: Sequence[str]) -> dict[str, Path]:
    """Return the file for each output that is to be written."""
    found: dict[str, Path] = {}
    for text in outputs:
        name, equals, path = text.rpartition("=")
        if not equals:
            name = model.outputs[0]
        elif name not in model.outputs:
            hint = did_you_mean(name, model.outputs) or f"there is {', '.join(model.outputs)}"
            raise UserError(f"--output {text}: the model has no output '{name}'; {hint}")
        if name in found:
            raise UserError(f"--output {name} is given twice")
        found[name] = Path(path)
    return found


def times(run: Callable[[], object], most: int) -> list[float]:
    """Return the seconds of each run, at most `most` of them."""
    found: list[float] = []
    while len(found) < most and sum(found) < LONG:
        begin = time.perf_counter()
        run()
        found.append(time.perf_counter() - begin)
    return found


def _show(
    model: Outline,
    given: Mapping[str, Array],
    results: Mapping[str, Array],
    ready: float,
    seconds: Sequence[float],
    compiled: CompiledModel,
) -> None:
    from opgen.graph.program.amounts import count, memory
    from opgen.runtime.threads import get_num_threads

    threads = get_num_threads()
    loaded = compiled.programs
    for name, a in given.items():
        click.echo(f"input    {name}: {a.dtype}{list(a.shape)}")
    for name, a in results.items():
        click.echo(f"output   {name}: {a.dtype}{list(a.shape)}")
    steps, kernels = sum(len(p.runnable.nodes) for p in loaded), sum(p.kernels for p in loaded)
    parts = f" in {len(loaded)} parts, of which some are chosen by values" if len(loaded) > 1 else ""
    click.echo(f"ready    {ready:.2f} s: {count(model.calls, 'call')} of the model became "
               f"{count(steps, 'step')} by {count(kernels, 'kernel')}{parts}")  # fmt: skip
    middle = statistics.median(seconds) * 1e3
    click.echo(f"time     {middle:.3f} ms by {count(threads, 'thread')} (median of {len(seconds)} runs)")
    for program in loaded:
        for line in memory(program.runnable, threads):
            click.echo(line)


def _as_json(
    given: Mapping[str, Array],
    results: Mapping[str, Array],
    ready: float,
    seconds: Sequence[float],
    compiled: CompiledModel,
) -> Mapping[str, object]:
    from opgen.graph.program.amounts import weight_bytes
    from opgen.runtime.threads import get_num_threads

    def arrays(of: Mapping[str, Array]) -> list[Mapping[str, object]]:
        return [{"name": name, "dtype": str(a.dtype), "shape": list(a.shape)} for name, a in of.items()]

    threads, programs = get_num_threads(), [loaded.runnable for loaded in compiled.programs]
    return {
        "inputs": arrays(given),
        "outputs": arrays(results),
        "ready_seconds": ready,
        "seconds": statistics.median(seconds),
        "runs": len(seconds),
        "threads": threads,
        "parts": len(programs),
        "steps": sum(len(program.nodes) for program in programs),
        "kernels": sum(loaded.kernels for loaded in compiled.programs),
        "weight_bytes": sum(map(weight_bytes, programs)),
        "arena_bytes": sum(program.arena_bytes(threads) for program in programs),
        "arena_bound_bytes": sum(program.bound for program in programs),
    }
