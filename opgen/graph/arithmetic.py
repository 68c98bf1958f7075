"""Arithmetic between values, element by element with broadcasting, as a spec of its own.

It is what operators of Python mean between symbols, and what sums the parts of a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from opgen.graph.nodes import Op, Value, op_of
from opgen.spec.generic import Argument, instance
from opgen.spec.loading import load_text
from opgen.spec.model import Module

_NUMBERS = "half, bfloat16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64"
_FLOATS = "half, bfloat16, float32, float64"

_BINARY = '''
op {name} {{
  """{doc}"""
  type T in {{{types}}}
  input x: T[dims... | 1] """Numbers."""
  input y: T[dims... | 1] """Numbers."""
  output z: T[dims...] """The results."""
  z[i...] = x[i...] {sign} y[i...]
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

PLUS, MINUS, TIMES, OVER, OPPOSITE = "Plus", "Minus", "Times", "Over", "Opposite"
"""The ops."""


@cache
def module() -> Module:
    """The spec."""
    binary = (
        (PLUS, "A sum.", _NUMBERS, "+"),
        (MINUS, "A difference.", _NUMBERS, "-"),
        (TIMES, "A product.", _NUMBERS, "*"),
        (OVER, "A quotient.", _FLOATS, "/"),
    )
    text = "".join(_BINARY.format(name=n, doc=d, types=t, sign=s) for n, d, t, s in binary)
    return load_text(text + _UNARY.format(types=_NUMBERS.partition(", uint8")[0]), "arithmetic.op")


def op_for(name: str, inputs: Sequence[Value]) -> Op:
    """The op of that name for values of these types and ranks.  Raises CallError for types that it does not take."""
    given = [Argument(v.dtype.name, len(v.shape)) for v in inputs]
    found = instance(module(), name, given, {})
    return op_of(Module(module().name, (found.op,), found.functions), found.op)
