"""Results of examples: a changed element of any is found, and loading a spec does not compute them."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from opgen.diagnostics import DiagnosticError, Source
from opgen.examples import verify_examples
from opgen.grad import load, load_text
from opgen.spec.loading import flatten
from opgen.spec.syntax import nodes as s
from opgen.spec.syntax.parse import parse

SPECS = Path(__file__).parents[2] / "specs"
SEED = 7
"""Chooses what is changed, unless OPGEN_SEED does."""


def numbers_of(value: s.Value) -> list[s.Constant]:
    """The numbers of a literal."""
    if isinstance(value, s.ListValue):
        return [n for item in value.items for n in numbers_of(item)]
    return [value] if isinstance(value, s.Constant) else []


def results(text: str) -> list[s.Constant]:
    """The numbers in the results of a text's examples."""
    ops = [i for i in parse(Source("text.op", text)).items if isinstance(i, s.OpDecl)]
    found = []
    for op in ops:
        outputs = {i.name.name for i in op.items if isinstance(i, s.TensorDecl) and i.keyword == "output"}
        entries = [e for i in op.items if isinstance(i, s.ExampleDecl) for e in i.entries]
        found += [n for e in entries if e.name.name in outputs for n in numbers_of(e.value)]
    return found


@pytest.mark.parametrize("name", ["nn_ops.op", "onnx/normalisation.op", "onnx/pooling.op", "onnx/reduction.op"])
def test_a_changed_result_is_found_at_its_place(name: str) -> None:
    seed = int(os.environ.get("OPGEN_SEED", SEED))
    print(f"OPGEN_SEED={seed}")
    rng = random.Random(f"{name} {seed}")
    text = flatten(SPECS / name)
    for number in rng.sample(results(text), 3):
        lines = text.split("\n")
        line = lines[number.span.line - 1]
        other = {"true": "false", "false": "true", "0": "1"}.get(number.text, "0")
        lines[number.span.line - 1] = line[: number.span.column - 1] + other + line[number.span.end_column - 1 :]
        with pytest.raises(DiagnosticError) as caught:
            verify_examples(load_text("\n".join(lines), "text.op"))
        places = [(d.code, d.span and (d.span.line, d.span.column)) for d in caught.value.diagnostics]
        assert places == [("S061", (number.span.line, number.span.column))], number


def test_loading_computes_no_examples(tmp_path: Path) -> None:
    (tmp_path / "a.op").write_text(
        "op Twice {\n  type T in {float32}\n  input x: T[n]\n  output y: T[n]\n  y[i] = 2 * x[i]\n"
        '  example "wrong" {\n    x = [1]\n    y = [3]\n  }\n}\n'
    )
    module = load(tmp_path / "a.op")
    with pytest.raises(DiagnosticError, match=r"'y\[0\]' is 3.0, the op computes 2.0"):
        verify_examples(module)
