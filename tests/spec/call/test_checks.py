"""The list of checks of a call: one order of refusals, whoever interprets or prints it."""

from __future__ import annotations

import numpy as np
import pytest

from opgen.bindings.python.live import module_of
from opgen.diagnostics.calls import ArgumentError
from opgen.spec import load_text
from opgen.spec.call import checks as c
from opgen.spec.call.shapes import CallError, solve
from opgen.spec.model.model import Module, Require, ShapeLet

TEXT = """\
op Grouped {
  type T in {float32}
  input x: T[groups * depth]
  input y: T[groups]
  input w: T[groups]
  input z: T[depth | 1]
  sizes shape: [depth]
  output total: T[twice]
  let twice = 2 * groups
  require depth > 0 : x "more than {twice}"
  total[i] = sum[k < depth]((x[k] else 0) + (z[k] else 0)) + (y[i] else 0) + (w[i] else 0)
}
"""


def _module() -> Module:
    return load_text(TEXT, "grouped.op")


def _shown(step: c.Step) -> str:
    """A step as an interface that is printed in words."""
    match step:
        case c.Keep():
            return f"keep {step.size.argument}[{step.size.position}]"
        case c.Fix():
            return f"{step.symbol} is {step.value}"
        case c.Name():
            return f"{step.symbol} is {step.size.argument}[{step.size.position}]"
        case c.Stretch():
            return f"{step.symbol} stretches to {', '.join(s.argument for s in step.sizes)}"
        case c.Factor():
            return f"{step.symbol} is {step.size.argument}[{step.size.position}] / ({c.product(step.others)})"
        case c.Same():
            return f"{step.size.argument}[{step.size.position}] is {c.product(step.size.dim.factors)}"


def _rows(module: Module) -> list[str]:
    rows = []
    for check in c.checks(module.ops[0]):
        match check:
            case c.Rank():
                rows.append(f"rank of {check.tensor.name}")
            case c.Length():
                rows.append(f"length of {check.vector.name}")
            case c.Solve() | c.Compare():
                rows += [_shown(step) for case in check.cases for step in case.steps]
            case ShapeLet():
                rows.append(f"let {', '.join(check.names)}")
            case Require():
                rows.append(f"require of {check.argument}")
            case c.Whole():
                rows.append(f"shape of {check.tensor.name}")
    return rows


def test_checks_come_in_the_order_of_refusals() -> None:
    assert _rows(_module()) == [
        "rank of x", "rank of y", "rank of w", "rank of z", "length of shape",
        "keep z[0]",
        "groups is y[0]",
        "depth stretches to z, shape",
        "x[0] is groups * depth", "w[0] is groups", "z[0] is depth", "shape[0] is depth",
        "let twice",
        "require of x",
    ]  # fmt: skip


def test_the_list_is_made_once() -> None:
    op = _module().ops[0]
    assert c.checks(op) is c.checks(op)


@pytest.mark.parametrize(
    ("shapes", "depth", "message"),
    [
        ((5, 2, 3, 2), 2, "'x': expected dimension 0 to be 4 (groups * depth), given shape [5]"),
        ((4, 2, 3, 2), 2, "'w': expected dimension 0 to be 2 (groups), given shape [3]"),
        ((4, 2, 2, 2), 3, "'shape': expected element 0 to be 2 (depth), given [3]"),
        ((0, 2, 2, 1), 0, "'x': expected more than 4, given shape [0]"),
    ],
)
def test_of_two_mistakes_all_name_the_same_one(shapes: tuple[int, ...], depth: int, message: str) -> None:
    module = _module()
    with pytest.raises(CallError) as caught:
        solve(module.ops[0], module, dict(zip("xywz", ((s,) for s in shapes), strict=True)), {"shape": [depth]})
    assert f"Grouped: argument {message}" == str(caught.value)
    with pytest.raises(ArgumentError) as refused:
        module_of(module, "grouped.op").grouped(*(np.ones(s, np.float32) for s in shapes), [depth])
    assert str(refused.value) == str(caught.value)
