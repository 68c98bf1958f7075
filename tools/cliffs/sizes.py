"""Calls at neighbouring sizes: one more of something should not take far longer, or far less, for each unit of work."""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod

from tools.cliffs.graphs import onnx
from tools.cliffs.pairs import Call, Maker, Pair, drawn


def convolution(rng: random.Random) -> Pair:
    """Return a convolution, channels first, and one over maps with one row more."""
    taps = rng.choice([(1, 1), (3, 3), (5, 5), (1, 7), (4, 6)])
    channels, out = rng.choice([3, 8, 16, 32, 48, 64]), rng.choice([8, 16, 24, 64, 96])
    height, width, stride = rng.randint(taps[0] + 8, 60), rng.randint(taps[1] + 8, 60), rng.choice([1, 1, 2])
    o, w = onnx(), drawn(rng, out, channels, *taps)
    xs = [drawn(rng, 1, channels, height + more, width) for more in (0, 1)]
    work = [((x.shape[2] - taps[0]) // stride + 1) for x in xs]
    over = f"stride {stride}, over {height} and {height + 1} by {width}"
    about = f"convolution {taps[0]}x{taps[1]}, {channels} to {out}, {over}"
    calls = [lambda x=x: o.conv(x, w, strides=[stride, stride]) for x in xs]
    return _neighbours(about, "rows", (height, height + 1), calls, work)


def product(rng: random.Random) -> Pair:
    """Return a product of matrices, and one with one row, column or term more."""
    sizes = [rng.choice([rng.randint(1, 40), rng.randint(40, 300), 128, 256]) for _ in range(3)]
    axis = rng.randrange(3)
    other = [n + (k == axis) for k, n in enumerate(sizes)]
    o = onnx()
    pairs = [(drawn(rng, m, k), drawn(rng, k, n)) for m, k, n in (sizes, other)]
    calls = [lambda p=p: o.mat_mul(*p) for p in pairs]
    about = f"product of {sizes[0]}x{sizes[1]} by {sizes[1]}x{sizes[2]} and of {'x'.join(map(str, other))}"
    return _neighbours(about, "case", (1, 2), calls, [prod(sizes), prod(other)])


def rows(rng: random.Random) -> Pair:
    """Softmax, sums, or transposition of rows, and of rows one longer."""
    o, count, size = onnx(), rng.choice([3, 17, 64, 300]), rng.choice([rng.randint(2, 70), rng.randint(70, 1500)])
    name = rng.choice(["softmax", "sum", "sum down", "transpose", "cumsum"])
    calls = {
        "softmax": lambda x: o.softmax(x),
        "sum": lambda x: o.reduce_sum(x, axes=[1]),
        "sum down": lambda x: o.reduce_sum(x, axes=[0]),
        "transpose": lambda x: o.transpose(x, perm=[1, 0]),
        "cumsum": lambda x: o.cum_sum(x, axis=1),
    }
    xs = [drawn(rng, count, size + more) for more in (0, 1)]
    made = [lambda x=x: calls[name](x) for x in xs]
    return _neighbours(
        f"{name} of {count} rows of {size} and {size + 1}", "size", (size, size + 1), made, [x.size for x in xs]
    )


def _neighbours(about: str, what: str, values: tuple[int, int], calls: Sequence[Call], work: Sequence[int]) -> Pair:
    """Two calls that differ in one size, and their amounts of work."""
    first, second = ((f"{what} {v}", call) for v, call in zip(values, calls, strict=True))
    return Pair(about, first, second, work[0] / work[1], same=False)


SIZES: tuple[Maker, ...] = (convolution, product, rows)
