"""Two loops as one: what it does, what stands between them, and what is refused."""

from __future__ import annotations

import random

import pytest

from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import loops_in
from opgen.passes.legalize import legalize
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule
from tests.schedule import kernels
from tests.schedule.differential import assert_same

MOMENTS = """
kernel moments(n: int64 in [0, inf], m: int64 in [0, inf], x: float32[n, m]) -> (y: float32[n], z: float32[n]):
  for i in 0..n:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for j in 0..m:
      acc[] = acc[] + x[i, j]
    y[i] = acc[]
  for k in 0..n:
    alloc squares: float32[] register
    squares[] = 0.0f32
    for l in 0..m:
      squares[] = fma(x[k, l], x[k, l], squares[])
    z[k] = squares[]
"""
MERGED = """    for i in 0 .. n:
        alloc acc: float32[] register
        alloc squares: float32[] register
        acc[] = 0.0f32
        squares[] = 0.0f32
        for j in 0 .. m:
            acc[] = acc[] + x[i, j]
            squares[] = fma(x[i, j], x[i, j], squares[])
        y[i] = acc[]
        z[i] = squares[]
"""


def check(text: str, steps: str, sizes: dict[str, int], seed: int = 1) -> str:
    kernel = parse_kernel(text)
    after = apply(kernel, parse_schedule(steps))
    verify(after)
    assert_same(kernel, after, sizes, seed, print_kernel(after))
    assert_same(kernel, legalize(after), sizes, seed, print_kernel(after))
    return print_kernel(after)


@pytest.mark.parametrize("sizes", [(0, 3), (1, 0), (5, 7)])
def test_two_sums_read_their_terms_once(sizes: tuple[int, int]) -> None:
    found = check(MOMENTS, "merge i, k\nmerge j, l", dict(zip("nm", sizes, strict=True)))
    assert found.endswith(MERGED)


@pytest.mark.parametrize(
    "steps",
    [
        "merge i, k\nparallel i",
        "parallel i\nparallel k\nmerge i, k",
        "rfactor j 4 -> a\nrfactor l 4 -> b\nmerge i, k\nmerge j_o, l_o\nmerge j_l, l_l\nvectorize j_l",
        "split i 2 tail=min\nsplit k 2 tail=min\nmerge i_o, k_o\nmerge i_i, k_i",
        "partition k -1 -> last\nsplit i 1 tail=exact\nmerge k, k_last",
    ],
)
def test_with_other_steps(steps: str) -> None:
    if "k_last" in steps:
        with pytest.raises(ScheduleError, match="not known to have as many iterations"):
            check(MOMENTS, steps, {"n": 3, "m": 5})
    else:
        check(MOMENTS, steps, {"n": 3, "m": 5})


@pytest.mark.parametrize("sizes", [(0, 3), (4, 5)])
def test_intermediates_between_nests(sizes: tuple[int, int]) -> None:
    """What a row makes is used by the same row of the next nest; terms of the second sum need the whole first."""
    kernel = kernels.kernel(kernels.NORMALISE)
    after = apply(kernel, parse_schedule("merge peak_i, total_i"))
    assert_same(kernel, after, dict(zip("mn", sizes, strict=True)), 2)
    with pytest.raises(ScheduleError) as refusal:
        apply(after, parse_schedule("merge j, j2"))
    expected = "merge j: what stands between the loops must be done after 'j' and before 'j2'"
    assert refusal.value.message == expected


FED = """
kernel fed(x: float32[9], q: int64[9]) -> (y: float32[12], z: float32[12], s: float32[1]):
  for w in 0..12:
    y[w] = 0.0f32
    z[w] = 0.0f32
  for i in 2..9:
    y[i + {A}] = x[i]
  s[0] = {S}
  for j in {B}..{C}:
    z[j] = {R}
"""
USUAL = {"A": "0", "S": "x[0]", "B": "2", "C": "9", "R": "y[j]*2.0f32"}


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"B": "0", "C": "7", "R": "y[j + 2]"},
        {"S": "y[1]", "R": "x[j]"},
        {"A": "3", "R": "y[j + 3]"},
    ],
)
def test_an_iteration_uses_what_the_same_one_makes(other: dict[str, str]) -> None:
    found = check(FED.format(**USUAL | other), "merge i, j", {})
    assert [s.var for s in loops_in(parse_kernel(found).body)] == ["w", "i"]


REFUSED = {
    "merge i, i": (USUAL, "merge i: the two loops are one", "name two loops that stand one after the other"),
    "merge j, i": (USUAL, "merge j: 'i' stands before it", "write merge i, j"),
    "merge i, nowhere": (USUAL, "merge: there is no loop 'nowhere'", "the loops are w, i, j"),
    "unroll i\nunroll j\nmerge i, j": (USUAL, "merge i: the loops are unroll", "merge them before"),
    "parallel i\nmerge i, j": (USUAL, "merge i: the loops are parallel and serial", "merge them before"),
    "merge w, j": (USUAL, "merge w: 'j' is not known to have as many iterations", None),
    "split i 7 tail=exact\nmerge i_o, i_i": (
        USUAL,
        "merge i_o: 'i_i' does not stand beside it",
        "reorder the loops first",
    ),
    "split i 7 tail=exact\nmerge i_i, j": (
        USUAL,
        "merge i_i: around 'i_i' stands the loop over 'i_o'",
        "merge or reorder the loops around it first",
    ),
    "partition i 1\nmerge i, j": (
        USUAL,
        "merge i: there are several loops 'i'",
        "give the parts of a loop names of their own: partition LOOP CUT -> SUFFIX",
    ),
    "merge i, j": (
        USUAL | {"A": "1"},
        "merge i: an iteration of 'j' is not known to need only what the same one of 'i' does",
        "both use 'y'",
    ),
    "merge i, j\n": (
        USUAL | {"R": "y[max(0, min(q[j], 11))]"},
        "merge i: an iteration of 'j' is not known to need only what the same one of 'i' does",
        "both use 'y'",
    ),
    "merge i, j\n\n": (
        USUAL | {"S": "y[2]", "R": "s[0]"},
        "merge i: what stands between the loops must be done after 'i' and before 'j'",
        None,
    ),
}


@pytest.mark.parametrize("steps", REFUSED)
def test_what_is_refused(steps: str) -> None:
    words, message, hint = REFUSED[steps]
    with pytest.raises(ScheduleError) as refusal:
        apply(parse_kernel(FED.format(**words)), parse_schedule(steps))
    assert (refusal.value.message, refusal.value.help) == (message, hint)


def test_bounds_that_the_loops_change_are_refused() -> None:
    text = "kernel grown(x: float32[9]) -> (y: float32[9], n: int64[1]):\n  n[0] = 1\n  for w in 0..9:\n"
    text += (
        "    y[w] = 0.0f32\n  for i in 0..n[0]:\n    n[0] = 2\n  for j in 0..n[0]:\n    y[max(0, min(j, 8))] = x[0]\n"
    )
    with pytest.raises(ScheduleError, match="the loops store to what their bounds are read from"):
        apply(parse_kernel(text), parse_schedule("merge i, j"))


RANDOM = """
kernel drawn(x: float32[24], p: int64[24]) -> (y: float32[24], z: float32[24], k: int64[24]):
  for a in 0..24:
    y[a] = x[a]
    z[a] = x[a]*2.0f32
    k[a] = (p[a]*7 % 20 + 20) % 20
  for i in 4..10:
    {first}
  {between}
  for j in {start}..{stop}:
    {second}
"""


def drawn(rng: random.Random) -> str:
    """Two loops that share memory in some way."""

    def place(loop: str) -> str:
        near = f"{loop} + {rng.randint(-2, 2)}"
        return rng.choice([near, near, near, f"{loop}*2 - {rng.randint(0, 3)}", f"k[{loop}]", "5"])

    def store(loop: str) -> str:
        if rng.random() < 0.1:
            return f"k[{place(loop)}] = {(rng.choice('yzx') == 'y' and 3) or 4}"
        buffer, other = rng.choice("yz"), rng.choice("xyz")
        return f"{buffer}[{place(loop)}] = {other}[{place(loop)}] + {rng.choice('xyz')}[{place(loop)}]"

    start = rng.randint(2, 5)
    between = rng.choice([f"y[{rng.randint(0, 23)}] = z[{rng.randint(0, 23)}]", "z[0] = x[0]"])
    return RANDOM.format(first=store("i"), second=store("j"), between=between, start=start, stop=start + 6)


def test_what_is_merged_computes_the_same() -> None:
    """In the interpreter, of loops that share memory: some are merged, some must not be."""
    merged = 0
    for seed in range(300):
        kernel = parse_kernel(drawn(random.Random(seed)))
        try:
            after = apply(kernel, parse_schedule("merge i, j"))
        except ScheduleError:
            continue
        merged += 1
        assert_same(kernel, after, {}, seed, print_kernel(after))
    assert 40 < merged < 200, merged


MANY = """
kernel many(x: float32[4]) -> (y: float32[4], z: float32[4], r: float32[4]):
  alloc p: float32[4] heap
  alloc q: float32[4] heap
{others}
  for i in 0..4:
    y[i] = x[i]
  for l in 0..4:
    p[l] = y[l]
  for m in 0..4:
    q[m] = p[m]
  for j in 0..4:
    z[j] = x[j]
  for o in 0..4:
    r[o] = q[o]
"""


def test_of_many_nests_all_that_stands_between_is_looked_at() -> None:
    """Also what shares no memory with the two loops: it needs what must be done after them."""
    others = "".join(f"  for a{k} in 0..4:\n    q[a{k}] = x[a{k}]\n" for k in range(12))
    found = check(MANY.format(others=others), "merge i, j", {})
    assert [s.var for s in loops_in(parse_kernel(found).body)][12:] == ["i", "l", "m", "o"]
