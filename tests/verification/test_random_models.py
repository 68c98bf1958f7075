"""Random ONNX models: the first ones are right, and planted differences are found."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from tests.verification.random_models import case, contestants
from tests.verification.random_models.build import BINDINGS, Builder, UnusableError
from tests.verification.random_models.case import attempt
from tests.verification.random_models.generate import generate
from tests.verification.random_models.judge import difference, expected
from tests.verification.random_models.rules import RULES

PART = 10
SEEDS = range(20261128, 20261128 + 50, PART)


@pytest.mark.parametrize("first", SEEDS)
def test_models_are_right(first: int) -> None:
    """No model differs alone; `python -m tests.verification.random_models --seed SEED --count 1` repeats one."""
    found = {seed: attempt(seed) for seed in range(first, first + PART)}
    bad = {s: o for s, o in found.items() if o.verdict not in ("right", "outvoted", "refused")}
    assert not bad
    assert sum(o.verdict == "right" for o in found.values()) > PART // 2


def test_a_seed_gives_one_model() -> None:
    first, second = (generate(random.Random(7)).model().SerializeToString() for _ in range(2))
    assert first == second


def test_every_rule_adds_nodes() -> None:
    """Each rule fits some value of an early model."""
    fruitless = dict.fromkeys(RULES)
    for seed in range(300):
        if not fruitless:
            break
        for name in list(fruitless):
            builder = generate(random.Random(seed))
            before = len(builder.steps)
            try:
                RULES[name][1](builder)
            except UnusableError:
                continue
            if len(builder.steps) > before:
                del fruitless[name]
    assert not fruitless


def test_models_have_what_breaks_others() -> None:
    """Among models are sizes of zero, NaN, infinities, symbols, and sizes that change between runs."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        builder = generate(random.Random(seed))
        arrays = [a for v in builder.inputs.values() for a in v.arrays]
        seen["empty"] += any(a.size == 0 for a in arrays)
        seen["nan"] += any(a.dtype.kind == "f" and np.isnan(a).any() for a in arrays)
        seen["infinite"] += any(a.dtype.kind == "f" and np.isinf(a).any() for a in arrays)
        seen["symbols"] += any(not v.fixed for v in builder.inputs.values())
    assert min(seen[k] for k in ("empty", "nan", "infinite", "symbols")) >= 3, seen


def test_a_planted_difference_is_found_at_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is off by 1 in 1,000 is reported with the operator that made it, in the shortest model."""
    builder = Builder(random.Random(1))
    x = builder.operand(np.float32, ((4,) * BINDINGS, (6,) * BINDINGS), constant=0.0)
    y = builder.node("Exp", [x])[0]
    z = builder.node("Softmax", [y], axis=1)[0]
    builder.node("Neg", [z])
    right = contestants.opgen_of

    def planted(model: object) -> contestants.Run:
        run = right(model)
        after = any(n.op_type == "Softmax" for n in model.graph.node)
        return lambda feeds: {n: a * np.float32(1.001 if after else 1) for n, a in run(feeds).items()}

    monkeypatch.setattr(case, "opgen_of", planted)
    monkeypatch.setattr(case, "generate", lambda _: builder)
    found = attempt(1)
    assert found.operator == "Softmax"
    assert found.verdict in ("wrong", "unsettled")
    assert "Neg" not in found.detail


def test_rounding_is_tolerated_and_more_is_not() -> None:
    builder = Builder(random.Random(1))
    x = builder.operand(np.float32, ((64,) * BINDINGS,), constant=0.0)
    builder.node("ReduceSum", [x], keepdims=1)
    wanted = expected(builder, 0, 1)["v0"]
    exact = builder.values[-1].arrays[0]
    assert difference(np.nextafter(exact, np.float32(np.inf)), wanted) == ""
    assert "elements differ" in difference(exact * np.float32(1.01) + np.float32(0.01), wanted)
    assert "expected float32[1], got float32[1, 1]" in difference(exact[None], wanted)
    assert difference(exact + np.float32(9), replace(wanted, stable=np.zeros(1, bool))) == ""
