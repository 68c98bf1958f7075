"""Slices of a tensor along an axis, and a tensor of slices, as specs of their own."""

from __future__ import annotations

from functools import cache

from opgen.dtypes import DTYPES
from opgen.spec.loading import load_text
from opgen.spec.model.model import Module

_TEXT = '''
op {taken} {{
  """One slice of a tensor along an axis; where there is none, zeros."""
  type T in {{{types}}}
  attr axis: int """The axis."""
  input x: T[before..., n, after...] """The tensor."""
  rank before = axis of x
  input at: int64[] """Which slice."""
  output y: T[before..., after...] """The slice."""
  y[b..., a...] = x[b..., at[], a...] else 0
}}

op {joined} {{
  """Slices one behind the other along a new axis."""
  type T in {{{types}}}
  attr axis: int """The new axis."""
  inputs parts: T[dims...] one or more """The slices."""
  let at... = normalised([axis], rank(dims) + 1)...
  let start... = positions(count(parts))...
  output y: T[place(dims, count(parts), at)...] """The tensor."""
  y[place(i, j, at)...] = if sum(j...) <= start then parts[i...]...
}}
'''

TAKEN, JOINED = "OneSlice", "Joined"
"""The ops."""


@cache
def module() -> Module:
    """Return the spec."""
    return load_text(_TEXT.format(taken=TAKEN, joined=JOINED, types=", ".join(DTYPES)), "slices.op")
