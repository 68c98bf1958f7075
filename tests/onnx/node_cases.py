"""ONNX's own tests of single nodes, run through the backend; which pass is listed in `node_tests.txt`.

python -m tests.onnx.node_cases         # runs all and writes the list anew
python -m tests.onnx.node_cases WORD    # runs those with the word in their names, and says how each ended
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from opgen.diagnostics import UserError
from opgen.onnx.backend import prepare

LIST = Path(__file__).with_name("node_tests.txt")
SAID = re.compile(r"nodes? '.+' \(\w[\w.]*\): .+")
"""What every refusal has: node, operator and reason."""
_ROUNDED_EACH_STEP = (
    "two elements differ by one unit of half: the expected result comes of weights that are rounded to half at each "
    "step, exponentials and their sum included; ours is nearer to that of float64 (test_node_tests.py compares them)"
)
_ROUNDED_IN_FLOAT32 = (
    "the expected result is a transform in float32, whose imaginary part at half the length is 1.9e-7, not 0; "
    "ours is below 1e-14 there, and the test asks for the expected number to 1e-7 (test_node_tests.py compares them)"
)
_BY_CHANCE = (
    "the expected result is of numpy's generator; ONNX asks for none, implementations may differ even for one seed: "
    "ours, of Philox, has the type and shape, and values that the operator may give (test_node_tests.py looks at them)"
)
CHANCE = {
    **{f"test_bernoulli{kind}{way}": _BY_CHANCE for kind in ("", "_double", "_seed") for way in ("", "_expanded")},
    **{f"test_training_dropout{kind}": _BY_CHANCE for kind in ("", "_mask", "_default", "_default_mask")},
}
"""Tests of operators of chance."""
EXCEPTIONS = {
    **CHANCE,
    "test_attention_4d_causal_fp16_expanded": _ROUNDED_EACH_STEP,
    "test_dft_inverse": _ROUNDED_IN_FLOAT32,
    "test_dft_inverse_opset19": _ROUNDED_IN_FLOAT32,
}
"""Tests whose expected results are not those of the definition, with the reason; each has a test that shows it."""


@dataclass(frozen=True)
class Outcome:
    """How a test ended: `passed`, or `refused` with a reason that is said, or neither."""

    name: str
    passed: bool
    refused: bool
    said: str


def listed() -> set[str]:
    """The names of the tests that pass."""
    return set(LIST.read_text().split())


@cache
def cases() -> tuple[Any, ...]:
    """All tests of nodes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their expected results come of divisions by zero
        return tuple(load_model_tests(kind="node"))


def outcome(case: Any) -> Outcome:
    """Runs a test."""
    try:
        prepared = prepare(case.model)
        for inputs, wanted in case.data_sets:
            found = list(prepared.run(list(inputs)))
            expected = [numpy_helper.to_array(e) if isinstance(e, TensorProto) else e for e in wanted]
            Runner.assert_similar_outputs(expected, found, rtol=case.rtol, atol=case.atol)
    except UserError as error:
        return Outcome(case.name, False, SAID.search(str(error)) is not None, f"{type(error).__name__}: {error}")
    except AssertionError as error:
        return Outcome(case.name, False, False, f"wrong: {error}")
    except Exception as error:  # whatever came out is what is asked about
        return Outcome(case.name, False, False, f"{type(error).__name__}: {error}")
    return Outcome(case.name, True, False, "")


def outcomes(part: int = 0, parts: int = 1, word: str = "") -> Iterator[Outcome]:
    """Runs every `parts`-th test, from the one at `part`."""
    return (outcome(case) for case in cases()[part::parts] if word in case.name)


def main(arguments: list[str]) -> int:
    word = arguments[0] if arguments else ""
    found = list(outcomes(word=word))
    for each in found:
        if word or not (each.passed or each.refused):
            print(f"{each.name}: {'passed' if each.passed else each.said}")
    passed = sorted(each.name for each in found if each.passed)
    print(f"{len(passed)} of {len(found)} pass, {sum(each.refused for each in found)} are refused")
    if not word:
        LIST.write_text("".join(f"{name}\n" for name in passed))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
