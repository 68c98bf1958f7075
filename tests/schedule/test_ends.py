"""Which ends of a loop are set apart."""

from __future__ import annotations

import pytest

from opgen.loop.parse import parse_kernel
from opgen.schedule.auto.ends import needed
from opgen.schedule.auto.nests import nests

WINDOW = """\
kernel window(x: float32[32]) -> (out: float32[{size}]):
    for i in 0 .. {size}:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for r in 0 .. 3:
            if {condition}:
                acc[] = acc[] + x[{index}]
        out[i] = acc[]
"""


@pytest.mark.parametrize(
    ("condition", "index", "size", "kept"),
    [
        ("i + r - 1 >= 0 and i + r - 1 < 32", "i + r - 1", 32, (1, -1)),
        ("i + r - 2 >= 0", "i + r - 2", 32, (1,)),
        ("i * 2 + r < 32", "i * 2 + r", 16, (-1,)),
        ("(i + r) % 2 == 0", "(i + r) // 2", 16, ()),
        ("i + r - 9 >= 0", "i + r - 9", 32, (1, -1)),
    ],
)
def test_cuts(condition: str, index: str, size: int, kept: tuple[int, ...]) -> None:
    kernel = parse_kernel(WINDOW.format(condition=condition, index=index, size=size))
    (nest,) = nests(kernel)
    assert needed(nest, "i", (1, -1), 4) == kept
    assert needed(nest, "i", (1,), 4) == (1,)
