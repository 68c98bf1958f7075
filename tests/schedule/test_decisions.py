"""Decisions: all that the scheduler could decide otherwise is found, and computes the same."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.auto.decisions import Decisions, Path
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import parse_schedule
from tests.harness import random_arrays
from tests.support.convolutions import DIRECTIONS, WIDE, dense, the_call


def test_the_schedulers_own_come_first_and_others_are_named() -> None:
    decisions = Decisions()
    assert decisions.choose("abc") == "a"
    assert decisions.begin() == 1
    assert list(decisions.others()) == [(1,), (2,), (0, 1)]


def test_a_path_is_followed_and_left_at_its_end() -> None:
    decisions = Decisions((2, 1))
    assert decisions.choose("abc") == "c"
    assert decisions.begin() is None
    assert decisions.choose("de") == "d"
    assert list(decisions.others()) == [(2, 1, 1)]


def test_what_fails_was_no_decision() -> None:
    decisions = Decisions()
    outer = decisions.begin()
    decisions.choose("ab")
    assert outer == 0
    decisions.fail(outer)
    assert decisions.choose("xyz") == "x"
    assert list(decisions.others()) == [(0, 0, 1), (0, 0, 2)]


def reached(kernel: Kernel, rng: random.Random) -> Iterator[Path]:
    """Some paths that differ from the scheduler's own in one decision or two."""
    own = Decisions(thorough=True)
    scheduled(kernel, "cpu", WIDE, own)
    once = list(own.others())
    for path in rng.sample(once, min(4, len(once))):
        yield path
        further = Decisions(path, thorough=True)
        scheduled(kernel, "cpu", WIDE, further)
        twice = list(further.others())
        yield from rng.sample(twice, min(1, len(twice)))


def assert_all_are_the_same(kernel: Kernel, inputs: dict[str, np.ndarray], rng: random.Random, story: str) -> set[str]:
    """Sums of numbers of few bits are exact, so that no order of adding them shows.  Gives the schedules."""
    right = run_kernel(legalize(kernel), inputs, {}, 1)
    found = set()
    for path in reached(kernel, rng):
        schedule, after = scheduled(kernel, "cpu", WIDE, Decisions(path, thorough=True))
        assert parse_schedule(str(schedule)) == schedule
        found.add(str(schedule))
        for threads in (1, 2):
            results = run_kernel(legalize(after), inputs, {}, threads, guarded=True)
            for name, expected in right.items():
                assert np.array_equal(results[name], expected), f"{story}, path {path}\n{schedule}"
    return found


def few_bits(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {n: (np.round(np.clip(x.astype(np.float64), -2, 2) * 8) / 8).astype(x.dtype) for n, x in arrays.items()}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_other_decisions_compute_the_same(seed: int, lanes: bool, direction: str | None) -> None:
    call = the_call(100 + seed, lanes, direction)
    kernel = simplify(bind(*call.kernel()))
    inputs = few_bits(random_arrays({b.name: call.shapes[b.name] for b in kernel.inputs}, call.dtype, seed))
    story = f"seed {seed}, {call.op.name} {call.dtype} {dict(call.shapes)} {dict(call.attrs)}"
    assert_all_are_the_same(kernel, inputs, random.Random(seed), story)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_product_has_other_nests_and_tiles(direction: str | None) -> None:
    call = dense((1, 7, 28, 64), 128, direction)
    kernel = simplify(bind(*call.kernel()))
    inputs = few_bits(random_arrays({b.name: call.shapes[b.name] for b in kernel.inputs}, call.dtype, 1))
    assert len(assert_all_are_the_same(kernel, inputs, random.Random(1), "")) >= 3


def test_the_default_is_the_empty_path() -> None:
    kernel = simplify(bind(*dense((1, 7, 28, 64), 64).kernel()))
    assert scheduled(kernel, "cpu", typical(64), Decisions()) == scheduled(kernel, "cpu", typical(64))
