"""What a kernel makes of constants alone is taken out of it, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.verify import verify
from opgen.passes.apart import taken_apart

KERNEL = """
kernel product(
    x: float32[3, 4],
    w: float32[4, 5],
    s: float32[5],
) -> (
    y: float32[3, 5],
):
    alloc turned: float32[5, 4] heap
    alloc scaled: float32[5, 4] heap
    alloc copy: float32[3, 4] heap
    for i in 0 .. 5:
        for k in 0 .. 4:
            turned[i, k] = 0.0f32
    for i_2 in 0 .. 5:
        for k_2 in 0 .. 4:
            turned[i_2, k_2] = w[k_2, i_2]
    for i_3 in 0 .. 5:
        for k_3 in 0 .. 4:
            scaled[i_3, k_3] = turned[i_3, k_3] * s[i_3]
    for j in 0 .. 3:
        for k_4 in 0 .. 4:
            copy[j, k_4] = x[j, k_4]
    for j_2 in 0 .. 3:
        for i_4 in 0 .. 5:
            y[j_2, i_4] = 0.0f32
            for k_5 in 0 .. 4:
                y[j_2, i_4] = y[j_2, i_4] + copy[j_2, k_5] * scaled[i_4, k_5]
"""


def names(kernel: Kernel) -> tuple[list[str], list[str]]:
    return [x.name for x in kernel.inputs], [x.name for x in kernel.outputs]


@pytest.mark.parametrize(
    ("constants", "first", "then"),
    [
        (("w", "s"), (["w", "s"], ["scaled"]), (["x", "scaled"], ["y"])),
        (("w",), (["w"], ["turned"]), (["x", "s", "turned"], ["y"])),
        (("x",), (["x"], ["copy"]), (["w", "s", "copy"], ["y"])),
        (("x", "w"), (["x", "w"], ["turned", "copy"]), (["s", "turned", "copy"], ["y"])),
    ],
)
def test_what_depends_on_constants_alone(
    constants: tuple[str, ...], first: tuple[list[str], list[str]], then: tuple[list[str], list[str]]
) -> None:
    kernel = parse_kernel(KERNEL)
    apart = taken_apart(kernel, constants)
    assert apart is not None
    assert names(apart.first) == first
    assert names(apart.then) == then
    verify(apart.first)
    verify(apart.then)
    rng = np.random.default_rng(0)
    arrays = {
        x.name: rng.random(shape, np.float32) for x, shape in zip(kernel.inputs, ((3, 4), (4, 5), (5,)), strict=True)
    }
    made = interpret(apart.first, {n: arrays[n] for n in first[0]}, {})
    given = {**arrays, **made}
    found = interpret(apart.then, {n: given[n] for n in then[0]}, {})
    np.testing.assert_array_equal(found["y"], interpret(kernel, arrays, {})["y"])


def test_what_is_not_taken() -> None:
    kernel = parse_kernel(KERNEL)
    assert taken_apart(kernel, ()) is None
    assert taken_apart(kernel, ("s",)) is None
    text = KERNEL.replace("copy[j, k_4] = x[j, k_4]", "turned[j, k_4] = x[j, k_4]")
    touching = parse_kernel(text.replace("* scaled", "* turned").replace("+ copy[j_2", "+ x[j_2"))
    assert taken_apart(touching, ("w", "s")) is None, "another nest writes to the buffer from what changes"


def test_what_is_of_known_size_is_taken_from_kernels_of_open_ones() -> None:
    """So that packed weights are there once, whatever else varies."""
    rows = KERNEL.replace("float32[3, ", "float32[n, ").replace("0 .. 3:", "0 .. n:")
    kernel = parse_kernel(rows.replace("    s: float32[5],\n", "    s: float32[5],\n    n: int64 in [0, inf],\n"))
    apart = taken_apart(kernel, ("w", "s", "x"))
    assert apart is not None
    assert names(apart.first) == (["w", "s"], ["scaled"])
    assert apart.first.is_bound
    assert names(apart.then) == (["x", "scaled"], ["y"])
    assert apart.then.parameters == kernel.parameters
    verify(apart.first)
    verify(apart.then)
    depths = KERNEL.replace("float32[5", "float32[n").replace(", 5]", ", n]").replace("0 .. 5:", "0 .. n:")
    varied = parse_kernel(depths.replace("    s: float32[n],\n", "    s: float32[n],\n    n: int64 in [0, inf],\n"))
    assert taken_apart(varied, ("w", "s")) is None, "who prepares does not know how large it is"
