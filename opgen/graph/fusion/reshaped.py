"""One op for several consecutive views: from one shape to another, with the elements in the same order.

Both shapes are cut into pieces, and each dimension is a product of pieces: 4, 6 and 2, 12 give 2, 2, 6.  The op is then

    sizes pieces: [n0, n1, n2]
    input x: T[n0 * n1, n2]
    output y: T[n0, n1 * n2]
    y[i0, i1 * n2 + i2] = x[i0 * n1 + i1, i2]

It is the same for all shapes that are cut alike, and its subscripts are sums.  Shapes whose pieces do not divide each
other (2, 3 and 3, 2) have no such op.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from math import prod

from opgen.dtypes import DTYPES
from opgen.graph.ir.nodes import Op, op_of
from opgen.spec.loading import load_text


def view_between(source: Sequence[int], target: Sequence[int]) -> tuple[Op, tuple[int, ...]] | None:
    """Return the op and the sizes of its pieces; None if there is none.

    The shapes have the same number of elements, at least one.
    """
    ends = sorted({*_ends(source), *_ends(target)})
    if any(far % near for near, far in pairwise(ends)):
        return None
    pieces = tuple(far // near for near, far in pairwise(ends))[::-1]
    return _op(len(pieces), _cut(source, ends), _cut(target, ends)), pieces


def _ends(shape: Sequence[int]) -> list[int]:
    """Return the products of the last dimensions of a shape: of none of them, one, two, ..."""
    return [prod(shape[axis:]) for axis in range(len(shape), -1, -1)]


def _cut(shape: Sequence[int], ends: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Return for each dimension the numbers of its pieces; the first piece is that of the slowest dimension."""
    found = []
    for axis in range(len(shape)):
        far, near = ends.index(prod(shape[axis:])), ends.index(prod(shape[axis + 1 :]))
        found.append(tuple(len(ends) - 1 - place for place in range(far, near, -1)))
    return tuple(found)


@lru_cache(maxsize=256)
def _op(count: int, source: tuple[tuple[int, ...], ...], target: tuple[tuple[int, ...], ...]) -> Op:
    """Return the op for a number of pieces and the pieces of each dimension; a dimension without pieces has size 1."""
    types = ", ".join(name for name in DTYPES)
    ones = [f"o{axis}" for axis, pieces in enumerate(target) if not pieces]
    subscripts = [_subscript(p) if p else ones.pop(0) for p in target]
    text = f'''op View {{
  """The same elements in the same order, in another shape."""
  type T in {{{types}}}
  sizes pieces: [{", ".join(f"n{k}" for k in range(count))}] """What the sizes of both shapes are products of."""
  input x: T[{", ".join(map(_size, source))}] """The elements."""
  output y: T[{", ".join(map(_size, target))}] """The same."""
  y[{", ".join(subscripts)}] = x[{", ".join(_subscript(p) or "0" for p in source)}]
}}
'''
    module = load_text(text, "view.op")
    return op_of(module, module.ops[0])


def _size(pieces: tuple[int, ...]) -> str:
    return " * ".join(f"n{k}" for k in pieces) or "1"


def _subscript(pieces: tuple[int, ...]) -> str:
    """Return the subscript of pieces: `(i0 * n1 + i1) * n2 + i2`, multiplied out."""
    terms = []
    for place, k in enumerate(pieces):
        terms.append(" * ".join([f"i{k}", *(f"n{other}" for other in pieces[place + 1 :])]))
    return " + ".join(terms)
