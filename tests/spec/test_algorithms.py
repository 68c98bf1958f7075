"""Algorithms and constants in the model: what conditions say, what is exact, what fragments share."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from opgen.grad import load
from opgen.spec.model.model import AttrValue, Element, Number, Reduce, Symbol
from opgen.spec.model.walk import subexpressions

MODULE = load(Path(__file__).parents[2] / "specs" / "nn_ops.op")


def test_conditions_say_values() -> None:
    algorithm = MODULE.op("Conv2D").algorithms[0]
    facts = dict(algorithm.facts)
    assert facts[Symbol("filter_height")] == 3
    assert facts[AttrValue("strides", (1,))] == 1
    extents = {
        r.extent
        for d in algorithm.definitions
        for e in subexpressions(d.value)
        if isinstance(e, Reduce)
        for r in e.indices
    }
    assert Number(3) in extents
    assert Symbol("filter_height") not in extents


def test_constants_are_exact_and_fragments_take_theirs() -> None:
    found = {
        a.name: {e.constant for d in a.definitions for e in subexpressions(d.value) if isinstance(e, Element)}
        for a in MODULE.op("Conv2D").algorithms
    }
    sizes = {name: {c.name: c.shape for c in constants} for name, constants in found.items()}
    assert sizes["minimal_filtering"] == {"of_filter": (4, 3), "of_image": (4, 4), "to_output": (4, 2)}
    assert sizes["minimal_filtering_4"] == {"of_filter": (6, 3), "of_image": (6, 6), "to_output": (6, 4)}
    of_filter = next(c for c in found["minimal_filtering_4"] if c.name == "of_filter")
    assert of_filter.at((3, 0)) == Fraction(1, 24)


def test_not_for_bfloat16_and_which_is_optional() -> None:
    for name in ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"):
        algorithms = MODULE.op(name).algorithms
        assert {a.name: a.optional for a in algorithms} == {"minimal_filtering": False, "minimal_filtering_4": True}
        for a in algorithms:
            assert [t.name for t in a.type_variables[0].allowed] == ["float16", "float32", "float64"]
    assert MODULE.op("DepthwiseConv2dNative").algorithms == ()
