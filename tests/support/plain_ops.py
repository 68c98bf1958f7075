"""Kernels and inputs of transpositions and of sums of rows."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.passes.simplify import simplify
from opgen.spec import load
from tests.harness import Call

PLAIN = load(Path(__file__).parents[1] / "specs" / "plain.op")
DTYPES = ["float32", "float64", "float16", "bfloat16"]
Shapes = dict[str, tuple[int, ...]]


def kernel_of(name: str, shapes: Shapes, dtype: str = "float32") -> tuple[Kernel, dict[str, float]]:
    """The kernel of a call, sizes in place, and the values of what is left of its parameters."""
    lowered, values = Call(PLAIN, PLAIN.op(name), shapes, {}, dtype=dtype).kernel()
    kernel = simplify(bind(lowered, {n: v for n, v in values.items() if not isinstance(v, float)}))
    return kernel, {n: v for n, v in values.items() if isinstance(v, float)}


def few_bits(shapes: Shapes, dtype: str, seed: int) -> dict[str, np.ndarray]:
    """Random quarters from -2 to 2, so that no order of a sum rounds."""
    rng = np.random.default_rng(seed)
    return {n: (rng.integers(-8, 9, shapes[n]) / 4).astype(dtype) for n in sorted(shapes)}


def shapes_across(name: str, rng: random.Random) -> Shapes:
    """Sizes that blocks divide, that leave remainders, and smaller than any block."""
    sizes = [3, 4, 7, 8, 15, 16, 17, 31, 33, 48, 64, 65, 100, 128, 130, 200]
    a, b = rng.choice(sizes), rng.choice(sizes)
    match name:
        case "Transpose":
            return {"x": (a, b)}
        case "TransposeAdd":
            return {"x": (a, b), "z": (b, a)}
        case "TransposeBias":
            return {"x": (a, b), "bias": (a,)}
        case "FlipOrder":
            return {"x": (a, rng.randint(1, 5), b)}
    image = (rng.randint(1, 9), rng.choice([2, 4, 7, 14]))
    count = rng.choice([1, 2, 3])
    return {"x": (count, *image, a) if name == "ToChannelsFirst" else (count, a, *image)}


def shapes_of_rows(name: str, rng: random.Random) -> Shapes:
    rows = rng.choice([1, 2, 5, 8, 16, 33, 64, 100, 256])
    columns = rng.choice([1, 2, 5, 8, 10, 16, 24, 33, 64, 100, 160, 256, 300, 512, 1000])
    match name:
        case "VecMat":
            return {"a": (rows,), "b": (rows, columns)}
        case "BiasGrad" | "AvgPoolAll":
            return {"x": (rng.choice([1, 2, 8]), rng.randint(1, 7), rng.choice([1, 4, 8]), columns)}
    return {"x": (rows, columns)}
