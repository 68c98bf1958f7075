"""Few results at each position: lanes along the positions, masks at the border."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from opgen.grad.gradient import gradient
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.machine import typical
from opgen.passes.simplify import simplify
from opgen.spec import load
from tests.harness import Call
from tests.support.scheduled import assert_right

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")
MACHINES = {"512 bits": typical(64), "256 bits": typical(32), "few registers": replace(typical(16), registers=8)}


def strided(seed: int) -> Kernel:
    """An input gradient with few channels."""
    rng = random.Random(seed)
    order = rng.choice(["NHWC", "NCHW"])
    image = {
        "N": rng.choice([1, 2]),
        "H": rng.randint(3, 6),
        "W": rng.choice([15, 16, 23, 35, 50]),
        "C": rng.randint(1, 5),
    }
    steps = {"H": rng.choice([1, 2]), "W": rng.choice([1, 2, 3])}
    attrs = {
        "strides": [steps.get(letter, 1) for letter in order],
        "dilations": [{"H": rng.choice([1, 2]), "W": rng.choice([1, 1, 2])}.get(letter, 1) for letter in order],
        "padding": rng.choice(["SAME", "VALID"]),
        "data_format": order,
    }
    shapes = {
        "input": tuple(image[letter] for letter in order),
        "filter": (rng.randint(1, 3), rng.randint(1, 4), image["C"], rng.choice([8, 16, 20])),
    }
    op = MODULE.op("Conv2D")
    cotangent = tuple(Call(MODULE, op, shapes, attrs, dtype="float32").environment.output_shapes["output"])
    dtype = rng.choice(["float32", "float32", "bfloat16", "float64"])
    call = Call(MODULE, gradient(MODULE, op, "input"), {**shapes, "grad_output": cotangent}, attrs, dtype=dtype)
    lowered, parameters = call.kernel()
    return simplify(bind(lowered, parameters))


@pytest.mark.parametrize("spoiled", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_strided(seed: int, spoiled: bool) -> None:
    """Terms outside are left out, also where the other factor is no number."""
    machine = list(MACHINES.values())[seed % 3]
    assert_right(strided(seed), machine, seed, spoiled)


def test_lanes_go_along_the_row() -> None:
    """One class of positions at a time, in whole vectors; three results at each."""
    shapes = {"input": (1, 4, 64, 3), "filter": (3, 3, 3, 16), "grad_output": (1, 4, 32, 16)}
    attrs = {"strides": [1, 1, 2, 1], "padding": "SAME"}
    op = gradient(MODULE, MODULE.op("Conv2D"), "input")
    lowered, parameters = Call(MODULE, op, shapes, attrs, dtype="float32").kernel()
    text = assert_right(simplify(bind(lowered, parameters)), typical(), 0)
    for step in ("split w 2 tail=exact -> w_q, w_p", "split w_q 32 tail=exact", "unroll c", "vectorize w_q_l"):
        assert step in text
    assert "transpose" in text


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
def test_one_result(data_format: str) -> None:
    """Of which there is no loop: an image of one channel."""
    size = {"N": 1, "H": 5, "W": 21, "C": 1}
    shapes = {"input": tuple(size[letter] for letter in data_format), "filter": (3, 3, 1, 8)}
    size = {"N": 1, "H": 3, "W": 19, "C": 8}
    shapes["grad_output"] = tuple(size[letter] for letter in data_format)
    op = gradient(MODULE, MODULE.op("Conv2D"), "input")
    attrs = {"strides": [1, 1, 1, 1], "padding": "VALID", "data_format": data_format}
    lowered, parameters = Call(MODULE, op, shapes, attrs, dtype="float32").kernel()
    text = assert_right(simplify(bind(lowered, parameters)), typical(), 0)
    assert "vectorize w_l" in text
    assert "reorder h, w_o, r, s, k, w_v, w_l" in text


PRODUCT = """
kernel product(a: float32[{M}, 20], b: float32[20, {N}]) -> (c: float32[{M}, {N}]):
  for i in 0..{M}:
    for j in 0..{N}:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for k in 0..20:
        acc[] = fma(a[i, k], b[k, j], acc[])
      c[i, j] = acc[]
"""


def product(m: int, n: int) -> Kernel:
    return simplify(parse_kernel(PRODUCT.replace("{M}", str(m)).replace("{N}", str(n))))


@pytest.mark.parametrize("m", [16, 37, 64])
@pytest.mark.parametrize("n", [2, 3])
def test_tall_products(m: int, n: int) -> None:
    assert "vectorize i_l" in assert_right(product(m, n), typical(), m + n, kind="few")


@pytest.mark.parametrize("m", [16, 37, 64])
def test_results_that_nearly_fill_a_vector_have_one_with_a_mask(m: int) -> None:
    assert "split j 8 tail=guard" in assert_right(product(m, 7), typical(), m)


def test_many_results_stay_side_by_side() -> None:
    text = assert_right(simplify(parse_kernel(PRODUCT.replace("{M}", "8").replace("{N}", "32"))), typical(), 1)
    assert "vectorize j_l" in text
