"""The tool that compares gradients of ONNX operators with differences: a sample of its calls; none is missing."""

from __future__ import annotations

import pytest

from tests.verification.gradients import slopes
from tests.verification.gradients.cases import CASES, DISCRETE

SAMPLE = [*CASES[::37], ("LayerNormalization", "X=2,3,4 Scale=3,4 B=3,4 axis=1 results=3")]
"""With a call whose results are not all of float64."""


def test_every_operator_has_calls() -> None:
    names = {name for name, _ in CASES}
    assert set(slopes.differentiable()) <= names | set(DISCRETE)
    assert names <= set(slopes.ops())
    assert len(CASES) == len(set(CASES))


@pytest.mark.parametrize(("name", "case"), SAMPLE)
def test_a_sample_of_the_calls(name: str, case: str) -> None:
    assert slopes.mistake(name, case, seed=1) is None


def test_a_wrong_slope_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slopes, "STEP", 0.5)
    said = slopes.mistake("Exp", "input=2,3", seed=0)
    assert said is not None
    assert said.startswith("the gradient says ")
