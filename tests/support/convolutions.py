"""Random calls of convolutions and their gradients, and the comparison of their schedules."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np

from opgen.grad import gradient
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.machine import Machine, typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import parse_schedule
from opgen.spec import load
from tests.harness import Call, random_arrays
from tests.schedule.of_kind import scheduled_as

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")
DENSE, LANES = MODULE.op("Conv2D"), MODULE.op("DepthwiseConv2dNative")
DIRECTIONS = (None, "input", "filter")


def the_call(seed: int, lanes: bool, direction: str | None) -> Call:
    """A call of random sizes, large enough for tiles, small enough to interpret."""
    rng = random.Random(seed)
    op = LANES if lanes else DENSE
    channels, outputs = rng.choice([1, 3, 8, 16, 20]), rng.choice([1, 2]) if lanes else rng.choice([3, 16, 20, 32])
    image = (rng.choice([1, 2]), rng.randint(3, 9), rng.choice([4, 6, 8, 14]), channels)
    order = "NCHW" if seed % 2 else "NHWC"
    shapes = {
        "input": tuple(image["NHWC".index(letter)] for letter in order),
        "filter": (rng.randint(1, 3), rng.randint(1, 3), channels, outputs),
    }
    steps = {"H": rng.choice([1, 2]), "W": rng.choice([1, 2])}
    apart = {"H": rng.choice([1, 1, 2])}
    attrs = {
        "strides": [steps.get(letter, 1) for letter in order],
        "dilations": [apart.get(letter, 1) for letter in order],
        "padding": rng.choice(["SAME", "VALID"]),
        "data_format": order,
    }
    call = Call(MODULE, op, shapes, attrs, dtype=rng.choice(["float32", "float32", "bfloat16", "float16", "float64"]))
    if direction is None:
        return call
    cotangent = tuple(call.environment.output_shapes["output"])
    return Call(MODULE, gradient(MODULE, op, direction), {**shapes, "grad_output": cotangent}, attrs, dtype=call.dtype)


def inputs_of(call: Call, kernel: Kernel, schedule: str, seed: int) -> dict[str, np.ndarray]:
    """Random numbers; of few bits where a schedule adds up in another order, so that no order rounds."""
    arrays = random_arrays(call.shapes, call.dtype, seed)
    if any(step in schedule for step in ("rfactor", "regroup", "divide", "pair ")):
        arrays = {
            n: (np.round(np.clip(x.astype(np.float64), -2, 2) * 8) / 8).astype(x.dtype) for n, x in arrays.items()
        }
    return {b.name: arrays[b.name] for b in kernel.inputs}


def schedule_of(op_name: str, direction: str | None, shapes: dict[str, tuple[int, ...]], stride: int) -> str:
    op = MODULE.op(op_name)
    attrs = {"strides": [1, stride, stride, 1], "padding": "SAME"}
    call = Call(MODULE, op, shapes, attrs, dtype="float32")
    if direction is not None:
        cotangent = tuple(call.environment.output_shapes["output"])
        call = Call(
            MODULE, gradient(MODULE, op, direction), {**shapes, "grad_output": cotangent}, attrs, dtype="float32"
        )
    lowered, parameters = call.kernel()
    schedule, _ = scheduled(simplify(bind(lowered, parameters)))
    assert parse_schedule(str(schedule)) == schedule
    return str(schedule)


def assert_scheduled_is_the_same(call: Call, seed: int, machine: Machine | None = None, kind: str | None = None) -> str:
    """Bit for bit, compiled, at guard pages, with one and two threads; gives the schedule's text.  With a plan of a
    `kind`, if one is named, else with the cheapest.
    """
    kernel = simplify(bind(*call.kernel()))
    schedule, after = scheduled_as(kind, kernel, machine)
    assert parse_schedule(str(schedule)) == schedule
    legal = legalize(after)
    inputs = inputs_of(call, kernel, str(schedule), seed)
    plain = legalize(kernel)
    for name, expected in run_kernel(plain, inputs, {}, 1).items():
        for threads in (1, 2):
            found = run_kernel(legal, inputs, {}, threads, guarded=True)[name]
            same = np.array_equal(found.view(np.uint8), expected.view(np.uint8))
            assert same, f"seed {seed}, {call.op.name} {dict(call.shapes)} {dict(call.attrs)}\n{schedule}"
    return str(schedule)


WIDE = replace(typical(64), latency=8)
"""With two units that multiply and add: blocks stay in the first cache."""


def dense(
    image: tuple[int, ...], outputs: int, direction: str | None = None, dtype: str = "float32", order: str = "NHWC"
) -> Call:
    attrs = {"strides": [1, 1, 1, 1], "padding": "SAME", "data_format": order}
    n, h, w, c = image
    turned = {"NHWC": lambda last: (n, h, w, last), "NCHW": lambda last: (n, last, h, w)}[order]
    shapes = {"input": turned(c), "filter": (1, 1, c, outputs)}
    if direction is None:
        return Call(MODULE, DENSE, shapes, attrs, dtype=dtype)
    shapes = {**shapes, "grad_output": turned(outputs)}
    return Call(MODULE, gradient(MODULE, DENSE, direction), shapes, attrs, dtype=dtype)
