"""Small kernels for the tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opgen.dtypes import FLOAT32, DType
from opgen.loop import build as b
from opgen.loop.nodes import (
    Broadcast,
    Buffer,
    Call,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Parameter,
    Ramp,
    Store,
    Type,
)


def lanes_of(base: Expr | int, lanes: int) -> Expr:
    """The index of `lanes` neighbouring elements."""
    start = b.index(base)
    return start if lanes == 1 else Ramp(start, Const(1), lanes)


def elementwise(
    inputs: Sequence[DType], output: DType, of: Callable[..., Expr], *, lanes: int = 1, name: str = "elementwise"
) -> Kernel:
    """output[i] = of(input0[i], ...) for i < n * lanes, `lanes` elements at a time; the parameter is n."""
    n = Parameter("n", low=0)
    size = b.mul(n.var, lanes)
    sources = tuple(Buffer(f"x{k}", t, (size,)) for k, t in enumerate(inputs))
    result = Buffer("y", output, (size,))
    at = (lanes_of(b.mul(b.var("i"), lanes), lanes),)
    body = Store("y", at, of(*(Load(s.name, at, s.dtype) for s in sources)))
    return Kernel(name, sources, (result,), (n,), For("i", Const(0), n.var, body))


def tile(
    *,
    rows: int,
    columns: int,
    depth: int,
    width: int,
    window: int,
    positions: int,
    vectors: int,
    parallel: bool = False,
) -> Kernel:
    """An outer-product register tile: positions x vectors of 16, the sum over a window and a depth inside."""
    c = Const
    x = Buffer("x", FLOAT32, (c(rows + window - 1), c(columns + window - 1), c(depth)))
    w = Buffer("w", FLOAT32, (c(window), c(window), c(depth), c(width)))
    y = Buffer("y", FLOAT32, (c(rows), c(columns), c(width)))
    total = Buffer("total", FLOAT32, (c(positions), c(vectors * 16)), "register")
    p, q, k, r, s, d = (b.var(v) for v in "pqkrsd")
    pairs = [(t, v) for t in range(positions) for v in range(vectors)]

    def cell(t: int, v: int) -> tuple[Expr, ...]:
        return c(t), Ramp(c(16 * v), c(1), 16)

    def across(v: int) -> Expr:
        return Ramp(b.add(b.mul(k, vectors * 16), 16 * v), c(1), 16)

    def column(t: int) -> Expr:
        return b.add(b.mul(q, positions), t)

    def step(t: int, v: int) -> Store:
        one = Broadcast(Load("x", (b.add(p, r), b.add(column(t), s), d), FLOAT32), 16)
        many = Load("w", (r, s, d, across(v)), FLOAT32)
        return Store("total", cell(t, v), Call("fma", (one, many, Load("total", cell(t, v), FLOAT32))))

    start = [Store("total", cell(t, v), Const(0.0, Type(FLOAT32, 16))) for t, v in pairs]
    steps = For("d", c(0), c(depth), b.block(step(t, v) for t, v in pairs))
    reduce = For("r", c(0), c(window), For("s", c(0), c(window), steps))
    finish = [Store("y", (p, column(t), across(v)), Load("total", cell(t, v), FLOAT32)) for t, v in pairs]
    inner = For("q", c(0), c(columns // positions), b.alloc(total, b.block([*start, reduce, *finish])))
    body = For("p", c(0), c(rows), inner, "parallel" if parallel else "serial")
    return Kernel("tile", (x, w), (y,), (), For("k", c(0), c(width // (16 * vectors)), body))
