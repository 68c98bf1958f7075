"""Results in the place of operands: a table, and that where it is allowed nothing else is computed."""

from __future__ import annotations

import random

import numpy as np
import pytest

from opgen.loop.analysis.overwriting import may_overwrite
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.passes.in_place import in_place, joined
from opgen.passes.legalize import legalize

SEED = 23
KERNELS = 600


def kernel(body: str, rows: int = 6, columns: int = 21) -> Kernel:
    shape = f"float32[{rows}, {columns}]"
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return parse_kernel(f"kernel f(a: {shape}, x: {shape}) -> (y: {shape}):\n{lines}")


ALLOWED = [
    "for i in 0 .. 6:\n  for j in 0 .. 21:\n    y[i, j] = a[i, j] + x[i, j]",
    "parallel for i in 0 .. 6:\n  for j in 0 .. 21:\n    y[i, j] = a[i, j] * a[i, j]",
    "parallel for f in 0 .. 126:\n  let i: int64 = f // 21\n  let j: int64 = f % 21\n  y[i, j] = a[i, j]",
    "for f in 0 .. 18:\n  for j in 0 .. 7:\n    y[f // 3, f % 3 * 7 + j] = a[f // 3, f % 3 * 7 + j]",
    "for i in 0 .. 6:\n  for o in 0 .. 3:\n    for l in 0 .. min(8, 21 - o * 8):\n"
    "      y[i, o * 8 + l] = a[i, o * 8 + l]",
    "for i in 0 .. 6:\n  for o in 0 .. 3:\n    for l in 0 .. 8:\n"
    "      if o * 8 + l < 21:\n        y[i, o * 8 + l] = a[i, o * 8 + l]",
    "for i in 0 .. 6:\n  y[i, ramp(0, 1, 16)] = a[i, ramp(0, 1, 16)]\n  for j in 16 .. 21:\n    y[i, j] = a[i, j]",
    "alloc t: float32[6, 21] heap:\n  for i in 0 .. 6:\n    for j in 0 .. 21:\n      t[i, j] = a[5 - i, j]\n"
    "  for p in 0 .. 6:\n    for q in 0 .. 21:\n      y[p, q] = t[p, q]",
    "for i in 0 .. 6:\n  alloc t: float32[] register\n  t[] = 0.0f32\n  for k in 0 .. 21:\n    t[] = t[] + a[i, k]\n"
    "  for j in 0 .. 21:\n    y[i, j] = t[]",
    "for i in 0 .. 6:\n  for j in 0 .. 21:\n    y[i, j] = x[i, j]",
]
"""At one place; joined and split loops; all of a row, or of the operand, before a result is stored there; not read."""

REFUSED = [
    "for i in 0 .. 6:\n  for j in 0 .. 21:\n    y[i, j] = a[5 - i, j]",
    "for i in 0 .. 6:\n  for j in 0 .. 20:\n    y[i, j] = a[i, j + 1]",
    "for i in 0 .. 6:\n  for j in 1 .. 21:\n    y[i, j] = a[i, j - 1]",
    "for i in 0 .. 6:\n  for j in 0 .. 21:\n    y[i, j] = a[i, 0]",
    "for i in 0 .. 6:\n  for o in 0 .. 3:\n    for l in 0 .. 8:\n"
    "      y[i, min(o * 8, 13) + l] = a[i, min(o * 8, 13) + l]",
    "for i in 0 .. 6:\n  for j in 0 .. 21:\n    y[i, j] = x[i, j]\n    y[i, j] = y[i, j] + a[i, j]",
    "for i in 0 .. 6:\n  for j in 0 .. 21:\n    y[i, j] = x[i, j]\n"
    "for p in 0 .. 6:\n  for q in 0 .. 21:\n    y[p, q] = a[p, q]",
    "for i in 0 .. 6:\n  for j in 0 .. 21:\n    for k in 0 .. 21:\n      y[i, j] = a[i, k]",
    "for t in 0 .. 2:\n  for i in 0 .. 6:\n    for j in 0 .. 21:\n      y[i, j] = a[i, j]",
    "for i in 0 .. 3:\n  for j in 0 .. 14:\n    y[i + i, j] = a[i + i, j]\n    y[i + 1, j + 7] = a[i + 1, j + 7]",
    "y[ramp(0, 1, 6), 0] = a[ramp(0, 1, 6), 0]\ny[ramp(0, 1, 6), 0] = a[ramp(0, 1, 6), 0]",
]
"""Reads elsewhere; doubled tiles; reads behind stores; rows read for each element; all of it twice."""


@pytest.mark.parametrize("body", ALLOWED)
def test_allowed(body: str) -> None:
    assert may_overwrite(kernel(body), "a", "y")
    assert computes_the_same(kernel(body))


@pytest.mark.parametrize("body", REFUSED)
def test_refused(body: str) -> None:
    assert not may_overwrite(kernel(body), "a", "y")


def test_other_types_and_dimensions_are_refused() -> None:
    for a in ("int32[6]", "float32[2, 3]", "float32[6] as [2, 3]"):
        f = parse_kernel(f"kernel f(a: {a}) -> (y: float32[6]):\n    for i in 0 .. 6:\n        y[i] = 1.0f32\n")
        assert not may_overwrite(f, "a", "y")


@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        ("for i in 0 .. n:\n    y[i, 0] = a[i, 0]", True),
        (
            "for i in 0 .. n:\n    for o in 0 .. 3:\n      for k in 0 .. 4:\n        y[i, o * 4 + k] = a[i, o * 4 + k]",
            True,
        ),
        ("for o in 0 .. n // 8:\n    for i in 0 .. 8:\n      y[o * 8 + i, 0] = a[o * 8 + i, 0]", True),
        (
            "for o in 0 .. (n + 7) // 8:\n    for i in 0 .. min(8, n - o * 8):\n"
            "      y[o * 8 + i, 1] = a[o * 8 + i, 1]",
            True,
        ),
        ("for f in 0 .. n * 12:\n    y[f // 12, f % 12] = a[f // 12, f % 12]", True),
        ("for f in 0 .. n * 12:\n    y[f % n, f // n] = a[f % n, f // n]", False),
        ("for i in 0 .. n - 1:\n    y[i, 0] = a[i + 1, 0]", False),
        ("for o in 0 .. n // 8:\n    for i in 0 .. 9:\n      y[o * 8 + i, 0] = a[o * 8 + i, 0]", False),
        ("for i in n - 4 .. n:\n    y[i, 0] = a[i, 0]", False),
    ],
)
def test_sizes_may_be_open(body: str, allowed: bool) -> None:
    """Of `f % n` nothing is known, nor of where a loop begins at `n - 4`: what is not proved is refused."""
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    head = "kernel f(a: float32[n, 12], n: int64 in [1, inf]) -> (y: float32[n, 12]):\n"
    assert may_overwrite(parse_kernel(head + lines), "a", "y") == allowed


def test_a_kernel_that_may_end_before_its_end_is_refused() -> None:
    body = "check 0 == 0 else 0: 0\nfor i in 0 .. 6:\n  for j in 0 .. 21:\n    y[i, j] = a[i, j]"
    assert not may_overwrite(kernel(body), "a", "y")


def test_each_result_takes_one_operand_and_each_operand_one_result() -> None:
    f = parse_kernel(
        "kernel f(a: float32[4], b: float32[4]) -> (y: float32[4], z: float32[4] streamed):\n"
        "    for i in 0 .. 4:\n        y[i] = a[i] + b[i]\n        z[i] = a[i]\n"
    )
    found = in_place(f, [("a", "y"), ("b", "y"), ("a", "z"), ("b", "z")])
    assert found.pairs == (("b", "y"), ("a", "z")), "'a' is read once 'y' is stored"
    assert [x.space for x in found.kernel.outputs] == ["global", "global"], (
        "what is at hand need not go past the caches"
    )
    assert not found.kernel.inputs
    verify(found.kernel)
    a, b = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    results = interpret(found.kernel, {"y": b, "z": a})
    assert np.array_equal(results["y"], a + b)
    assert np.array_equal(results["z"], a)


# Random kernels --------------------------------------------------------------------------------------------------


def computes_the_same(f: Kernel) -> bool:
    """Whether a kernel's results are the same where they lie in the operand's place, in any order of iterations."""
    shape = tuple(int(e.value) for e in f.outputs[0].shape if hasattr(e, "value"))
    a, x = (np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape) * k + k for k in (1, 1000))
    expected = interpret(f, {"a": a, "x": x}, complete=False)["y"]
    shared = joined(f, [("a", "y")])
    for made in (shared, legalize(shared)):
        for seed in (None, 0, 1):
            found = interpret(made, {"y": a, "x": x}, seed=seed)["y"]
            written = expected if np.isfinite(expected).all() else np.where(np.isfinite(expected), expected, found)
            if not np.array_equal(found, written):
                return False
    return True


class Drawn:
    """Nests over rows and columns whose loops are split in all ways, that read the operand here or there."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.rows, self.columns = self.rng.randint(1, 5), self.rng.choice((1, 4, 7, 8, 13, 16))
        self.count = 0

    def kernel(self) -> Kernel:
        nests = [self.nest("t", "a"), self.nest("y", self.rng.choice(("t", "t", "a")))]
        if self.rng.random() < 0.6:
            nests = [self.nest("y", "a")]
        if self.rng.random() < 0.1:
            nests.append(self.nest("y", "a"))
        lines = [f"  {line}" for nest in nests for line in nest]
        return kernel(
            f"alloc t: float32[{self.rows}, {self.columns}] heap:\n" + "\n".join(lines), self.rows, self.columns
        )

    def nest(self, target: str, source: str) -> list[str]:
        if self.rng.random() < 0.2:
            self.count += 1
            kind, f = self.rng.choice(("", "parallel ")), f"f{self.count}"
            head = [f"{kind}for {f} in 0 .. {self.rows * self.columns}:"]
            return [*head, *self.store(target, source, f"{f} // {self.columns}", f"{f} % {self.columns}", 1)]
        rows, i = self.loop(self.rows)
        columns, j = self.loop(self.columns)
        if self.rng.random() < 0.3:
            (rows, columns) = (columns, rows)
        head = [f"{'  ' * depth}{line}" for depth, line in enumerate([*rows, *columns])]
        return [*head, *self.store(target, source, i, j, len(head))]

    def loop(self, extent: int) -> tuple[list[str], str]:
        """The heads of loops over an extent, and the index."""
        self.count += 1
        outer, inner = f"o{self.count}", f"l{self.count}"
        size = self.rng.randint(1, extent)
        way = self.rng.choice(("plain", "plain", "later", "min", "guard", "overlap"))
        tiles = -(-extent // size)
        if way == "plain":
            return [f"for {outer} in 0 .. {extent}:"], outer
        if way == "later":
            return [f"for {outer} in 2 .. {extent + 2}:"], f"({outer} - 2)"
        if way == "min":
            return [
                f"for {outer} in 0 .. {tiles}:",
                f"for {inner} in 0 .. min({size}, {extent} - {outer} * {size}):",
            ], f"({outer} * {size} + {inner})"
        heads = [
            f"for {outer} in 0 .. {tiles}:",
            f"{self.rng.choice(('', 'vector ', 'unroll '))}for {inner} in 0 .. {size}:",
        ]
        if way == "guard":
            return [*heads, f"if {outer} * {size} + {inner} < {extent}:"], f"({outer} * {size} + {inner})"
        return heads, f"(min({outer} * {size}, {extent - size}) + {inner})"

    def store(self, target: str, source: str, i: str, j: str, depth: int) -> list[str]:
        """A store of what is read at the same place, mostly, or at another one."""
        way = self.rng.choice(("same", "same", "same", "turned", "first", "later", "twice"))
        read = f"{source}[{i}, {j}]"
        if way == "turned":
            read = f"{source}[{self.rows - 1} - {i}, {j}]"
        elif way == "first":
            read = f"{source}[{i}, 0]"
        elif way == "later":
            read = f"{source}[{i}, min({j} + 1, {self.columns - 1})]"
        lines = [f"{target}[{i}, {j}] = {read} + x[{i}, {j}]"]
        if way == "twice":
            lines.append(f"{target}[{i}, {j}] = {target}[{i}, {j}] + {read}")
        return [f"{'  ' * depth}{line}" for line in lines]


def test_random_kernels() -> None:
    """What is allowed is right, and of what would be right most of what is plain is allowed."""
    print(f"seed {SEED}")
    allowed = right = 0
    for number in range(KERNELS):
        f = Drawn(SEED * 10_000 + number).kernel()
        same = computes_the_same(f)
        if may_overwrite(f, "a", "y"):
            assert same, f"kernel {number}:\n{print_kernel(f)}"
            allowed += 1
        right += same
    assert allowed > 0.25 * KERNELS
    assert allowed > 0.7 * right, f"{allowed} allowed, {right} would be right"
