"""Damaged generic ops: each draws diagnostics with a place in its text, or all of its forms are ops; nothing else."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from opgen.diagnostics import DiagnosticError
from opgen.spec import format_source, load_text
from opgen.spec.generic.forms import check_forms
from tests.support.mutation import mutate

TEXT = (Path(__file__).parents[2] / "specs/generic.op").read_text(encoding="utf-8")
PARTS = re.split(r"(?m)^(?=op |function )", TEXT)[1:]
FUNCTION, OPS = PARTS[0], PARTS[1:]
BATCHES, EACH = 4, 25


@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutations_draw_only_diagnostics(batch: int) -> None:
    for number in range(EACH):
        seed = batch * EACH + number
        rng = random.Random(seed)
        text = FUNCTION + mutate(rng.choice(OPS), rng)
        try:
            module = load_text(text, "damaged")
            check_forms(module)
            assert format_source(format_source(text)) == format_source(text)
        except DiagnosticError as error:
            placed = all(d.span is not None and d.span.source.text == text for d in error.diagnostics)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r} for the text\n{text}") from error
        else:
            placed = True
        assert placed, f"seed {seed}"


@pytest.mark.parametrize(("call", "takes"), [("pick(i)", "2 arguments, 1"), ("reversed(i..., 1)", "1 argument, 2")])
def test_list_functions_in_patterns_take_so_many_arguments(call: str, takes: str) -> None:
    """Also where the lengths of packs of indices are told by what they subscript."""
    tensors = "type T in {float32}\n  input x: T[dims...]\n  output y: T[dims...]"
    module = load_text(f"op A {{\n  {tensors}\n  y[{call}...] = x[i...]\n}}\n", "damaged")
    with pytest.raises(DiagnosticError, match=f"'{call.partition('(')[0]}' takes {takes} given"):
        check_forms(module)
