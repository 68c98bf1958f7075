"""Examples against claims: found only where a claim is false."""

from __future__ import annotations

import random
from itertools import product

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.analysis.examples import Examples
from opgen.loop.analysis.intervals import Intervals
from opgen.loop.analysis.polynomial import Polynomial, atom, polynomial
from opgen.loop.nodes import Expr, Var

NAMES = ("x", "y", "z")
SIZE = 4


def _examples(facts: tuple[Polynomial, ...]) -> Examples:
    return Examples(facts, Intervals({}), {name: i for i, name in enumerate(NAMES)})


def _polynomial(rng: random.Random) -> Polynomial:
    total = Polynomial.constant(rng.randint(-6, 6))
    for name in NAMES:
        total = total + Polynomial.of(atom("var", Var(name))) * rng.randint(-2, 2)
    return total


def _value(p: Polynomial, values: dict[str, int]) -> int:
    return sum(c * (values[m[0].key] if m else 1) for m, c in p.terms.items())


def test_what_always_holds_is_never_refuted_and_what_fails_mostly_is() -> None:
    rng = random.Random(0)
    box = [f for n in NAMES for v in [Polynomial.of(atom("var", Var(n)))] for f in (v, -v + (SIZE - 1))]
    failing = refuted = 0
    for _ in range(500):
        goal, fact = _polynomial(rng), _polynomial(rng)
        points = [dict(zip(NAMES, p, strict=True)) for p in product(range(SIZE), repeat=len(NAMES))]
        points = [p for p in points if _value(fact, p) >= 0]
        holds = all(_value(goal, p) >= 0 for p in points)
        found = _examples((*box, fact)).against(goal)
        assert not (holds and found)
        failing += not holds
        refuted += found
    assert refuted > failing * 0.8


def test_conditions_with_quotients_and_remainders_are_decided_as_before() -> None:
    context = Context().with_loop("x", b.index(0), b.index(8)).with_loop("y", b.index(0), b.index(3))
    x, y = b.var("x"), b.var("y")

    def proved(e: Expr) -> bool:
        return context.proves(e)

    assert proved(b.compare("lt", b.floordiv(x, 2), 4))
    assert not proved(b.compare("lt", b.floordiv(x, 2), 3))
    assert proved(b.compare("ge", b.add(b.mul(x, 2), b.sub(2, y)), 0))
    assert not proved(b.compare("ge", b.sub(b.mul(x, 2), y), 0))
    assert not proved(b.compare("eq", b.mod(b.sub(x, y), 2), 0))
    assert proved(b.compare("lt", b.mod(b.add(x, y), 2), 2))
    assert proved(b.compare("le", b.minimum(x, y), y))


def test_a_place_in_a_row_of_a_fused_loop_is_seen_to_be_the_first_while_other_variables_are_least() -> None:
    fused, tap = Polynomial.of(atom("var", Var("x"))), Polynomial.of(atom("var", Var("y")))
    facts = (fused, -fused + 15, tap, -tap + 2)
    place = polynomial(b.mod(b.var("x"), 4)) + tap
    examples = _examples(facts)
    assert examples.against(place - 1)
    assert examples.against(-place + 4)
    assert not examples.against(place)
    assert not examples.against(-place + 5)
