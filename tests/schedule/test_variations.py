"""Variations of a schedule: what is legal computes the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import parse_schedule
from opgen.schedule.variations import copies, variations
from tests.schedule.differential import shape
from tests.support.variations import kernel, legal


def test_variations_are_schedules() -> None:
    schedule, _ = scheduled(kernel())
    others = list(variations(schedule))
    assert len(others) > 20
    assert schedule not in others
    for other in others:
        assert parse_schedule(str(other)) == other


@pytest.mark.parametrize("seed", [3])
def test_legal_variations_compute_the_same(seed: int) -> None:
    given = kernel()
    schedule, _ = scheduled(given)
    source = np.random.default_rng(seed)
    inputs = {b.name: source.integers(-4, 5, shape(given, b.name, {})).astype(np.float32) for b in given.inputs}
    right = interpret(given, inputs, {})
    found = list(itertools.islice(legal(given, schedule), 12))
    assert len(found) >= 5
    for other, varied in found:
        results = interpret(varied, inputs, {})
        for name, expected in right.items():
            np.testing.assert_array_equal(results[name], expected, err_msg=str(other))


def test_copies_count_what_unrolling_makes() -> None:
    given = kernel()
    assert copies(given.body) < copies(scheduled(given)[1].body)
