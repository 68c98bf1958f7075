"""Arithmetic between values, element by element with broadcasting, as a spec of its own.

Python's operators between symbols become these ops, and they sum the parts of a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from opgen.graph.ir.nodes import Op, Value, op_of
from opgen.spec.generic import Argument, instance
from opgen.spec.loading import load_text
from opgen.spec.model.model import Module

_NUMBERS = "half, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64"
_FLOATS = "half, bfloat16, float32, float64"

_BINARY = '''
op {name} {{
  """{doc}"""
  type T in {{{types}}}
  input x: T[dims... | 1] """Numbers."""
  input y: T[dims... | 1] """Numbers."""
  output z: T[dims...] """The results."""
  z[i...] = {value}
}}
'''

_UNARY = '''
op Opposite {{
  """The number of the other sign."""
  type T in {{{types}}}
  input x: T[dims...] """Numbers."""
  output z: T[dims...] """The results."""
  z[i...] = -x[i...]
}}
'''

_MATRICES = '''
op Matrices {{
  """Products of matrices, in batches; a vector is a row before, a column behind."""
  type T in {{{types}}}
  input x: T[batch... | 1, rows..., depth] """The matrices before."""
  input y: T[batch... | 1, depth, columns...] """The matrices behind."""
  rank rows <= 1, columns <= 1
  output z: T[batch..., rows..., columns...] """The products."""
  z[b..., i..., j...] = sum[k](x[b..., i..., k] * y[b..., k, j...])
}}
'''

PLUS, MINUS, TIMES, OVER, POWER = "Plus", "Minus", "Times", "Over", "Raised"
OPPOSITE, MATRICES = "Opposite", "Matrices"
"""The ops."""


@cache
def module() -> Module:
    """Return the spec."""
    binary = (
        (PLUS, "A sum.", _NUMBERS, "x[i...] + y[i...]"),
        (MINUS, "A difference.", _NUMBERS, "x[i...] - y[i...]"),
        (TIMES, "A product.", _NUMBERS, "x[i...] * y[i...]"),
        (OVER, "A quotient.", _FLOATS, "x[i...] / y[i...]"),
        (POWER, "A power.", _FLOATS, "pow(x[i...], y[i...])"),
    )
    text = "".join(_BINARY.format(name=n, doc=d, types=t, value=v) for n, d, t, v in binary)
    text += _MATRICES.format(types=_NUMBERS)
    return load_text(text + _UNARY.format(types=_NUMBERS.partition(", uint8")[0]), "arithmetic.op")


def op_for(name: str, inputs: Sequence[Value]) -> Op:
    """Return the op of that name for values of these types and ranks.

    Raises CallError for types that it does not take.
    """
    given = [Argument(v.dtype.name, len(v.shape)) for v in inputs]
    found = instance(module(), name, given, {})
    return op_of(Module(module().name, (found.op,), found.functions), found.op)
