"""Ops of very many definitions: nothing depends on Python's limit of recursion, and work grows with their number."""

from __future__ import annotations

import cProfile
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from opgen.diagnostics import InternalError
from opgen.dtypes import FLOAT32
from opgen.grad import gradient, load_text
from opgen.loop import build as b
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Alloc, Block, Kernel, Store
from opgen.loop.verify import verify
from opgen.lower import lower, variant_of
from opgen.passes.legalize import legalize
from opgen.schedule.auto.trial import Trial
from opgen.schedule.default import scheduled
from opgen.schedule.errors import ScheduleError
from opgen.schedule.focus import run
from opgen.schedule.schedule import apply
from opgen.schedule.steps import Split
from tools.compile_time import CHAINS, kernel_of

SHAPES = {"x": (4, 6), "w": (6, 6)}


def chain(kind: str, length: int, small: bool = True) -> Kernel:
    module = load_text(CHAINS[kind].text(length))
    shapes = {n: SHAPES.get(n, (6, 6)) if small else shape for n, shape in CHAINS[kind].shapes.items()}
    return kernel_of(module, module.ops[0], shapes)


def test_a_thousand_pointwise_definitions_compute_what_they_say() -> None:
    kernel = chain("pointwise", 1000)
    schedule, fast = scheduled(kernel)
    assert len(kernel.body.buffers if isinstance(kernel.body, Alloc) else ()) < 100, "they are not put together"
    assert apply(kernel, schedule) == fast
    x = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)
    expected = x
    for _ in range(1000):
        expected = np.tanh(expected) + np.float32(0.5)
    found = interpret(legalize(fast), {"x": x}, {})["y"]
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["rows", "layers", "cells"])
def test_a_thousand_definitions_are_lowered_and_differentiated(kind: str) -> None:
    module = load_text(CHAINS[kind].text(1000))
    op = module.ops[0]
    slope = gradient(module, op, "x")
    for each in (op, slope):
        kernel = lower(replace(module, ops=(op, slope)), each, variant_of(each, {"T": "float32"}, {})).kernel
        assert isinstance(kernel.body, Alloc)
        assert isinstance(kernel.body.body, Block)
        assert len(kernel.body.body.statements) >= 200
        verify(kernel)


@pytest.mark.parametrize("kind", ["rows", "cells"])
def test_the_work_grows_with_the_number_of_definitions(kind: str) -> None:
    def calls(length: int) -> int:
        kernel = chain(kind, length, small=False)
        profile = cProfile.Profile()
        profile.enable()
        schedule, fast = scheduled(kernel)
        apply(kernel, schedule)
        legalize(fast)
        profile.disable()
        return sum(entry.callcount for entry in profile.getstats())

    few, many = calls(40), calls(80)
    assert many < 3 * few, "of work that grows with the square it were four times as much"


@pytest.mark.parametrize("kind", ["rows", "layers", "cells"])
def test_a_step_does_the_same_where_it_looks_at_little(kind: str) -> None:
    kernel = chain(kind, 45)
    schedule, fast = scheduled(kernel)
    assert schedule.steps
    for step in schedule.steps:
        after = run(step, kernel)
        assert after == step.run(kernel), step
        kernel = after
    assert kernel == fast


@pytest.mark.parametrize(
    ("kind", "length", "by_gradient"), [("rows", 40, False), ("cells", 63, False), ("layers", 34, True)]
)
def test_a_nest_is_scheduled_without_the_others_as_among_them(
    kind: str, length: int, by_gradient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, shapes = load_text(CHAINS[kind].text(length)), dict(CHAINS[kind].shapes)
    op = module.ops[0]
    if by_gradient:
        op, shapes["grad_y"] = gradient(module, op, "x"), shapes["x"]
    kernel = kernel_of(replace(module, ops=(module.ops[0], op)), op, shapes)
    apart, found = Trial.apart, []

    def counted(self: Trial, loops: Sequence[str], run: Callable[[Trial], object]) -> bool:
        found.append(apart(self, loops, run))
        return found[-1]

    monkeypatch.setattr(Trial, "apart", counted)
    by_itself = scheduled(kernel)
    assert sum(found) > 30, "nearly all nests are scheduled without the others"
    assert all(found) or by_gradient, "a copy of an input that all nests read is made with all of them"
    monkeypatch.setattr(Trial, "apart", lambda *_: False)
    assert scheduled(kernel) == by_itself


def test_a_step_that_is_refused_is_refused_where_it_looks_at_little() -> None:
    kernel = chain("rows", 45)
    splits = 0
    for step in scheduled(kernel)[0].steps[:40]:
        kernel = run(step, kernel)
        if isinstance(step, Split):
            splits += 1
            with pytest.raises(ScheduleError):  # its loop is not there any more
                run(step, kernel)
    assert splits > 2


def test_what_a_step_breaks_is_found_though_the_rest_is_not_looked_at() -> None:
    good = chain("rows", 45)
    verify(good)
    body = good.body
    assert isinstance(body, Alloc)
    assert isinstance(body.body, Block)
    first, *rest = body.body.statements
    for broken in (
        Alloc(body.buffers[1:], body.body),
        Alloc(body.buffers, Block((first, Store("nowhere", (), b.const(0.0, FLOAT32)), *rest))),
        Alloc((replace(body.buffers[0], name="t3_i"), *body.buffers), body.body),
    ):
        with pytest.raises(InternalError):
            verify(replace(good, body=broken), before=good)
    verify(replace(good, body=Alloc(body.buffers, Block((first, *rest)))), before=good)
