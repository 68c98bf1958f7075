"""The checks of sizes, and their messages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opgen.diagnostics.calls import ArgumentError, ArgumentMemoryError, ArgumentValueError
from opgen.runtime.call.dimensions import DimensionChecks, logical, padded, rows, stretched

check = DimensionChecks("Op")


def test_what_fits() -> None:
    assert check.rank("x", np.ones((2, 3)), 2) == (2, 3)
    check.same("x", (2, 3), 1, 3, "k")
    check.same("x", (2, 1), 1, 3, "k", or_one=True)
    assert check.factor("x", (2, 12), 1, 4, "k") == 3
    assert check.factor("x", (2, 0), 1, 4, "k") == 0
    assert check.factor("x", (2, 0), 1, 0, "k") == 1
    assert check.result("y", (1, 2, 3), ("NHC", "NCH"), "float32", "x", (1,)).shape == (1, 3, 2)
    assert check.result("y", (), None, "float32", "x", (1,)).shape == ()


WRONG: list[tuple[Callable[[], object], type[ArgumentError], str]] = [
    (lambda: check.rank("x", np.ones(2), 2), ArgumentValueError, "'x': expected a tensor of rank 2, given shape [2]"),
    (lambda: check.same("x", (2, 4), 1, 3, "k"), ArgumentValueError,
     "'x': expected dimension 1 to be 3 (k), given shape [2, 4]"),
    (lambda: check.same("x", (2, 4), 1, 3, ""), ArgumentValueError,
     "'x': expected dimension 1 to be 3, given shape [2, 4]"),
    (lambda: check.same("x", (2, 4), 1, 3, "k", or_one=True), ArgumentValueError,
     "'x': expected dimension 1 to be 3 or 1 (k), given shape [2, 4]"),
    (lambda: check.same("n", (2, 4), 1, 3, "k", vector=True), ArgumentValueError,
     "'n': expected element 1 to be 3 (k), given [2, 4]"),
    (lambda: check.factor("x", (2, 4), 1, 3, "k"), ArgumentValueError,
     "'x': expected dimension 1 to be a multiple of 3 (k), given shape [2, 4]"),
    (lambda: check.factor("x", (2, 4), 1, 0, "k"), ArgumentValueError,
     "'x': expected dimension 1 to be 0 (k is 0), given shape [2, 4]"),
    (lambda: check.result("y", (2, -1), None, "float32", "x", (2, 4)), ArgumentValueError,
     "'x': expected sizes that give 'y' a shape (computed [2, -1]), given shape [2, 4]"),
    (lambda: check.result("y", (2**32, 2**31), None, "float32", "x", (2, 4)), ArgumentValueError,
     "'x': expected sizes that give 'y' a shape (computed [4294967296, 2147483648]), given shape [2, 4]"),
    (lambda: check.result("y", (2**31, 2**31), None, "float32", "x", (2, 4)), ArgumentMemoryError,
     "'y': expected a result of at most 9223372036854775807 bytes, given float32[2147483648, 2147483648]"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), WRONG, ids=[m for _, _, m in WRONG])
def test_what_does_not(call: Callable[[], object], kind: type[ArgumentError], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == f"Op: argument {message}"


def test_orders_and_rows() -> None:
    assert logical((1, 2, 3, 4), "NCHW", "NHWC") == (1, 3, 4, 2)
    assert logical(logical("abcd", "NHWC", "NCHW"), "NCHW", "NHWC") == ("a", "b", "c", "d")
    assert padded((), 3) == (0, 0, 0)
    assert padded((1, 2, 3), 3) == (1, 2, 3)
    assert rows((1, 2, 3, 4), 2) == ((1, 2), (3, 4))
    assert [stretched(1, 1), stretched(1, 3, 1), stretched(0, 1), stretched(1, 0)] == [1, 3, 0, 0]
