"""Small kernels, and programs in a fresh interpreter, for the runtime's tests."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from opgen.dtypes import FLOAT32
from opgen.loop import build as b
from opgen.loop.nodes import Binary, Buffer, Const, For, Kernel, Load, Parameter, Stmt, Store, Type

REPOSITORY = Path(__file__).resolve().parents[2]


def row_sums(name: str = "row_sums", parallel: bool = True, factor: float = 0.5) -> Kernel:
    """sums[i] = factor + values[i, 0] + ... + values[i, columns - 1], added in that order in float32."""
    rows, columns = b.var("rows"), b.var("columns")
    i, j = b.var("i"), b.var("j")
    total = Load("sums", (i,), FLOAT32)
    body: Stmt = b.block(
        (
            Store("sums", (i,), Const(factor, Type(FLOAT32))),
            For("j", b.index(0), columns, Store("sums", (i,), Binary("add", total, Load("values", (i, j), FLOAT32)))),
        )
    )
    return Kernel(
        name,
        (Buffer("values", FLOAT32, (rows, columns)),),
        (Buffer("sums", FLOAT32, (rows,)),),
        (Parameter("rows", low=0), Parameter("columns", low=0)),
        For("i", b.index(0), rows, body, "parallel" if parallel else "serial"),
    )


def run_program(program: str, timeout: float = 120.0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a fresh interpreter; a variable given as "" is unset."""
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), **environment}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={name: value for name, value in env.items() if value != ""},
        cwd=REPOSITORY,
        check=False,
    )


def output_of(program: str, timeout: float = 120.0, **environment: str) -> str:
    """What a program printed; it must end well."""
    done = run_program(program, timeout, **environment)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()
