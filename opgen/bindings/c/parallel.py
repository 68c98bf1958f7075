"""The parallel loop of a C library: an object file, and the glue's contract with it."""

from __future__ import annotations

from opgen.codegen.llvm.target import Target
from opgen.runtime.native import parallel_ir, pool_ir
from opgen.runtime.threads import object_code

LOOP = {
    "openmp": parallel_ir.OPENMP,
    "pool": parallel_ir.PTHREAD,
    "first": pool_ir.FIRST_FUNCTION,
    "key": pool_ir.KEY,
    "functions": pool_ir.PTHREAD_FUNCTIONS,
}
"""The layout of the loop's table, for `parallel.c.jinja`."""


def loop_object(prefix: str, architecture: str, target: Target) -> tuple[str, bytes]:
    """Return the name and the object code of the loop of a library whose symbols begin with `prefix`."""
    name = f"{prefix}_k_loop"
    return name, object_code(parallel_ir.text(name, architecture, hidden=True), target)
