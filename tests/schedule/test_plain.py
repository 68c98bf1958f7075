"""Nests that memory bounds, scheduled automatically: bit for bit what the unscheduled program gives."""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from opgen.loop.verify import verify
from opgen.machine import Machine, typical
from opgen.machine.model import Cache
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import parse_schedule
from tests.support.machines import tiny_caches
from tests.support.plain_ops import DTYPES, Shapes, few_bits, kernel_of, shapes_across, shapes_of_rows


def assert_same(name: str, shapes: Shapes, dtype: str, seed: int, machine: Machine | None = None) -> str:
    """Compiled, at guard pages, with one and two threads; gives the schedule's text."""
    kernel, values = kernel_of(name, shapes, dtype)
    schedule, after = scheduled(kernel, "cpu", machine)
    assert parse_schedule(str(schedule)) == schedule
    legal = legalize(after)
    verify(legal, bounds=True)
    arrays = few_bits(shapes, dtype, seed)
    (expected,) = run_kernel(legalize(kernel), arrays, values, 1).values()
    for threads in (1, 2):
        (found,) = run_kernel(legal, arrays, values, threads, guarded=True).values()
        same = np.array_equal(found.view(np.uint8), expected.view(np.uint8))
        assert same, f"seed {seed}, {name} {shapes} {dtype}\n{schedule}"
    return str(schedule)


# Transpositions -----------------------------------------------------------------------------------


def sides_of(name: str, x: tuple[int, ...]) -> tuple[int, int]:
    """The sides of what is turned."""
    match name:
        case "ToChannelsFirst":
            return prod(x[1:3]), x[3]
        case "ToChannelsLast":
            return x[1], prod(x[2:])
    return x[0], x[-1]


@pytest.mark.parametrize(
    "name", ["Transpose", "TransposeAdd", "TransposeBias", "FlipOrder", "ToChannelsFirst", "ToChannelsLast"]
)
@pytest.mark.parametrize("seed", range(16))
def test_transpositions(name: str, seed: int) -> None:
    rng = random.Random(f"{seed} {name}")
    shapes = shapes_across(name, rng)
    machine = typical(rng.choice([64, 64, 32, 16]))
    text = assert_same(name, shapes, DTYPES[seed % 4], seed, machine)
    sides = sides_of(name, shapes["x"])
    assert ("transpose " in text) == (min(*sides, machine.vector_bytes // np.dtype(DTYPES[seed % 4]).itemsize) >= 4)


def test_blocks_that_threads_share() -> None:
    """Loops that larger blocks divide are outermost; where there are none, parts of one that threads share."""
    whole, _ = kernel_of("Transpose", {"x": (1000, 1024)})
    text = str(scheduled(whole, "cpu", typical())[0])
    assert "split j 64 tail=exact -> j_b, j_s\n" in text
    assert "parallel j_b\n" in text
    ragged, _ = kernel_of("Transpose", {"x": (1000, 300)})
    text = str(scheduled(ragged, "cpu", typical())[0])
    assert "split i 500 tail=exact -> i_p, i_r\n" in text
    assert "parallel i_p\n" in text
    assert "split j 64 tail=overlap -> j_b, j_s\n" in text


def test_dimensions_that_lie_together_are_one() -> None:
    kernel, _ = kernel_of("ToChannelsFirst", {"x": (2, 7, 7, 64)})
    text = str(scheduled(kernel, "cpu", typical())[0])
    assert "flatten h, w -> h_w\n" in text
    assert "transpose h_w_s_i, c_s_i\n" in text


# Sums over rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["VecMat", "SumFirst", "MaxFirst", "BiasGrad", "AvgPoolAll"])
@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_sums_over_rows(name: str, far: bool, seed: int) -> None:
    rng = random.Random(f"{seed} {name} {far}")
    bytes_of_vector = rng.choice([64, 64, 32])
    machine = replace(tiny_caches() if far else typical(), vector_bytes=bytes_of_vector)
    assert_same(name, shapes_of_rows(name, rng), DTYPES[seed % 4], seed, machine)


def test_rows_that_come_from_afar_are_read_in_order() -> None:
    """Sums wait beside some whole rows at a time, of which threads have a part each; narrow ones in registers."""
    wide, _ = kernel_of("VecMat", {"a": (1024,), "b": (1024, 1024)})
    text = str(scheduled(wide, "cpu", typical())[0])
    assert "divide k_p at=j space=heap -> acc_part\n" in text
    assert "reorder k_r_b, j_o, k_r_t, j_v, j_l\n" in text
    assert text.endswith("parallel k_p\n")
    narrow, _ = kernel_of("BiasGrad", {"x": (8, 56, 56, 64)})
    text = str(scheduled(narrow, "cpu", typical())[0])
    assert "flatten n, h_w -> n_h_w\n" in text
    assert "reorder n_h_w_r, c_v, c_l\n" in text


# Rows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Softmax", "LogSumExp", "LayerNorm", "RmsNorm"])
@pytest.mark.parametrize("seed", range(6))
def test_rows(name: str, seed: int) -> None:
    """Within the rounding of sums that are added up in another order, with the same bits for any number of threads."""
    rng = random.Random(f"{seed} {name}")
    rows, columns = rng.choice([1, 2, 7, 8, 40, 64]), rng.choice([1, 3, 16, 40, 100, 128, 300])
    shapes: Shapes = {"x": (rows, columns)}
    if name.endswith("Norm"):
        shapes["gamma"] = (columns,)
    if name == "LayerNorm":
        shapes["beta"] = (columns,)
    dtype = DTYPES[seed % 2]
    kernel, values = kernel_of(name, shapes, dtype)
    schedule, after = scheduled(kernel, "cpu", typical())
    assert parse_schedule(str(schedule)) == schedule
    legal = legalize(after)
    verify(legal, bounds=True)
    arrays = few_bits(shapes, dtype, seed)
    (expected,) = run_kernel(legalize(kernel), arrays, values, 1).values()
    one, two = (next(iter(run_kernel(legal, arrays, values, n, guarded=True).values())) for n in (1, 2))
    assert np.array_equal(one, two)
    precision = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(one, expected, rtol=precision, atol=precision)


@pytest.mark.parametrize("name", ["Softmax", "LayerNorm"])
def test_each_row_goes_its_own_way(name: str) -> None:
    shapes: Shapes = {"x": (128, 768)} | ({"gamma": (768,), "beta": (768,)} if name == "LayerNorm" else {})
    text = str(scheduled(kernel_of(name, shapes)[0], "cpu", typical())[0])
    assert "parallel i\n" in text
    assert text.count("compute_at ") == (3 if name == "Softmax" else 2)
    assert text.count("space=stack") == (name == "Softmax")


# Results past the caches ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Transpose", "TransposeBias", "Blend"])
@pytest.mark.parametrize("columns", [64, 100])
def test_large_results_go_past_the_caches(name: str, columns: int) -> None:
    """Where rows of them are whole lines; and only of more than the last cache keeps."""
    shapes: Shapes = {"x": (columns, 80)}
    if name == "TransposeBias":
        shapes["bias"] = (columns,)
    if name == "Blend":
        shapes = {"x": (80, columns), "row": (80,), "column": (columns,)}
    small = replace(tiny_caches(), l3=Cache(1 << 14, 16, 64, 96e9))
    assert ("stream y\n" in assert_same(name, shapes, "float32", columns, small)) == (columns == 64)
    assert "stream" not in assert_same(name, shapes, "float32", columns)
