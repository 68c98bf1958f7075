"""ONNX's tests of nodes: those listed pass, no other does, and all others are refused by node, operator and reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from opgen.onnx.backend import prepare
from tests.onnx.node_cases import CHANCE, EXCEPTIONS, cases, listed, outcomes

PARTS = 16
"""In how many parts they run, so that processors share them."""
HINT = "if that is meant, write the list anew: python -m tests.onnx.node_cases"


@pytest.mark.parametrize("part", range(PARTS))
def test_of_nodes(part: int) -> None:
    wanted = listed()
    found = list(outcomes(part, PARTS))
    lost = [f"{o.name}: {o.said}" for o in found if o.name in wanted and not o.passed]
    new = [o.name for o in found if o.passed and o.name not in wanted]
    known = wanted | EXCEPTIONS.keys()
    strange = [f"{o.name}: {o.said}" for o in found if not (o.passed or o.refused) and o.name not in known]
    stale = [o.name for o in found if o.name in EXCEPTIONS and (o.passed or o.refused)]
    assert not lost, "\n".join(["these are listed as passing:", *lost])
    assert not new, "\n".join(["these pass and are not listed:", *new, HINT])
    assert not strange, "\n".join(["these are neither right nor refused by node, operator and reason:", *strange])
    assert not stale, "\n".join(["these are exceptions no longer:", *stale])


@pytest.mark.parametrize("name", sorted(EXCEPTIONS.keys() - CHANCE.keys()))
def test_what_an_exception_gives_is_nearer_to_the_result_in_float64(name: str) -> None:
    (case,) = (case for case in cases() if case.name == name)
    ((inputs, (wanted,)),) = case.data_sets
    (found,) = prepare(case.model).run(list(inputs))
    exact = _attention(inputs) if "attention" in name else _inverse_transform(inputs[0])
    ours, theirs = (np.abs(np.asarray(each, dtype=np.float64) - exact) for each in (found, wanted))
    assert ours.max() < theirs.max()
    assert ours.mean() < theirs.mean()


@pytest.mark.parametrize("name", sorted(CHANCE))
def test_what_chance_gives_is_what_it_may_give(name: str) -> None:
    (case,) = (case for case in cases() if case.name == name)
    ((inputs, wanted),) = case.data_sets
    found = prepare(case.model).run(list(inputs))
    assert [(f.dtype, f.shape) for f in found] == [(w.dtype, w.shape) for w in wanted]
    if "bernoulli" in name:
        assert set(np.unique(found[0])) <= {0, 1}
        return
    ratio = float(inputs[1])
    kept = found[0] != 0
    np.testing.assert_allclose(found[0][kept], (inputs[0] / (1 - ratio))[kept], rtol=1e-6)
    assert abs(np.mean(kept) - (1 - ratio)) < 5 * np.sqrt(ratio * (1 - ratio) / kept.size)
    if len(found) > 1:
        np.testing.assert_array_equal(found[1], kept)


def _attention(inputs: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    query, key, value = (np.asarray(each, dtype=np.float64) for each in inputs)
    later = np.arange(key.shape[2]) > np.arange(query.shape[2])[:, None]
    score = np.where(later, -np.inf, query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[3]))
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    exact: npt.NDArray[Any] = weight / weight.sum(axis=-1, keepdims=True) @ value
    return exact


def _inverse_transform(signal: npt.NDArray[Any]) -> npt.NDArray[Any]:
    z = np.fft.ifft(signal[..., 0].astype(np.float64) + 1j * signal[..., 1].astype(np.float64), axis=1)
    return np.stack([z.real, z.imag], -1)


def test_the_list_names_tests() -> None:
    names = listed()
    assert names <= {case.name for case in cases()}
    assert len(names) > 700
