"""`start.py WORKER THREADS CPUS [ARGUMENT ...]`: a worker on those processors (`0,1`; none: wherever it is put).

The place is taken and the number of threads told (to OpenMP's runtimes by the environment) before the library is
imported, since most start their threads then.
"""

from __future__ import annotations

import importlib
import os
import sys

from tools.bench.workers.protocol import Library, serve


def main(worker: str, threads: int, cpus: str, *arguments: str) -> None:
    if cpus and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(cpu) for cpu in cpus.split(",")})
    os.environ.update({"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)})
    replies = os.dup(1)
    os.dup2(2, 1)  # what a library prints goes to stderr, not among the answers
    module = importlib.import_module(f"tools.bench.workers.{worker}")
    library: Library = module.library(threads, *arguments)
    serve(library, replies)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
