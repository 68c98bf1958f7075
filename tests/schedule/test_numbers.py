"""Numbers that the scheduler goes by, without a walk over all that they count."""

from __future__ import annotations

import time
from itertools import product

from opgen.dtypes import FLOAT32
from opgen.loop import build as b
from opgen.loop.nodes import Load
from opgen.schedule.auto.cuts import divisors
from opgen.schedule.auto.walks import Walk

LOAD = Load("x", (b.integer(0),), FLOAT32)


def test_divisors() -> None:
    for n in range(1, 400):
        assert divisors(n) == [d for d in range(1, n + 1) if n % d == 0]
    begin = time.monotonic()
    assert divisors(2**31 - 1) == [1, 2**31 - 1]
    assert time.monotonic() - begin < 5


def test_places_that_a_window_reads() -> None:
    for step, apart, results, terms, phases in product((-3, 1, 2, 4), (-2, 1, 3, 6), (1, 2, 5), (1, 3, 7), (1, 2)):
        seen = {step * i + apart * t for i in range(results * phases) for t in range(terms)}
        found = Walk(LOAD, "i", "t", step, apart).places(results, terms, phases)
        assert found == -(-len(seen) // phases), (step, apart, results, terms, phases)
    assert Walk(LOAD, "i", "t", 1, 1).places(10**9, 10**9) == 2 * 10**9 - 1
