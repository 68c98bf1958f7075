"""Checks: where they may stand, what ends a kernel, and what is left of one that always holds."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.diagnostics import CheckFailed
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Check, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import problems, verify
from opgen.loop.walk import walk
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.kernel import compile_kernel

HEAD = "kernel f(x: int64[n], n: int64 in [0, 64]) -> (y: int64[n]):\n"
LEAST = """\
alloc least: int64[] heap
least[] = 0
for i in 0 .. n:
  least[] = min(least[], x[i])
check least[] >= 0 else 3: least[]
for j in 0 .. n:
  y[j] = x[j] + 1
"""


def kernel(body: str) -> Kernel:
    return parse_kernel(HEAD + "".join(f"  {line}\n" for line in body.splitlines()))


def test_text() -> None:
    found = kernel(LEAST)
    verify(found, bounds=True)
    assert "    check least[] >= 0 else 3: least[]\n" in print_kernel(found)
    assert parse_kernel(print_kernel(found)) == found


@pytest.mark.parametrize("least", [0, -1, -(2**63)])
def test_what_ends_a_kernel(least: int) -> None:
    found = kernel(LEAST)
    x = np.array([5, least, 7], np.int64)
    compiled = compile_kernel(legalize(found))
    y = np.full(3, 9, np.int64)

    def run() -> None:
        compiled([x.ctypes.data, y.ctypes.data], [3])

    if least == 0:
        run()
        assert y.tolist() == interpret(found, {"x": x}, {"n": 3})["y"].tolist() == [6, 1, 8]
        return
    for do in (run, run, lambda: interpret(found, {"x": x}, {"n": 3})):
        with pytest.raises(CheckFailed) as failed:
            do()
        assert (failed.value.number, failed.value.value) == (3, least)
    assert y.tolist() == [9, 9, 9]


PLACES = [
    ("for i in 0 .. n:\n  check x[i] >= 0 else 0: x[i]", ["a check stands in a loop or a condition (in for i)"]),
    ("if n > 3:\n  check n < 5 else 0: n", ["a check stands in a loop or a condition (in if)"]),
    ("check n else 0: n", ["a check is of int64 and int64, not bool and int64 (in the body)"]),
    ("check n < 5 else 0: 1i32", ["a check is of bool and int32, not bool and int64 (in the body)"]),
    (
        "for i in 0 .. n:\n  y[i] = 0\ncheck n < 5 else 2: n",
        ["check 2 stands after a store to the output 'y' (in the body)"],
    ),
]


@pytest.mark.parametrize(("body", "messages"), PLACES)
def test_places(body: str, messages: list[str]) -> None:
    assert [str(p) for p in problems(kernel(body))] == messages


def test_what_always_holds_is_left_out() -> None:
    found = simplify(kernel("check n >= 0 else 0: n\nfor j in 0 .. n:\n  y[j] = 0"))
    assert not any(isinstance(s, Check) for s in walk(found.body))
