"""`opgen.empty`, as a user calls it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import opgen
from opgen.diagnostics import UserError
from opgen.dtypes import DTYPES


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(), 0, 5, (3, 0), [2, 3], (64, 33), (np.int64(300), 300)], ids=str)
def test_new_arrays(shape: Any, name: str) -> None:
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    for found in (opgen.empty(shape, name), opgen.empty(shape, dtype)):
        assert found.dtype == dtype
        assert found.shape == np.empty(shape).shape
        assert found.ctypes.data % 64 == 0
        assert (found.flags.c_contiguous, found.flags.writeable) == (True, True)


def test_float32_is_what_is_meant() -> None:
    assert opgen.empty(3).dtype == np.float32


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        (3, object, "opgen.empty: argument 'dtype': expected one of .*, given object"),
        (3, ">f4", "given >f4"),
        (3, "flaot32", "given 'flaot32'"),
        (3, "U4", "given <U4"),
        ((3, -1), "float32", "argument 'shape': expected sizes that are not negative, given .3, -1."),
        (-1, "float32", "given -1"),
        (2.5, "float32", "argument 'shape': expected an integer or a list of integers, given 2.5"),
        ("3", "float32", "given '3'"),
    ],
)
def test_what_is_refused(shape: Any, dtype: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        opgen.empty(shape, dtype)


@pytest.mark.parametrize("shape", [2**62, (2**40, 2**40), 2**70])
def test_shapes_beyond_memory(shape: Any) -> None:
    with pytest.raises((MemoryError, ValueError)):
        opgen.empty(shape)
