"""What statements hold: found once, and the same as a walk through them finds."""

from __future__ import annotations

import pickle

from opgen.loop.nodes import Alloc, Block, For, Kernel, Load, Store
from opgen.loop.parse import parse_kernel
from opgen.loop.walk import (
    allocs_in,
    buffers_in,
    expressions,
    holds_loop,
    loaded_buffers,
    loads,
    loops_in,
    map_stmt,
    skeleton,
    stores,
    walk,
    walk_expr,
    walk_exprs,
)

TEXT = """kernel sums(
    x: float32[4, 8],
) -> (
    y: float32[4],
):
    for i in 0 .. 4:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for j in 0 .. 8:
            if i + j < 10:
                acc[] = acc[] + x[i, j]
        let k: int64 = i + 1:
            y[k - 1] = acc[]
"""


def _kernel() -> Kernel:
    return parse_kernel(TEXT)


def test_what_is_found_in_statements_is_what_a_walk_finds() -> None:
    kernel = _kernel()
    for _ in range(2):  # looked for, and remembered
        for s in walk(kernel.body):
            inside = list(walk(s))
            assert list(skeleton(s)) == [p for p in inside if not isinstance(p, Store | Block)]
            assert list(loops_in(s)) == [p for p in inside if isinstance(p, For)]
            assert list(allocs_in(s)) == [p for p in inside if isinstance(p, Alloc)]
            assert list(buffers_in(s)) == [o for p in inside if isinstance(p, Alloc) for o in p.buffers]
            others = (
                (p, e.buffer) for p in inside for x in expressions(p) for e in walk_expr(x) if isinstance(e, Load)
            )
            used = {name for p, name in others if not (isinstance(p, Store) and p.buffer == name)}
            assert loaded_buffers(s) == used
            assert list(stores(s)) == [p for p in inside if isinstance(p, Store)]
            assert list(loads(s)) == [e for e in walk_exprs(s) if isinstance(e, Load)]
            for name in ("i", "j", "k"):
                assert holds_loop(s, name) == any(isinstance(p, For) and p.var == name for p in inside)


def test_a_statement_that_is_rebuilt_is_looked_through_again() -> None:
    kernel = _kernel()
    assert {e.buffer for e in loads(kernel.body)} == {"acc", "x"}
    renamed = map_stmt(
        kernel.body, expr=lambda e: Load("z", e.indices, e.dtype) if isinstance(e, Load) and e.buffer == "x" else e
    )
    assert {e.buffer for e in loads(renamed)} == {"acc", "z"}
    assert {e.buffer for e in loads(kernel.body)} == {"acc", "x"}


def test_what_is_remembered_is_no_part_of_a_statement() -> None:
    kernel, other = _kernel(), _kernel()
    assert holds_loop(kernel.body, "j")
    assert len(loads(kernel.body)) == 3
    assert kernel == other
    assert hash(kernel) == hash(other)
    assert repr(kernel) == repr(other)
    assert pickle.loads(pickle.dumps(kernel)) == other
