"""Contractions scheduled automatically: what is packed, converted once, and split into phases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opgen.grad import gradient
from opgen.loop.bind import bind
from opgen.loop.interpret import Counters, interpret
from opgen.loop.nodes import Binary, Cast, Compare, Kernel
from opgen.loop.nodes import Call as FusedCall
from opgen.loop.print import print_expr
from opgen.loop.walk import loops_in, walk_exprs
from opgen.machine import typical
from opgen.machine.model import Cache
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from tests.harness import Call, random_arrays
from tests.support.convolutions import DENSE, DIRECTIONS, LANES, MODULE, assert_scheduled_is_the_same, schedule_of

IMAGE: dict[str, tuple[int, ...]] = {"input": (1, 28, 28, 32), "filter": (3, 3, 32, 32)}


def test_lanes_that_would_be_strided_are_packed() -> None:
    text = schedule_of("Conv2D", "input", IMAGE, 1)
    assert "pack filter 0, 1, 3, 2 -> filter_packed" in text
    assert "_packed" not in schedule_of("Conv2D", None, IMAGE, 1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_types_are_converted_once(dtype: str) -> None:
    """No conversion is left among the multiply-adds."""
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    for direction in DIRECTIONS:
        call = Call(MODULE, DENSE, IMAGE, attrs, dtype=dtype)
        shapes = {**IMAGE, "grad_output": tuple(call.environment.output_shapes["output"])}
        if direction is not None:
            call = Call(MODULE, gradient(MODULE, DENSE, direction), shapes, attrs, dtype=dtype)
        lowered, parameters = call.kernel()
        legal = legalize(scheduled(simplify(bind(lowered, parameters)))[1])
        added = [e for e in walk_exprs(legal.body) if isinstance(e, FusedCall) and e.function == "fma"]
        assert added
        assert not [e for sum_ in added for e in sum_.arguments if isinstance(e, Cast)]


def test_lanes_go_across_where_consecutive_results_have_conditions() -> None:
    """Channels first: lanes along output channels, whose stores lie apart, rather than masks along the row."""
    op = MODULE.op("Conv2D")
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": "NCHW"}
    call = Call(MODULE, op, {"input": (1, 32, 28, 28), "filter": (3, 3, 32, 32)}, attrs, dtype="float32")
    lowered, parameters = call.kernel()
    assert "vectorize k_l" in str(scheduled(simplify(bind(lowered, parameters)))[0])


@pytest.mark.parametrize("terms", [4, 16])
def test_sums_of_few_terms_are_stored_side_by_side(terms: int) -> None:
    """Groups of few channels: half of a vector's lanes, rather than results that are stored apart."""
    shapes = {"input": (1, 8, 20, 4 * terms), "filter": (1, 1, terms, 32)}
    call = Call(MODULE, DENSE, shapes, {"strides": [1, 1, 1, 1], "padding": "SAME"}, dtype="float32")
    text = str(scheduled(simplify(bind(*call.kernel())), "cpu", typical(64))[0])
    assert "vectorize k" in text, text


@pytest.mark.parametrize(("terms", "lanes"), [(5, 8), (6, 8), (7, 8), (8, 8)])
def test_few_results_have_one_vector_with_a_mask(terms: int, lanes: int) -> None:
    """Where they would take two shorter ones."""
    shapes = {"input": (1, 7, 9, 2 * terms), "filter": (1, 1, terms, 2 * terms)}
    call = Call(MODULE, DENSE, shapes, {"strides": [1, 1, 1, 1], "padding": "SAME"}, dtype="float32")
    text = assert_scheduled_is_the_same(call, terms, typical(64))
    assert f"split k {lanes} tail={'exact' if terms == lanes else 'guard'} -> k_o, k_l" in text


def test_sums_wait_in_rows_where_results_lie_across_the_lanes() -> None:
    """Lanes along 16 channels, as 33 fill none: of a map larger than the second cache images go by."""
    shapes = {"input": (2, 11, 13, 16), "filter": (3, 1, 16, 33), "grad_output": (2, 11, 13, 33)}
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    call = Call(MODULE, gradient(MODULE, DENSE, "filter"), shapes, attrs, dtype="float32")
    machine = replace(typical(64), l2=Cache(3 << 14, 8, 64, 118e9), l3=Cache(1 << 22, 16, 64, 1e10))
    text = assert_scheduled_is_the_same(call, 0, machine)
    assert "_rows" in text
    assert "carry n at=" in text
    assert "_rows" not in assert_scheduled_is_the_same(call, 0, typical(64))


def test_divisibility_is_resolved_by_phases() -> None:
    text = schedule_of("Conv2D", "input", IMAGE, 2)
    assert "split h 2 tail=exact -> h_q, h_p" in text
    assert "split w 2 tail=exact -> w_q, w_p" in text


@pytest.mark.parametrize("size", [8, 15])
@pytest.mark.parametrize("lanes", [False, True])
def test_phases_leave_no_remainder(lanes: bool, size: int) -> None:
    """In what is done for each term, also where the stride does not divide the size."""
    op = LANES if lanes else DENSE
    half = -(-size // 2)
    shapes = {
        "input": (1, size, size, 16),
        "filter": (3, 3, 16, 1 if lanes else 16),
        "grad_output": (1, half, half, 16),
    }
    attrs = {"strides": [1, 2, 2, 1], "padding": "SAME"}
    lowered, parameters = Call(MODULE, gradient(MODULE, op, "input"), shapes, attrs, dtype="float32").kernel()
    _, after = scheduled(simplify(bind(lowered, parameters)))
    legal = legalize(after).body
    inside = [s for s in loops_in(legal) if s.var == "k"] or [legal]
    left = [e for s in inside for e in walk_exprs(s) if isinstance(e, Binary) and e.op == "mod"]
    assert not [e for e in left if "packed" not in print_expr(e)]


@pytest.mark.parametrize("seed", range(3))
def test_phases_without_lanes(seed: int) -> None:
    """Channels outermost: a step along the rows leaves no consecutive reads, but still no remainder to be tried."""
    shapes = {"input": (1, 3, 6, 8), "filter": (3, 2, 3, 1), "grad_output": (1, 3, 3, 4)}
    attrs = {"strides": [1, 1, 2, 2], "padding": "SAME", "data_format": "NCHW", "dilations": [1, 1, 1 + seed, 1]}
    lowered, parameters = Call(MODULE, gradient(MODULE, LANES, "input"), shapes, attrs, dtype="float32").kernel()
    kernel = simplify(bind(lowered, parameters))
    schedule, after = scheduled(kernel)
    assert "split w 2 tail=exact -> w_q, w_p" in str(schedule)
    legal = legalize(after)
    inner = [e for e in walk_exprs(legal.body) if isinstance(e, Compare) and "%" in print_expr(e)]
    assert not inner
    arrays = random_arrays(shapes, "float32", seed)
    inputs = {b.name: arrays[b.name] for b in kernel.inputs}
    (expected,), (found,) = interpret(kernel, inputs).values(), run_kernel(legal, inputs, {}, 2, guarded=True).values()
    assert np.array_equal(found, expected)


def multiply_adds(kernel: Kernel, inputs: dict[str, np.ndarray]) -> int:
    counters = Counters()
    interpret(kernel, inputs, {}, counters=counters)
    return counters.multiply_adds


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize(
    ("size", "taps", "stride", "dilation", "padding"),
    [(8, 3, 2, 1, "SAME"), (15, 3, 2, 1, "VALID"), (9, 2, 3, 1, "SAME"), (8, 3, 2, 2, "SAME"), (8, 1, 2, 1, "SAME")],
)
def test_no_tap_is_tried_in_vain(lanes: bool, size: int, taps: int, stride: int, dilation: int, padding: str) -> None:
    """The scheduled gradient executes, every lane counted, as many multiply-adds as the forward op has pairs."""
    op = LANES if lanes else DENSE
    shapes = {
        "input": (1, size, 14 if padding == "VALID" else size, 16),
        "filter": (taps, taps, 16, 1 if lanes else 16),
    }
    attrs = {"strides": [1, stride, stride, 1], "dilations": [1, dilation, dilation, 1], "padding": padding}
    forward = Call(MODULE, op, shapes, attrs, dtype="float32")
    cotangent = tuple(forward.environment.output_shapes["output"])
    backward = Call(MODULE, gradient(MODULE, op, "input"), {**shapes, "grad_output": cotangent}, attrs, dtype="float32")
    arrays = random_arrays(backward.shapes, "float32", 0)
    plain = bind(*forward.kernel())
    expected = multiply_adds(plain, {b.name: arrays[b.name] for b in plain.inputs})
    kernel = simplify(bind(*backward.kernel()))
    _, after = scheduled(kernel)
    assert multiply_adds(legalize(after), {b.name: arrays[b.name] for b in kernel.inputs}) == expected > 0
