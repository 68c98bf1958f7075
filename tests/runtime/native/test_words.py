"""Parameters as 64-bit words."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from opgen.diagnostics import InternalError
from opgen.dtypes import BOOL, FLOAT32, FLOAT64, INT64
from opgen.loop.nodes import Parameter
from opgen.runtime.native.words import parameter_word


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63), np.int32(-7), np.int64(9), True])
def test_an_integer_is_itself(value: int) -> None:
    assert parameter_word(Parameter("n", INT64), value) == int(value)


def test_a_bool_is_0_or_1() -> None:
    assert [parameter_word(Parameter("flag", BOOL), v) for v in (False, True)] == [0, 1]


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("value", [0.0, -0.0, 1.5, 3, float("inf"), 5e-324])
def test_a_float_is_the_bits_of_a_float64(dtype: object, value: float) -> None:
    word = parameter_word(Parameter("x", FLOAT32), value)
    assert struct.pack("=q", word) == struct.pack("=d", value)


@pytest.mark.parametrize("value", [1.0, np.float32(1), "1", None])
def test_what_is_no_integer_is_refused(value: int) -> None:
    with pytest.raises(InternalError, match=r"^parameter n is of int64, given "):
        parameter_word(Parameter("n", INT64), value)
