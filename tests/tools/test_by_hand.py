"""`specs/SCHEDULES.md` schedules a product by hand: each of its schedules is legal and computes the product."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.machine import typical
from opgen.schedule.default import default_schedule
from tools import by_hand

STAGES = by_hand.stages(by_hand.PAGE.read_text())
SMALL = (12, 8, 128)
"""Two tiles of six rows, two panels."""
WORDS = 2000


@pytest.mark.parametrize(("title", "steps"), STAGES, ids=[title for title, _ in STAGES])
def test_each_schedule_of_the_page_computes_the_product(title: str, steps: str) -> None:
    print(title)
    kernel = by_hand.by_hand(by_hand.product(SMALL).loop, steps)
    rows, depth, columns = SMALL
    source = np.random.default_rng(7)
    a, b = (source.integers(-8, 9, shape).astype(np.float32) for shape in ((rows, depth), (depth, columns)))
    assert np.array_equal(interpret(kernel, {"a": a, "b": b})["c"], a @ b)  # small integers: sums are exact


def test_the_last_schedule_is_the_automatic_one_but_for_its_threads() -> None:
    automatic = str(default_schedule(by_hand.product().loop, "cpu", typical(64))).splitlines()
    assert [*STAGES[-1][1].splitlines(), "parallel j_o"] == automatic


def test_the_page_is_short() -> None:
    assert len(STAGES) == 5
    assert len(by_hand.PAGE.read_text().split()) <= WORDS
