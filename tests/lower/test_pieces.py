"""A result that an index chooses among many ranges: a loop for each, none that asks all conditions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from generated import onnx_ops
from opgen.loop.nodes import For, Select, Store
from opgen.loop.walk import walk, walk_expr
from opgen.lower import Variant, lower
from opgen.lower.pieces import LEAST
from opgen.spec.loading import load_text
from opgen.spec.model.model import Module


def joined(count: int, length: str = "n_{k}") -> Module:
    """Tensors one behind the other, of sizes with names of their own."""
    sizes = [length.format(k=k) for k in range(count)]
    starts = ["0", *(f"start_{k}" for k in range(1, count))]
    inputs = [f"input x_{k}: float32[{n}]" for k, n in enumerate(sizes)]
    lets = [f"let start_{k} = {starts[k - 1]} + {sizes[k - 1]}" for k in range(1, count)]
    ranges = [
        f"if j < {s} + {n} then (x_{k}[j - {s}] else 0) else"
        for k, (s, n) in enumerate(zip(starts, sizes, strict=True))
    ]
    value = " ".join([*ranges[:-1], f"x_{count - 1}[j - {starts[-1]}] else 0"])
    lines = [*inputs, f"output y: float32[{' + '.join(sizes)}]", *lets, f"y[j] = {value}"]
    return load_text("op Joined {\n" + "\n".join(lines) + "\n}")


@pytest.mark.parametrize(("count", "loops"), [(LEAST - 1, 1), (LEAST, LEAST), (3 * LEAST, 3 * LEAST)])
def test_many_ranges_have_loops_of_their_own(count: int, loops: int) -> None:
    module = joined(count)
    kernel = lower(module, module.ops[0], Variant({}, {})).kernel
    statements = list(walk(kernel.body))
    assert sum(isinstance(s, For) for s in statements) == loops
    stores = [s for s in statements if isinstance(s, Store)]
    assert any(isinstance(e, Select) for s in stores for e in walk_expr(s.value)) == (count < LEAST)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_joined_along_each_axis(axis: int) -> None:
    """Sizes differ, some are 0; as many tensors as a kernel with a condition each, and more."""
    for count in (LEAST - 1, LEAST, 3 * LEAST + 1):
        sizes = itertools.islice(itertools.cycle((2, 0, 3, 1)), count)
        shapes = [[size if a == axis else 3 for a in range(3)] for size in sizes]
        given = [np.random.default_rng(k).normal(size=shape).astype(np.float32) for k, shape in enumerate(shapes)]
        np.testing.assert_array_equal(onnx_ops.concat(given, axis=axis), np.concatenate(given, axis), strict=True)
