"""Determinants, sums of products, running products, and windows, against numpy in float64.

Values are drawn from OPGEN_TEST_SEED (0).
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from generated import onnx_ops
from opgen.diagnostics import UserError

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 20])
def test_determinants(size: int) -> None:
    """Of random matrices, of those whose rows must change places, and of singular ones."""
    rng = np.random.default_rng(SEED)
    plain = rng.standard_normal((3, size, size))
    turned = np.stack([np.eye(size)[rng.permutation(size)] * rng.uniform(1, 2, size) for _ in range(3)])
    found = onnx_ops.det(np.stack([plain, turned]))
    np.testing.assert_allclose(found, np.linalg.det(np.stack([plain, turned])), rtol=1e-10, err_msg=f"seed {SEED}")
    if size > 1:
        assert onnx_ops.det(np.ones((size, size))) == 0
        assert np.isnan(onnx_ops.det(np.full((size, size), np.nan)))


SUMS: dict[str, tuple[tuple[int, ...], ...]] = {
    "": ((),),
    "ba": ((2, 3),),
    "ba->b...a": ((2, 3),),
    "ii->i": ((3, 3),),
    "ijij": ((2, 3, 2, 3),),
    "...ii->...i": ((2, 3, 3),),
    "Tt,tT->T": ((3, 4), (4, 3)),
    " i j , j k -> i k ": ((2, 3), (3, 4)),
    "...ij,...jk": ((2, 3, 4), (1, 4, 5)),
    "B...a,...a->...B": ((5, 2, 4), (2, 4)),
    "a,,b": ((3,), (), (4,)),
    "a,b,ab->": ((3,), (4,), (3, 4)),
    "ab,cd->": ((2, 3), (4, 5)),
    "ab,bc,cd->ad": ((2, 0), (0, 4), (4, 5)),
    "abc,cd,de,efg,gh->abfh": ((2, 3, 4), (4, 5), (5, 6), (6, 2, 3), (3, 4)),
}


@pytest.mark.parametrize("equation", SUMS)
def test_sums_of_products(equation: str) -> None:
    """As numpy's; in the types that numpy sums as it does."""
    rng = np.random.default_rng(SEED)
    for dtype in (np.float64, np.int32):
        factors = [np.asarray(rng.integers(-9, 9, shape), dtype) for shape in SUMS[equation]]
        found = onnx_ops.einsum(factors, equation=equation)
        wanted = np.einsum(equation, *factors) if equation else factors[0]
        np.testing.assert_array_equal(found, wanted, err_msg=f"seed {SEED}", strict=True)


MISTAKES = {
    "ij,j": "argument 'equation': expected an equation of 1 term, given 'ij,j'",
    "i": "argument 'x_0': expected a tensor of rank 1, given rank 2",
    "ij->jk": "argument 'equation': expected 'k' of the result in a term before '->', given 'ij->jk'",
    "ij->jj": "argument 'equation': expected each letter of the result once, given 'ij->jj'",
    "i1": "argument 'equation': expected letters and at most one '...' in each term, given 'i1'",
    "ij - > ji": "argument 'equation': expected letters and at most one '...' in each term, given 'ij - > ji'",
    "a->b->c": "argument 'equation': expected letters and at most one '...' in each term, given 'a->b->c'",
    "ii": "argument 'x_0': expected dimension 1 to be 2 (i_size), given shape [2, 3]",
}


@pytest.mark.parametrize("equation", MISTAKES)
def test_an_equation_that_does_not_fit(equation: str) -> None:
    with pytest.raises(UserError) as caught:
        onnx_ops.einsum([np.ones((2, 3))], equation=equation)
    assert str(caught.value) == f"Einsum: {MISTAKES[equation].replace('x_0', 'Inputs_0')}"


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_products(axis: int, reverse: bool) -> None:
    x = np.random.default_rng(SEED).integers(-9, 9, (4, 5), dtype=np.int32)
    wanted = (
        np.flip(np.cumprod(np.flip(x, axis), axis, dtype=np.int32), axis)
        if reverse
        else np.cumprod(x, axis, dtype=np.int32)
    )
    np.testing.assert_array_equal(onnx_ops.cum_prod(x, axis, reverse=reverse), wanted, err_msg=f"seed {SEED}")
    before = onnx_ops.cum_prod(x, axis, reverse=reverse, exclusive=True)
    np.testing.assert_array_equal(before * x, wanted, err_msg=f"seed {SEED}")


@pytest.mark.parametrize("size", [1, 2, 9, 64])
@pytest.mark.parametrize("name", ["hann", "hamming", "blackman"])
def test_windows(name: str, size: int) -> None:
    """Symmetric ones are numpy's (with 0.54 for 25/46), periodic ones those one longer, without the end."""
    weights = {"hann": (0.5, 0.5, 0), "hamming": (25 / 46, 21 / 46, 0), "blackman": (0.42, 0.5, 0.08)}[name]
    function = getattr(onnx_ops, f"{name}_window")
    for periodic in (False, True):
        turn = 2 * np.pi * np.arange(size) / (size if periodic else max(1, size - 1))
        wanted = weights[0] - weights[1] * np.cos(turn) + weights[2] * np.cos(2 * turn)
        found = function(size, periodic=periodic, output_datatype="float64")
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15)
    assert function(np.int32(size)).dtype == np.float32
