"""Coverage and bounds of subscripts, compared with counting."""

from __future__ import annotations

import itertools
import random

import pytest

from opgen.spec.model import model as m
from opgen.spec.model.polynomial import differences, digits, polynomial, same
from opgen.spec.resolve.inside import inside


def symbol(name: str) -> m.Expr:
    return m.Symbol(name)


def value(expr: m.Expr, values: dict[str, int]) -> int:
    if isinstance(expr, m.Number):
        return int(expr.value)
    if isinstance(expr, m.Symbol | m.Index):
        return values[expr.name]
    if isinstance(expr, m.Conditional):
        return value(expr.if_true if value(expr.condition, values) else expr.if_false, values)
    assert isinstance(expr, m.Operation)
    left, right = value(expr.left, values), value(expr.right, values)
    if expr.op in ("//", "%", "ceildiv"):
        return {"//": left // right, "%": left % right, "ceildiv": -(-left // right)}[expr.op]
    found = {"+": left + right, "-": left - right, "*": left * right, "min": min(left, right), "max": max(left, right)}
    return found[expr.op] if expr.op in found else {"<": left < right, ">=": left >= right}[expr.op]


def random_linear(rng: random.Random) -> m.Expr:
    """A sum of a few products of indices, dimensions and numbers."""
    atoms: list[m.Expr] = [m.Index("i"), m.Index("j"), m.Symbol("n"), m.Symbol("k"), m.Number(1), m.Number(2)]
    total: m.Expr = rng.choice(atoms)
    for _ in range(rng.randint(0, 3)):
        term = rng.choice(atoms)
        if rng.random() < 0.5:
            term = m.Operation("*", term, rng.choice(atoms))
        total = m.Operation("+" if rng.random() < 0.6 else "-", total, term)
    return total


@pytest.mark.parametrize("seed", range(300))
def test_proofs_hold(seed: int) -> None:
    """What is proved inside is inside for all small sizes (0 included) and all indices in their ranges."""
    rng = random.Random(seed)
    subscript, extent = random_linear(rng), rng.choice([symbol("n"), m.Operation("*", symbol("n"), symbol("k"))])
    ranges = {"i": symbol("n"), "j": symbol("k")}
    if not inside(subscript, extent, ranges, lambda atom: 0 if isinstance(atom, m.Symbol) else None):
        return
    for n, k in itertools.product(range(4), repeat=2):
        for i, j in itertools.product(range(n), range(k)):
            at = value(subscript, {"i": i, "j": j, "n": n, "k": k})
            assert 0 <= at < value(extent, {"n": n, "k": k}), (seed, n, k, i, j)


def random_parts(rng: random.Random, depth: int) -> m.Expr:
    """An integer of sums, quotients, remainders, extremes and choices; `s` may be anything, n >= 0, k >= 1."""
    leaves: list[m.Expr] = [m.Index("i"), m.Index("i"), m.Index("j"), *map(symbol, "nks"), *map(m.Number, range(3))]
    if not depth or rng.random() < 0.25:
        return rng.choice(leaves)
    op = rng.choice(["+", "-", "-", "*", "//", "%", "ceildiv", "min", "min", "max", "max", "if"])
    left, right = random_parts(rng, depth - 1), random_parts(rng, depth - 1)
    if op == "if":
        condition = m.Operation(rng.choice(["<", ">="]), left, right)
        return m.Conditional(condition, random_parts(rng, depth - 1), random_parts(rng, depth - 1))
    divides = op in ("//", "%", "ceildiv")
    return m.Operation(op, left, rng.choice([symbol("n"), symbol("k"), m.Number(2), m.Number(3)]) if divides else right)


@pytest.mark.parametrize("seed", range(200))
def test_what_is_taken_apart_is_inside(seed: int) -> None:
    """Quotients, remainders, extremes and choices: what is proved holds for all small sizes and indices."""
    rng, n, k = random.Random(seed), symbol("n"), symbol("k")
    subscript: m.Expr = m.Operation(rng.choice(["%", "//"]), random_parts(rng, 2), rng.choice([n, k]))
    if seed % 2:
        subscript = m.Operation("min", m.Operation("max", random_parts(rng, 2), m.Number(0)), random_parts(rng, 1))
    extent = rng.choice([n, k, m.Operation("*", n, k), m.Operation("ceildiv", n, k)])
    ranges = {"i": rng.choice([n, m.Operation("*", n, k)]), "j": k}
    if not inside(subscript, extent, ranges, {n: 0, k: 1}.get):
        return
    for sizes in itertools.product(range(4), range(1, 4), (-3, 0, 2)):
        values = dict(zip("nks", sizes, strict=True))
        for i, j in itertools.product(range(value(ranges["i"], values)), range(values["k"])):
            at = value(subscript, values | {"i": i, "j": j})
            assert 0 <= at < value(extent, values), f"seed {seed}: {values}, i = {i}, j = {j}"


@pytest.mark.parametrize(
    ("text", "proved"),
    [("i", True), ("n-1-i", True), ("i*k+j", True), ("i+1", False), ("i-1", False), ("n-i", False), ("j*n+i", True)],
)
def test_proofs_that_specs_need(text: str, proved: bool) -> None:
    i, j, n, k = m.Index("i"), m.Index("j"), symbol("n"), symbol("k")
    table: dict[str, m.Expr] = {
        "i": i,
        "n-1-i": m.Operation("-", m.Operation("-", n, m.Number(1)), i),
        "i*k+j": m.Operation("+", m.Operation("*", i, k), j),
        "j*n+i": m.Operation("+", m.Operation("*", j, n), i),
        "i+1": m.Operation("+", i, m.Number(1)),
        "i-1": m.Operation("-", i, m.Number(1)),
        "n-i": m.Operation("-", n, i),
    }
    extent = m.Operation("*", n, k) if "*" in text else n
    assert inside(table[text], extent, {"i": n, "j": k}, lambda a: 0 if isinstance(a, m.Symbol) else None) is proved


def test_digits_of_composites() -> None:
    a, b, c = m.Index("a"), m.Index("b"), m.Index("c")
    big, middle, small = symbol("B"), symbol("M"), symbol("S")
    whole = m.Operation("*", m.Operation("*", big, middle), small)
    nested = m.Operation("+", m.Operation("*", m.Operation("+", m.Operation("*", a, middle), b), small), c)
    assert digits(nested, whole) == [("a", big), ("b", middle), ("c", small)]
    literal = m.Operation("+", m.Operation("*", a, m.Number(2)), b)
    assert digits(literal, m.Number(6)) == [("a", m.Number(3)), ("b", m.Number(2))]
    assert digits(literal, m.Number(5)) is None
    assert digits(m.Operation("*", a, m.Number(2)), m.Number(6)) is None
    assert digits(m.Operation("+", literal, m.Number(1)), m.Number(6)) is None
    assert digits(m.Operation("+", m.Operation("*", a, small), m.Operation("*", b, small)), whole) is None


def test_equal_extents() -> None:
    n, k = symbol("n"), symbol("k")
    assert same(m.Operation("*", n, k), m.Operation("*", k, n))
    assert same(m.Operation("-", m.Operation("+", n, k), k), n)
    assert not same(n, k)
    assert polynomial(m.Negate(m.Number(3))).terms == {(): -3}


@pytest.mark.parametrize("seed", range(100))
def test_what_is_required_proves_what_is_so(seed: int) -> None:
    """With a requirement between two sums, what is proved inside is inside wherever that holds."""
    rng = random.Random(seed)
    subscript, extent, left, right = (random_linear(rng) for _ in range(4))
    if any("Index" in repr(side) for side in (left, right)):
        left, right = symbol("k"), m.Operation(rng.choice("+-"), symbol("n"), m.Number(rng.randint(0, 2)))
    op = rng.choice(("<", "<=", ">", ">=", "=="))
    ranges = {"i": symbol("n"), "j": symbol("k")}
    required = differences(m.Operation(op, left, right))
    if not inside(subscript, extent, ranges, lambda atom: 0 if isinstance(atom, m.Symbol) else None, required):
        return
    holds = {"<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__, "==": int.__eq__}[op]
    for n, k in itertools.product(range(1, 5), repeat=2):
        if holds(value(left, {"n": n, "k": k}), value(right, {"n": n, "k": k})):
            for i, j in itertools.product(range(n), range(k)):
                values = {"n": n, "k": k, "i": i, "j": j}
                assert 0 <= value(subscript, values) < value(extent, values), f"seed {seed}"


def test_a_requirement_proves_a_read() -> None:
    read, size = m.Index("i"), symbol("n")
    required = differences(m.Operation("and", m.Operation("<=", symbol("k"), symbol("n")), symbol("n")))
    assert not inside(read, size, {"i": symbol("k")}, lambda _: 0)
    assert inside(read, size, {"i": symbol("k")}, lambda _: 0, required)
    assert not inside(m.Operation("+", read, m.Number(1)), size, {"i": symbol("k")}, lambda _: 0, required)


def quotient(op: str, left: m.Expr, right: m.Expr) -> m.Expr:
    return m.Operation(op, left, right)


@pytest.mark.parametrize(
    ("rows", "place", "proved"),
    [  # of `rows` places, each at `i * s + j` where j < k
        ("(n - k) // s + 1", "i * s + j", True),
        ("(n - k) // s + 2", "i * s + j", False),
        ("(n - k + 1) // s + 1", "i * s + j", False),
        ("ceildiv(n, s)", "i * s", True),
        ("ceildiv(n, s)", "n - 1 - i * s", True),
        ("ceildiv(n, s)", "n - 2 - i * s", False),
        ("ceildiv(n + 1, s)", "i * s", False),
        ("n // s", "i * s + s - 1", True),
        ("n // s", "i * s + s", False),
    ],
)
def test_quotients_prove_reads(rows: str, place: str, proved: bool) -> None:
    """A name of the number of rows, too; each proof is compared with counting."""
    n, s, k, i = symbol("n"), symbol("s"), symbol("k"), m.Index("i")
    one = m.Number(1)
    scaled = m.Operation("*", i, s)
    table = {
        "(n - k) // s + 1": m.Operation("+", quotient("//", m.Operation("-", n, k), s), one),
        "(n - k) // s + 2": m.Operation("+", quotient("//", m.Operation("-", n, k), s), m.Number(2)),
        "(n - k + 1) // s + 1": m.Operation("+", quotient("//", m.Operation("+", m.Operation("-", n, k), one), s), one),
        "ceildiv(n, s)": quotient("ceildiv", n, s),
        "ceildiv(n + 1, s)": quotient("ceildiv", m.Operation("+", n, one), s),
        "n // s": quotient("//", n, s),
        "i * s": scaled,
        "i * s + j": m.Operation("+", scaled, m.Index("j")),
        "n - 1 - i * s": m.Operation("-", m.Operation("-", n, one), scaled),
        "n - 2 - i * s": m.Operation("-", m.Operation("-", n, m.Number(2)), scaled),
        "i * s + s - 1": m.Operation("-", m.Operation("+", scaled, s), one),
        "i * s + s": m.Operation("+", scaled, s),
    }
    least = {n: 0, k: 0, s: 1}.get
    names = {symbol("rows"): table[rows]}
    assert inside(table[place], n, {"i": symbol("rows"), "j": k}, least, (), names) is proved
    holds = []
    for size, step, taps in itertools.product(range(9), range(1, 5), range(1, 4)):
        known = {"n": size, "s": step, "k": taps}
        for at, tap in itertools.product(range(max(0, value(table[rows], known))), range(taps)):
            holds.append(0 <= value(table[place], {**known, "i": at, "j": tap}) < size)
    assert all(holds) is proved
