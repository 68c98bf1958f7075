"""What has no gradient is refused in words, with the place in the spec (declared gradients: tests/errors)."""

from __future__ import annotations

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.grad import gradient, load_text

SPEC = """op Pick {
  type T in {float32}
  type W in {int32, bool}
  input x: T[n, n]
  input places: W[n]
  input shape: T[n] shape_only
  output y: T[n]
  y[i] = sum[j < n](x[i * j, 0]) + T(places[i])
}
"""


@pytest.mark.parametrize(
    ("wrt", "message"),
    [
        (
            "z",
            """<text>:1:1: error[S062]: 'Pick' has no input tensor 'z' to differentiate with respect to
   |
 1 | op Pick {
   | ^^^^^^^^^""",
        ),
        (
            "place",
            """<text>:1:1: error[S062]: 'Pick' has no input tensor 'place' to differentiate with respect to
   |
 1 | op Pick {
   | ^^^^^^^^^
   = help: did you mean 'places'?""",
        ),
        (
            "places",
            """<text>:5:3: error[S062]: input 'places' of 'Pick' is of int32 or bool and has no gradient
   |
 5 |   input places: W[n]
   |   ^^^^^^^^^^^^^^^^^^""",
        ),
        (
            "shape",
            """<text>:6:3: error[S062]: nothing depends on the values of 'shape', an input of 'Pick' of which only the \
shape counts
   |
 6 |   input shape: T[n] shape_only
   |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^""",
        ),
        (
            "x",
            """<text>:8:23: error[S062]: only subscripts that are affine in the indices can be differentiated
   |
 8 |   y[i] = sum[j < n](x[i * j, 0]) + T(places[i])
   |                       ^^^^^""",
        ),
    ],
)
def test_word_for_word(wrt: str, message: str) -> None:
    module = load_text(SPEC)
    with pytest.raises(DiagnosticError) as caught:
        gradient(module, module.op("Pick"), wrt)
    assert str(caught.value) == message
