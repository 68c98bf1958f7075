"""The time of a tiny call from Java: `python -m tools.bench_java DIR`.

DIR is the output of `opgen build specs/nn_ops.op -o DIR --java`.  The call is a convolution of two pixels, in both
faces, at once and as a graph of one call.  The C library's own share is measured too, called from Python by pointers
that stay.  Prints the processor's time, which other programs on the machine do not add to, in nanoseconds a call.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from opgen.bindings.java.build import Jdk
from opgen.cli.options import GivenPath
from opgen.diagnostics import UserError
from opgen.grad.load import load
from tools.c_library import Library

_PROGRAM = Path(__file__).parent / "java" / "Tiny.java"
_SPEC = Path(__file__).resolve().parent.parent / "specs" / "nn_ops.op"
_CALLS = 20_000
_ROUNDS = 8


@click.command()
@click.argument("folder", type=GivenPath())
@click.option("--threads", type=click.IntRange(1, 64), default=1, show_default=True, help="How many a call may use.")
def main(folder: Path, threads: int) -> None:
    """Measure a tiny call through the jar in FOLDER."""
    try:
        for name, nanoseconds in (*_in_java(folder, threads), _in_c(folder, threads)):
            click.echo(f"{nanoseconds:7d} ns  {name}")
    except UserError as error:
        raise click.ClickException(str(error)) from error


def _in_java(folder: Path, threads: int) -> list[tuple[str, int]]:
    """Return the name of each kind of call, and its nanoseconds."""
    jdk = Jdk.find()
    if jdk is None:
        raise UserError("there is no JDK (javac)")
    jar = (folder / "lib" / "nn_ops.jar").resolve()
    if not jar.is_file():
        wanted = "what `opgen build specs/nn_ops.op -o DIR --java` wrote"
        raise UserError(f"{folder}: expected {wanted}, given no lib/nn_ops.jar")
    with tempfile.TemporaryDirectory(prefix="opgen-bench-java-") as classes:
        subprocess.run([*jdk.javac, "-cp", str(jar), "-d", classes, str(_PROGRAM)], check=True)
        command = [str(jdk.home / "bin" / "java"), "-cp", f"{jar}:{classes}", "Tiny", str(threads)]
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [(name, int(nanoseconds)) for name, nanoseconds in (line.split("\t") for line in said.splitlines())]


def _in_c(folder: Path, threads: int) -> tuple[str, int]:
    """Return the same call by ctypes, on arrays that stay."""
    module = load(_SPEC)
    library = Library(module, folder, module.name)
    library.set_threads(threads)
    x, w = np.ones((1, 1, 2, 2), np.float32), np.ones((1, 1, 2, 1), np.float32)
    attrs: dict[str, Sequence[int] | str] = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    call = library.call(module.op("Conv2D"), [x, w], attrs, np.zeros((1, 1, 2, 1), np.float32))
    best = None
    for _ in range(_ROUNDS):
        begin = time.thread_time_ns()
        for _ in range(_CALLS):
            call()
        taken = (time.thread_time_ns() - begin) // _CALLS
        best = taken if best is None else min(best, taken)
    return "the C library's part of a call, by ctypes from Python", best or 0


if __name__ == "__main__":
    main()
