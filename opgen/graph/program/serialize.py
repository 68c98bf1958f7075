"""Serialisation of programs, for other processes (`opgen.graph.program.records`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from opgen.cache import entries as cache
from opgen.graph.ir.nodes import Graph
from opgen.graph.program.loaded import LoadedProgram
from opgen.graph.program.program import Program
from opgen.graph.program.records import Record, kept_row
from opgen.graph.program.runnable import Runnable
from opgen.graph.program.weights import array_of

SHARE = 2
"""Divisor of the cache's capacity: the arrays of a program are kept if they fit into this share."""


def record(loaded: LoadedProgram, graph: Graph) -> Record | None:
    """Return the record of a program, with its arrays stored; None if they cannot be stored or are too large."""
    program, held = loaded.program, cache.default()
    total = sum(a.nbytes for a in map(array_of, loaded.rows) if a is not None)
    if held.path is None or total * SHARE > held.limit:
        return None
    rows = []
    for key, row in zip(_row_keys(program, graph), loaded.rows, strict=True):
        array = array_of(row)
        kept = None if array is None else kept_row(key, array)
        if kept is None and array is not None:
            return None
        rows.append(kept)
    kernels = tuple((c.key, c.symbol, k.code, c.origin) for c, k in zip(program.kernels, loaded.codes, strict=True))
    plain = Runnable(**{f.name: getattr(program, f.name) for f in fields(Runnable)})
    return Record(plain, loaded.steps, kernels, tuple(rows))


def _row_keys(program: Program, graph: Graph) -> Iterator[str]:
    """Yield a key for each row of the entry's table: by its source elements, and how it is made from them."""
    digests = [c.data.digest for c in graph.constants]
    for digest in digests:
        yield cache.key_of({"array": "as it is", "of": digest})
    for work in program.prepared:
        for number in range(len(work.made)):
            made_of = repr([digests[i] for i in work.sources])
            yield cache.key_of({"array": work.kernel.key, "of": made_of, "number": str(number)})
