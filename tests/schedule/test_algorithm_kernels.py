"""Algorithms beside definitions, of random shapes and paddings: scheduled for machines on which they come in blocks,
run by any number of threads, against the interpreter and against the definition in float64.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opgen.compiler.choose import takes
from opgen.grad import load
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.verify import verify
from opgen.machine import Machine, typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import parse_schedule
from tests.harness import Call, random_arrays

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")
DIRECTIONS = {"forward": "Conv2D", "input": "Conv2DBackpropInputV2", "filter": "Conv2DBackpropFilterV2"}
NORMS = {"minimal_filtering": 3 * 2 * 1.5, "minimal_filtering_4": 19 * 10 * 1}
"""The products of the maximum norms of an algorithm's three transforms, of one dimension."""

ROUNDOFF = {"float16": 2.0**-24, "float32": 2.0**-24, "float64": 2.0**-53}
"""Of the type that is computed with."""
ROUNDED = {"float16": 2.0**-11, "float32": 0.0, "float64": 0.0}
"""What the type of the results adds, of each one's size."""
INTERPRETED = 20000


def random_call(rng: random.Random, direction: str) -> Call:
    """A call of windows of 3 by 3, one apart, that may be smaller than its padding and larger than its image."""
    order, padding = rng.choice(["NHWC", "NCHW"]), rng.choice(["SAME", "EXPLICIT", "EXPLICIT"])
    inputs, outputs = (rng.choice([1, 2, 3, 5, 8, 16, 17, 32, 33]) for _ in "io")
    image = {"N": rng.choice([1, 1, 2, 3]), "H": rng.randint(1, 14), "W": rng.randint(1, 14), "C": inputs}
    beyond = {axis: (rng.randint(1, 4), rng.randint(1, 4)) for axis in "HW"}
    attrs: dict[str, object] = {"strides": [1] * 4, "dilations": [1] * 4, "padding": padding, "data_format": order}
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = [n for axis in order for n in beyond.get(axis, (0, 0))]
    shapes = {"input": tuple(image[axis] for axis in order), "filter": (3, 3, inputs, outputs)}
    call = Call(MODULE, MODULE.op("Conv2D"), shapes, attrs, dtype=rng.choice(["float32", "float16", "float64"]))
    if direction != "forward":
        cotangent = tuple(call.environment.output_shapes["output"])
        op = MODULE.op(DIRECTIONS[direction])
        call = replace(call, op=op, shapes={**shapes, "out_backprop": cotangent})
    return replace(call, algorithm=rng.choice([a.name for a in call.op.algorithms]))


def random_machine(rng: random.Random) -> Machine:
    """A typical one, or one of which everything beyond a small second cache is slow."""
    usual = typical()
    size = rng.choice([0, 1 << 12, 1 << 14, 1 << 16])
    l1, l3 = replace(usual.l1, size=1 << 11, ways=rng.choice([2, 8])), replace(usual.l3, bytes_per_second=1e4)
    if not size:
        return usual
    return replace(usual, l1=l1, l2=replace(usual.l2, size=size), l3=l3, memory_bytes_per_second=1e4)


def kernel_of(call: Call) -> Kernel:
    lowered, parameters = call.kernel()
    return simplify(bind(lowered, parameters))


def by_definition(call: Call, machine: Machine) -> Kernel:
    return legalize(scheduled(kernel_of(replace(call, algorithm=None)), "cpu", machine)[1])


def bound(call: Call, arrays: dict[str, np.ndarray], direction: str) -> float:
    """What an element may err, by the theory: the sum's own error, by the transforms' norms in two dimensions."""
    read = {"forward": ("input", "filter"), "input": ("out_backprop", "filter"), "filter": ("input", "out_backprop")}
    elements = call.shapes["out_backprop"] if direction == "filter" else ()
    channels = call.shapes["filter"][2 if direction == "forward" else 3]
    terms = int(np.prod(elements)) // channels if elements else 9 * channels
    products = float(np.prod([np.abs(arrays[name]).max() for name in read[direction]]))
    norm = NORMS[call.algorithm or ""] ** 2
    return ROUNDOFF[call.dtype] * (terms + 16) * norm * terms * products


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_random_calls(seed: int, direction: str) -> None:
    rng = random.Random(f"{seed} {direction}")
    call, machine = random_call(rng, direction), random_machine(rng)
    story = f"seed {seed}, {call.op.name} by {call.algorithm}, {call.dtype}, {dict(call.shapes)} {dict(call.attrs)}"
    (algorithm,) = (a for a in call.op.algorithms if a.name == call.algorithm)
    assert takes(algorithm, call.variant.types, call.environment), story
    kernel = kernel_of(call)
    schedule, after = scheduled(kernel, "cpu", machine)
    assert parse_schedule(str(schedule)) == schedule
    legal = legalize(after)
    verify(legal, bounds=True)
    arrays = random_arrays(call.shapes, call.dtype, seed)
    inputs = {b.name: arrays[b.name] for b in kernel.inputs}
    (found,), (again,) = (run_kernel(legal, inputs, {}, n, guarded=True).values() for n in (1, 2))
    assert found.tobytes() == again.tobytes(), f"threads: {story}"
    reordered = any(step in str(schedule) for step in ("rfactor", "regroup", "divide"))
    if found.size * call.shapes["filter"][2] <= INTERPRETED and not reordered:
        (expected,) = interpret(kernel, inputs, {}).values()
        assert found.tobytes() == np.ascontiguousarray(expected).tobytes(), f"interpreter: {story}\n{schedule}"
    wide = {name: a.astype(np.float64) for name, a in inputs.items()}
    (exact,) = run_kernel(by_definition(replace(call, dtype="float64"), machine), wide, {}, guarded=True).values()
    slack = 2 if call.dtype == "float64" else 1  # the definition's own error
    allowed = slack * bound(call, arrays, direction) + ROUNDED[call.dtype] * (np.abs(exact) + 2.0**-14)
    assert np.all(np.abs(found - exact) <= allowed), story


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("seed", range(2))
def test_what_is_not_finite(seed: int, direction: str) -> None:
    """Inf and NaN come out as the definition has them, wherever they stood."""
    rng = random.Random(f"not finite {seed} {direction}")
    call, machine = random_call(rng, direction), random_machine(rng)
    kernel = kernel_of(call)
    arrays = random_arrays(call.shapes, call.dtype, seed)
    inputs = {b.name: arrays[b.name] for b in kernel.inputs}
    changed = inputs[rng.choice(sorted(inputs))].reshape(-1)
    for _ in range(rng.randint(1, 3)):
        changed[rng.randrange(changed.size)] = rng.choice([np.nan, np.inf, -np.inf])
    legal = legalize(scheduled(kernel, "cpu", machine)[1])
    (found,) = run_kernel(legal, inputs, {}, 2, guarded=True).values()
    (expected,) = run_kernel(by_definition(call, machine), inputs, {}, 1, guarded=True).values()
    story = f"seed {seed}, {call.op.name} by {call.algorithm}, {call.dtype}, {dict(call.shapes)} {dict(call.attrs)}"
    assert np.array_equal(np.isnan(found), np.isnan(expected)), story
    for sign in (np.inf, -np.inf):
        assert np.array_equal(found == sign, expected == sign), story


@pytest.mark.parametrize(("size", "near"), [(1 << 14, False), (1 << 19, True)])
def test_what_transforms_read_is_turned_in_panels_that_the_second_cache_holds(size: int, near: bool) -> None:
    """Channels first, two images of 18 KiB at a time, of both operands."""
    shapes = {"input": (8, 32, 12, 12), "filter": (3, 3, 32, 32), "out_backprop": (8, 32, 12, 12)}
    attrs = {"strides": [1] * 4, "dilations": [1] * 4, "padding": "SAME", "data_format": "NCHW"}
    op = MODULE.op(DIRECTIONS["filter"])
    call = Call(MODULE, op, shapes, attrs, dtype="float32", algorithm="minimal_filtering")
    usual = typical(64)
    machine = replace(usual, l2=replace(usual.l2, size=size), l3=replace(usual.l3, bytes_per_second=20e9))
    schedule, after = scheduled(kernel_of(call), "cpu", machine)
    for operand in ("input", "out_backprop"):
        assert (f"pack {operand} 0, 2, 3, 1 at=grad_weights_n_b" in str(schedule)) == near
    arrays = random_arrays(shapes, "float32", 0)
    inputs = {name: arrays[name] for name in ("input", "out_backprop")}
    (found,), (again,) = (run_kernel(legalize(after), inputs, {}, n, guarded=True).values() for n in (1, 2))
    (expected,) = run_kernel(by_definition(call, machine), inputs, {}, guarded=True).values()
    assert found.tobytes() == again.tobytes()
    assert np.all(np.abs(found - expected) <= 2 * bound(call, arrays, "filter"))
