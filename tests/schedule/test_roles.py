"""The roles of operands and loops: of nests whose roles are plain, and of all that the benchmark's ops lower to."""

from __future__ import annotations

import random

import pytest

from opgen.compiler.choose import choose, definition_of
from opgen.loop.parse import parse_kernel
from opgen.schedule.auto.nests import Nest, depends, nests
from opgen.schedule.auto.roles import Roles
from tools.bench.kernels import request_of
from tools.bench.layers import DIRECTIONS, FORMATS, LAYERS, Choice, read_cases

PRODUCT = """kernel f(
    a: float32[3, 40, 50],
    w: float32[50, 64],
    bias: float32[64],
) -> (
    y: float32[3, 40, 64],
):
    for b in 0 .. 3:
        for m in 0 .. 40:
            for n in 0 .. 64:
                alloc s: float32[] register:
                    s[] = 0.0f32
                    for k in 0 .. 50:
                        s[] = s[] + a[b, m, k] * w[k, n]
                    y[b, m, n] = s[] + bias[n]
"""


def only(text: str) -> Nest:
    (nest,) = nests(parse_kernel(text))
    return nest


def test_a_product_of_matrices() -> None:
    roles = Roles.of(only(PRODUCT))
    assert roles.lanes == "n"
    assert [e.buffer for e in roles.vectors] == ["w"]
    assert [e.buffer for e in roles.scalars] == ["a"]
    assert roles.pair == (*roles.vectors, *roles.scalars)
    assert (roles.columns, roles.batch) == (("n",), ())
    assert (roles.positions, roles.terms) == (("b", "m"), ("k",))
    assert roles.extents == {"b": 3, "m": 40, "n": 64, "k": 50}
    assert roles.is_sum
    assert not roles.is_window
    assert roles.stores_vectors
    assert (roles.width, roles.is_whole("n", 16), roles.is_whole("m", 6)) == (64, True, False)
    assert roles.bytes(roles.scalars[0]) == 4 * 3 * 40 * 50
    assert not roles.nest.borders
    assert not roles.walks


def test_lanes_along_another_loop() -> None:
    """Operands change places."""
    roles = Roles.of(only(PRODUCT), "m")
    assert [e.buffer for e in roles.vectors] == ["a"]
    assert roles.columns == ("b", "m")
    assert not roles.stores_vectors
    assert Roles.of(roles.nest, "m") is roles
    assert Roles.of(roles.nest) is Roles.of(roles.nest, "n")


def test_a_batch_of_products() -> None:
    roles = Roles.of(only(PRODUCT.replace("float32[50, 64]", "float32[3, 50, 64]").replace("w[k, n]", "w[b, k, n]")))
    assert (roles.columns, roles.batch) == (("n",), ("b",))


def test_true_sizes_of_types() -> None:
    wide = PRODUCT.replace("float32", "float64").replace("0.0f32", "0.0f64")
    roles = Roles.of(only(wide))
    assert roles.bytes(roles.vectors[0]) == 8 * 50 * 64


@pytest.mark.parametrize("seed", range(12))
def test_each_operand_and_each_loop_has_one_role(seed: int) -> None:
    """Of random layers, and any loop for lanes; what has a role has it by its indices."""
    rng = random.Random(seed)
    case = rng.choice(read_cases(LAYERS, Choice((1, 8), DIRECTIONS, FORMATS, ("float32", "float64", "bfloat16"))))
    for nest in nests(choose(definition_of(request_of(case))).kernel):
        roles = Roles.of(nest, rng.choice(nest.names))
        assert set(roles.vectors) | set(roles.scalars) == set(nest.summed), f"seed {seed}: {case.name}"
        assert not set(roles.vectors) & set(roles.scalars)
        assert not set(roles.columns) & set(roles.batch)
        assert {roles.lanes, *roles.positions} == set(nest.names)
        assert roles.lanes not in roles.batch
        assert all(depends(e.indices, roles.lanes or "") for e in roles.vectors)
        assert roles.is_window == (not roles.scalars)
        assert set(roles.phases) <= nest.borders


def test_windows_walk_and_have_borders() -> None:
    case = next(c for c in read_cases(LAYERS, Choice()) if c.name == "mb_14_384/1/forward")
    (nest,) = nests(choose(definition_of(request_of(case))).kernel)
    roles = Roles.of(nest)
    assert roles.is_window
    assert {(w.step, w.apart) for w in roles.walks} == {(1, 1)}
    assert len(roles.walks) == 2
    assert len(nest.borders) == 4


def test_a_strided_gradient_has_phases() -> None:
    case = next(c for c in read_cases(LAYERS, Choice((1,), ("input",))) if c.name == "r50_3_3x3s2/1/input")
    (nest,) = nests(choose(definition_of(request_of(case))).kernel)
    assert sorted(Roles.of(nest).phases.values()) == [2, 2]
