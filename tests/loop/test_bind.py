"""Binding parameters: the specialised kernel means the same, and is folded."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.diagnostics import InternalError
from opgen.loop import build as b
from opgen.loop.bind import ImpossibleValueError, bind, in_terms
from opgen.loop.interpret import interpret
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify

TEXT = """\
kernel f(
    x: float32[n, m],
    n: int64 in [0, 99],
    m: int64 in [1, inf],
    scale: float32,
    twice: bool,
) -> (
    y: float32[n, m],
):
    assume m % 2 == 0
    assume n < m * 100
    for i in 0 .. n:
        alloc row: float32[m * 2] heap
        for j in 0 .. m // 2:
            row[j] = x[i, j * 2]
            row[j + m] = x[i, j * 2 + 1]
        for j in 0 .. m:
            if twice and not n == 0:
                y[i, j] = row[j // 2 + j % 2 * m] * scale
            else:
                y[i, j] = row[j // 2 + j % 2 * m]
"""

BOUND = """\
kernel f(
    x: float32[n, 4],
    n: int64 in [0, 99],
    twice: bool,
) -> (
    y: float32[n, 4],
):
    assume n < 400
    for i in 0 .. n:
        alloc row: float32[8] heap
        for j in 0 .. 2:
            row[j] = x[i, j * 2]
            row[j + 4] = x[i, j * 2 + 1]
        for j in 0 .. 4:
            if twice and not n == 0:
                y[i, j] = row[j // 2 + j % 2 * 4] * 0.10000000149011612f32
            else:
                y[i, j] = row[j // 2 + j % 2 * 4]
"""


def test_constants_are_folded_where_they_meet() -> None:
    assert print_kernel(bind(parse_kernel(TEXT), {"m": 4, "scale": 0.1})) == BOUND


def test_branches_never_taken_go_away() -> None:
    bound = bind(parse_kernel(TEXT), {"twice": False, "n": 3})
    assert "if" not in print_kernel(bound)
    assert "scale" not in print_kernel(bound).split("):")[1]


def test_binding_nothing_changes_nothing() -> None:
    kernel = parse_kernel(TEXT)
    assert bind(kernel, {}) == kernel


@pytest.mark.parametrize("names", [(), ("n",), ("m",), ("scale", "twice"), ("n", "m", "scale", "twice")])
def test_the_bound_kernel_gives_the_same(names: tuple[str, ...]) -> None:
    values = {"n": 3, "m": 4, "scale": 0.3, "twice": True}
    x = np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32)
    kernel = parse_kernel(TEXT)
    bound = bind(kernel, {name: values[name] for name in names})
    verify(bound, bounds=True)
    rest = {name: value for name, value in values.items() if name not in names}
    assert (interpret(bound, {"x": x}, rest)["y"] == interpret(kernel, {"x": x}, values)["y"]).all()


REFUSED = [
    ({"k": 1}, "kernel 'f' has no parameter 'k'"),
    ({"n": 100}, "parameter 'n' is 100, outside [0, 99]"),
    ({"m": 0}, "parameter 'm' is 0, outside [1, inf]"),
    ({"m": 2.5}, "parameter 'm' is an integer, not 2.5"),
    ({"m": 3}, "kernel 'f' assumes m % 2 == 0, which does not hold"),
]


@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_wrong_values_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(InternalError) as caught:
        bind(parse_kernel(TEXT), values)
    assert str(caught.value) == message


def test_parameters_in_terms_of_others() -> None:
    """What was promised of them is assumed of what stands in their place."""
    kernel = parse_kernel(
        "kernel f(x: float32[n, m], n: int64 in [1, inf], m: int64 in [3, 9]) -> (y: float32[m]):\n"
        "    for i in 0 .. m:\n        y[i] = x[n - 1, i]\n"
    )
    told = in_terms(kernel, {"m": b.add(b.var("n"), 2)}, {"n": 16})
    verify(told)
    assert print_kernel(told) == (
        "kernel f(\n    x: float32[n, n + 2],\n    n: int64 in [16, inf],\n) -> (\n    y: float32[n + 2],\n):\n"
        "    assume n + 2 >= 3\n    assume n + 2 <= 9\n    for i in 0 .. n + 2:\n        y[i] = x[n - 1, i]\n"
    )
    with pytest.raises(InternalError, match="has no parameter 'q'"):
        in_terms(kernel, {"q": b.var("n")}, {})
    with pytest.raises(ImpossibleValueError, match="m >= 3"):
        in_terms(
            parse_kernel(print_kernel(kernel).replace("):\n    for", "):\n    assume m >= 3\n    for")),
            {"m": b.index(2)},
            {},
        )
