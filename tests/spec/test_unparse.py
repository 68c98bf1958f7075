"""A model written as a spec says the same: it loads to the same model."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pytest

from opgen.grad import gradient, load, load_text
from opgen.spec.model import model as m
from opgen.spec.syntax.printer import WIDTH
from opgen.spec.unparse import write_algorithm, write_op

ROOT = Path(__file__).parents[2]
SPECS = sorted([*(ROOT / "specs").glob("*.op"), *(ROOT / "tests/specs").glob("*.op"), *(ROOT / "tools").glob("*.op")])


def _tells_sizes(op: m.OpSpec) -> bool:
    """Whether an output has the size of an input that stretches, which the language has no words for."""
    return any(isinstance(d.size, m.SizeOf) for o in op.outputs for d in o.dims)


OPS = [(path, op.name) for path in SPECS for op in load(path).ops if not _tells_sizes(op)]


def differing(one: m.OpSpec, other: m.OpSpec) -> list[str]:
    return [f.name for f in fields(one) if f.compare and getattr(one, f.name) != getattr(other, f.name)]


def plain(op: m.OpSpec) -> m.OpSpec:
    """An op by itself: it knows no other op, so that a counted size is a number that callers must give, and no input
    waits for others to tell its shape.
    """
    inputs = tuple(replace(i, follows=False) if isinstance(i, m.Tensor) else i for i in op.inputs)
    attrs = tuple(replace(a, counter="") for a in op.attrs)
    given = [i.name for i in inputs] + [a.name for a in op.attrs if a.counter]
    counted = len(given) > len(inputs)
    signature = (*given, *(n for n in op.signature if n not in given)) if counted else op.signature
    return replace(op, inputs=inputs, attrs=attrs, signature=signature, gradient=None)


@pytest.mark.parametrize(("path", "name"), OPS, ids=lambda v: v if isinstance(v, str) else v.stem)
def test_what_is_written_loads_to_the_same_op(path: Path, name: str) -> None:
    module = load(path)
    op = module.op(name)
    text = write_op(module, op)
    assert differing(load_text(text, "written.op").op(name), plain(op)) == []
    assert max(map(len, text.splitlines())) <= WIDTH


def test_a_gradient_made_on_the_spot_can_be_pasted_into_a_file() -> None:
    module = load(ROOT / "tests/specs/samples.op")
    op = gradient(module, module.op("LayerNorm"), "x")
    again = load_text(write_op(module, op), "written.op").op(op.name)
    assert differing(again, plain(op)) == []


def test_an_algorithm_by_itself() -> None:
    op = load(ROOT / "specs/nn_ops.op").op("Conv2D")
    text = write_algorithm(op, op.algorithms[1])
    first, *_ = text.splitlines()
    assert first == f"algorithm {op.algorithms[1].name} optional {{"
    assert "  constant of_filter[6, 3] = [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6]," in text


def test_numbers_words_and_braces_are_written_as_they_are_read() -> None:
    text = '''\
op Odd {
  """An op."""

  type T in {float32}

  input x: T[n]
  attr level: float = -0.5
  attr far: float = 1e-07
  attr many: int[2] = [-1, 2]
  attr way: enum {UP, DOWN} = UP
  output y: T[n]

  require n > 0 : x "{n} of {{these}} at \\"most\\""

  y[i] = if way != UP and not n == 3 then (x[i - 1] else -2) * T(level) else T(many[1]) + T(far)

  example "one" {
    x = [inf]
    y = [3.0000001]
  }
}
'''
    module = load_text(text, "odd.op")
    assert write_op(module, module.op("Odd")) == text
