"""When a library shares a call among threads, and what it does where there are none to be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opgen.bindings.c.build import Options, build
from opgen.bindings.c.small import small_lines
from opgen.compiler.sharing import WORTH_SHARING, is_for_one, work_of
from opgen.grad.load import load
from opgen.loop import build as b
from opgen.loop.bind import bind
from opgen.lower import lower, variants
from opgen.machine import typical
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import evaluate
from opgen.runtime.threads import openmp
from tests.bindings.modules import spec
from tests.support.matrix_product import SPEC

ROOT = Path(__file__).resolve().parents[3]

_PROGRAM = """
import os, resource, sys
import numpy as np
from ctypes import byref
from pathlib import Path
from opgen.grad.load import load
from tests.bindings.c.library import Library, of

path, folder, scarce = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3] == "scarce"
library = Library(load(path), folder)
library.function("products_set_num_threads")(32 if scarce else 2)

def run(n):
    x, w, y = np.ones((n, n), np.float32), np.ones((n, n), np.float32), np.zeros((n, n), np.float32)
    arguments = [byref(of(x)), byref(of(w)), None, byref(of(y))]
    if scarce:
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + (24 << 20), resource.RLIM_INFINITY))
    for _ in range(3):
        assert library.function("products_mat_mul")(*arguments) == 0
        assert (y == n).all()
    print(len(os.listdir("/proc/self/task")))

for n in (2, 32, 400):
    run(n)
"""


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("products") / "products.op"
    path.write_text(SPEC)
    build(load(path), path.name, path.parent / "library", Options())
    return path


def tasks(path: Path, how: str, **more: str) -> list[int]:
    """How many threads a process has after calls of three sizes (those that were made are kept)."""
    kept = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "PRODUCTS_THREADING")}
    environment = {**kept, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1", **more}
    command = [sys.executable, "-c", _PROGRAM, str(path), str(path.parent / "library"), how]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


needs_openmp = pytest.mark.skipif(
    openmp.find() is None or not sys.platform.startswith("linux"), reason="OpenMP's threads, as Linux shows them"
)


@needs_openmp
def test_small_calls_are_run_by_the_caller_alone(products: Path) -> None:
    assert tasks(products, "plenty", PRODUCTS_THREADING="openmp") == [1, 1, 2]


def test_small_calls_are_run_by_the_caller_alone_without_openmp_too(products: Path) -> None:
    assert tasks(products, "plenty") == [1, 1, 2]


@needs_openmp
@pytest.mark.parametrize("means", ["openmp", "pthread"])
def test_a_library_runs_where_threads_cannot_be_made(means: str, products: Path) -> None:
    *small, large = tasks(products, "scarce", PRODUCTS_THREADING=means)
    assert small == [1, 1]
    assert large <= 1 + 3  # stacks of 8 MiB in 24


def test_the_rule_is_that_of_python(products: Path) -> None:
    """What a generic kernel's parameters give is near what a kernel for those sizes gives, around the limit."""
    module, machine = load(products), typical(32)
    op = module.ops[0]
    kernel = simplify(lower(module, op, next(iter(variants(op)))).kernel)
    work = work_of(kernel, machine)
    assert len(small_lines(kernel, "p", machine)) == 4
    for n in (1, 2, 8, 16, 32, 64, 200, 400, 1000):
        values = {p.name: n for p in kernel.parameters}
        operations, touched = (evaluate(e, values) for e in (work.operations, work.bytes))
        small = work.always + work.per_operation * operations + work.per_byte * touched < WORTH_SHARING
        assert small == is_for_one(simplify(bind(kernel, values)), machine), n
    assert not evaluate(b.sub(work.operations, 4 * 2**3), {p.name: 2 for p in kernel.parameters})


def test_sizes_of_which_only_the_kernel_knows() -> None:
    """Every kernel of the generated ops tells its work in its parameters."""
    module = spec(ROOT / "specs" / "nn_ops.op")
    for op in module.ops:
        kernel = simplify(lower(module, op, next(iter(variants(op)))).kernel)
        assert small_lines(kernel, "p", typical(32)), op.name
