"""Casts: the adjoint of a value is of the type of that value."""

from __future__ import annotations

import numpy as np
import pytest

from opgen import gradient
from opgen.bindings.python.live import module_of
from opgen.grad import load_text

SPEC = """
op Mixed {
  type T in {half, float32, float64}
  type U in {float32, float64}
  input a: T[n]
  input b: U[n]
  output y: U[n]
  output z: T[n]
  let s[i] = U(sum[k < 1](a[i + k])) * b[i]
  y[i] = s[i] * s[i] + U(int32(a[i]))
  z[i] = T(s[i]) * a[i]
}
"""


@pytest.mark.parametrize("types", [("float16", "float64"), ("float64", "float32"), ("float32", "float32")])
def test_each_type_has_its_own(types: tuple[str, str]) -> None:
    """All values are exact in all types; an integer does not vary."""
    ops = module_of(load_text(SPEC), "casts")
    a, b = np.array([1.5, 2], types[0]), np.array([0.5, 3], types[1])
    by_a = gradient(ops.mixed, wrt="a")(a, b, np.ones_like(b), np.ones_like(a))
    by_b = gradient(ops.mixed, wrt="b")(a, b, np.ones_like(b), np.ones_like(a))
    assert (by_a.dtype, by_b.dtype) == (a.dtype, b.dtype)
    assert by_a.tolist() == (2 * a * b * b + 2 * a * b).tolist()
    assert by_b.tolist() == (2 * a * b * a + a * a).tolist()
