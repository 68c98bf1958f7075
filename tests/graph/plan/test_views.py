"""Views are told from what an op reads, whatever it is called."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.dtypes import DTYPES
from opgen.graph.compiled.compiled import CompiledModel
from opgen.graph.ir.bound import bound, make_node
from opgen.graph.ir.nodes import Graph, Value, op_of
from opgen.graph.plan.views import view_of
from opgen.spec.loading import load_text

OPS = load_text(
    '''
op Fold {
  """A matrix in rows of `width`."""
  type T in {float32, int32}
  input x: T[a, b] """Elements."""
  attr width: int >= 1 = 2 """Of a row."""
  require a * b % width == 0 : width "a divisor"
  output y: T[a * b // width, width] """The same ones."""
  y[i, j] = x[(i * width + j) // max(b, 1), (i * width + j) % max(b, 1)] else 0
}

op Turn {
  """Columns as rows."""
  type T in {float32, int32}
  input x: T[a, b] """Elements."""
  output y: T[b, a] """Turned."""
  y[i, j] = x[j, i]
}

op Longer {
  """In float64."""
  input x: float32[a, b] """Elements."""
  output y: float64[a, b] """The same numbers."""
  y[i, j] = float64(x[i, j])
}

op Front {
  """The first rows."""
  input x: float32[a, b] """Elements."""
  attr count: int >= 0 = 1 """How many."""
  require count <= a : count "no more than there are"
  output y: float32[count, b] """The same numbers."""
  y[i, j] = x[i, j] else 0
}

op Backwards {
  """The rows from the last on."""
  input x: float32[a, b] """Elements."""
  output y: float32[a, b] """The same numbers."""
  y[i, j] = x[a - 1 - i, j]
}
''',
    "views.op",
)


@pytest.mark.parametrize(
    ("op", "shape", "attributes", "is_view"),
    [
        ("Fold", (6, 4), {"width": 8}, True),
        ("Fold", (6, 4), {"width": 24}, True),
        ("Fold", (3000, 500), {"width": 300}, True),
        ("Turn", (6, 4), {}, False),
        ("Turn", (6, 1), {}, True),
        ("Turn", (1, 6), {}, True),
        ("Longer", (2, 3), {}, False),
        ("Front", (4, 3), {"count": 4}, True),
        ("Front", (4, 3), {"count": 3}, False),
        ("Front", (4, 0), {"count": 3}, True),
        ("Backwards", (2, 3), {}, False),
        ("Backwards", (1, 3), {}, True),
    ],
)
def test_views(op: str, shape: tuple[int, ...], attributes: dict[str, int], is_view: bool) -> None:
    x = Value("x", DTYPES["float32"], shape)
    node, made = make_node("n", op_of(OPS, OPS.op(op)), [x], ["y"], attributes)
    graph = Graph("g", (x,), (), made, (node,), ("y",))
    assert (view_of(bound(graph, node)) is not None) == is_view
    program = CompiledModel.of_graph(graph).programs[0].program
    assert len(program.entry.launches) == (0 if is_view else 1)


def test_a_view_of_a_view_of_an_input_is_copied_to_the_output() -> None:
    x = Value("x", DTYPES["float32"], (6, 4))
    first, (a,) = make_node("first", op_of(OPS, OPS.op("Fold")), [x], ["a"], {"width": 8})
    second, (b,) = make_node("second", op_of(OPS, OPS.op("Fold")), [a], ["b"], {"width": 3})
    third, (c,) = make_node("third", op_of(OPS, OPS.op("Turn")), [b], ["c"])
    model = CompiledModel.of_graph(Graph("g", (x,), (), (a, b, c), (first, second, third), ("b", "c", "a")))
    given = np.arange(24, dtype=np.float32).reshape(6, 4)
    found = model(given)
    assert isinstance(found, tuple)
    for array, expected in zip(found, (given.reshape(8, 3), given.reshape(8, 3).T, given.reshape(3, 8)), strict=True):
        np.testing.assert_array_equal(array, expected)
        assert not np.shares_memory(array, given)
