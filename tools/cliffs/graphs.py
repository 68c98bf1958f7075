"""Functions of several ONNX operators, captured as one and called node by node."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import opgen
from tools.cliffs.pairs import Array, Pair, drawn

SPECS = Path(__file__).resolve().parents[2] / "specs" / "onnx" / "onnx_ops.op"
Step = tuple[str, Callable[..., Any]]
"""An operation by its name; its further arguments are its random extra inputs."""


@cache
def onnx() -> Any:
    return opgen.load(SPECS)


def fused(rng: random.Random) -> Pair:
    """Return a chain of operators as one captured function, and each captured by itself."""
    maps = (1, rng.choice([8, 16, 24]), rng.choice([14, 28, 33]), rng.choice([14, 28, 32]))
    x, steps, extras = drawn(rng, *maps), list[Step](), list[list[Array]]()
    shape: tuple[int, ...] = maps
    for _ in range(rng.choice([2, 3, 4])):
        step, extra, shape = _step(rng, shape)
        steps.append(step)
        extras.append(extra)
    whole = opgen.compile(_composed([run for _, run in steps], [len(e) for e in extras]))
    apart = [opgen.compile(_alone(run, len(e))) for (_, run), e in zip(steps, extras, strict=True)]
    flat = [a for extra in extras for a in extra]

    def one_by_one() -> object:
        y: Any = x
        for call, extra in zip(apart, extras, strict=True):
            y = call(y, *extra)
        return y

    about = f"{' | '.join(name for name, _ in steps)} of {maps}"
    return Pair(about, ("fused", lambda: whole(x, *flat)), ("apart", one_by_one))


def _alone(run: Callable[..., Any], count: int) -> Callable[..., Any]:
    return _composed([run], [count])


def _composed(steps: Sequence[Callable[..., Any]], counts: Sequence[int]) -> Callable[..., Any]:
    """Return a function of a tensor and of all extra ones, with as many parameters."""
    names = [f"a{n}" for n in range(sum(counts))]

    def run(x: Any, *extra: Any) -> Any:
        given = iter(extra)
        for step, count in zip(steps, counts, strict=True):
            x = step(x, *(next(given) for _ in range(count)))
        return x

    scope: dict[str, Any] = {"run": run}
    parameters = ", ".join(["x", *names])
    exec(f"def function({parameters}): return run({parameters})", scope)  # captured functions declare each input
    function: Callable[..., Any] = scope["function"]
    return function


def _step(rng: random.Random, shape: tuple[int, ...]) -> tuple[Step, list[Array], tuple[int, ...]]:
    """Return an operation on maps, its extra inputs, and the shape of its result."""
    o, (batch, channels, height, width) = onnx(), shape
    kind = rng.choice(
        ["relu", "gelu", "add", "slice add", "conv", "strided gradient", "pool", "softmax", "mean", "pad"]
    )
    if kind == "add":
        return ("add", lambda x, z: o.add(x, z)), [drawn(rng, *shape)], shape
    if kind == "slice add":
        z, end = drawn(rng, batch, 2 * channels, height, width), channels
        return (
            ("slice add", lambda x, z: o.add(o.strided_slice(z, [0], [end], [1], [1]), x)),
            [z],
            shape,
        )
    if kind == "conv":
        out, taps = rng.choice([8, 16, 20]), rng.choice([1, 3])
        w = drawn(rng, out, channels, taps, taps)
        pads = [taps // 2] * 4
        return (f"conv {taps}x{taps}", lambda x, w: o.conv(x, w, pads=pads)), [w], (batch, out, height, width)
    if kind == "strided gradient":
        out = rng.choice([8, 16])
        w, image = drawn(rng, channels, out, 3, 3), drawn(rng, batch, out, 2 * height, 2 * width)
        forward = opgen.compile(lambda x, w: o.conv(x, w, strides=[2, 2], pads=[1, 1, 1, 1]))
        grad = opgen.gradient(forward, wrt="x")
        return (kind, lambda x, w, z: grad(z, w, grad=x)), [w, image], (batch, out, 2 * height, 2 * width)
    if kind == "pool":
        shown = (batch, channels, (height - 2) // 2 + 1, (width - 2) // 2 + 1)
        return ("max_pool", lambda x: o.max_pool(x, kernel_shape=[2, 2], strides=[2, 2])), [], shown
    if kind == "mean":
        return ("less its mean", lambda x: o.sub(x, o.reduce_mean(x, axes=[2, 3], keepdims=1))), [], shape
    if kind == "pad":
        shown = (batch, channels, height + 2, width + 2)
        return (kind, lambda x: o.pad(x, pads=[0, 0, 1, 1, 0, 0, 1, 1])), [], shown
    call = {"relu": o.relu, "gelu": o.gelu, "softmax": o.softmax}[kind]
    return (kind, lambda x: call(x)), [], shape
