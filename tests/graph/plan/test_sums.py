"""Integer expressions as sums: the same value for all indices, and what is put together again comes out as it was."""

from __future__ import annotations

import itertools
from math import prod

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from opgen.graph.plan.sums import Atom, Sum, Sums
from opgen.spec.call.environment import Environment, evaluate
from opgen.spec.model import model as m
from tests.graph.random_graphs import MODULE, SEED

INDICES = ("i", "j", "k")
NUMBERS = st.integers(-3, 12).map(m.Number)


def expressions() -> st.SearchStrategy[m.Expr]:
    """Sums, products and quotients of indices and numbers."""

    def grown(inner: st.SearchStrategy[m.Expr]) -> st.SearchStrategy[m.Expr]:
        by = st.integers(1, 12).map(m.Number)
        return (
            st.builds(m.Operation, st.sampled_from(("+", "-")), inner, inner)
            | st.builds(m.Operation, st.just("*"), inner, NUMBERS)
            | st.builds(m.Operation, st.sampled_from(("//", "%")), inner, by)
            | st.builds(m.Negate, inner)
        )

    return st.recursive(st.sampled_from(INDICES).map(m.Index) | NUMBERS, grown, max_leaves=8)


def number(e: m.Expr) -> int | None:
    return int(e.value) if isinstance(e, m.Number) else None


def value(given: Sum, at: dict[str, int]) -> int:
    return sum(factor * _atom(atom, at) for atom, factor in given)


def _atom(atom: Atom | None, at: dict[str, int]) -> int:
    if atom is None:
        return 1
    return at[atom] if isinstance(atom, str) else value(atom[0], at) // atom[1]


@seed(SEED)
@settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(expressions(), st.tuples(*[st.sampled_from((1, 2, 3, 4, 6))] * 3))
def test_a_sum_has_the_value_of_its_expression(e: m.Expr, extents: tuple[int, int, int]) -> None:
    print(f"OPGEN_SEED={SEED}")
    sums = Sums(dict(zip(INDICES, extents, strict=True)), number)
    found = sums.of(e)
    assert found is not None
    low, high = sums.range(found)
    for place in itertools.product(*map(range, extents)):
        at = dict(zip(INDICES, place, strict=True))
        expected = evaluate(e, Environment(MODULE.ops[0], {}, {}, {}), at)
        assert value(found, at) == expected
        assert low <= expected <= high


def times(left: m.Expr, right: int) -> m.Expr:
    return m.Operation("*", left, m.Number(right))


@seed(SEED)
@settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(1, 7), max_size=3), st.lists(st.integers(1, 7), max_size=4), st.booleans())
def test_places_taken_apart_and_put_together_are_what_they_were(
    to: list[int], source: list[int], divided_first: bool
) -> None:
    """As a change of shape is written: a place in one tensor, from it indices of the other, the place there."""
    sums = Sums(dict(zip(INDICES, to, strict=False)), number)
    flat: m.Expr = m.Number(0)
    for name, size in zip(INDICES, to, strict=False):
        flat = m.Operation("+", times(flat, size), m.Index(name))
    place: m.Expr = m.Number(0)
    for axis, size in enumerate(source):
        step = prod(source[axis + 1 :])
        if divided_first:
            index: m.Expr = m.Operation("//", flat, m.Number(step))
            index = m.Operation("%", index, m.Number(size)) if axis else index
        else:
            index = m.Operation("%", flat, m.Number(size * step)) if axis else flat
            index = m.Operation("//", index, m.Number(step))
        place = m.Operation("+", times(place, size), index)
    expected = flat if source else m.Number(0)
    assert sums.of(place) == sums.of(expected)
