"""What the primitives refuse, word for word."""

from __future__ import annotations

import pytest

from opgen.loop.parse import parse_kernel
from opgen.passes.legalize import legalize
from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import apply, parse_schedule

PREFIX = """
kernel prefix(n: int64 in [1, inf], m: int64 in [1, inf], x: float32[n, m], h: float16[n]) -> (
              y: float32[n, m], z: float32[n], copy: float16[n]):
  for i in 0..n:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for j in 0..m:
      acc[] = acc[] + x[i, j]
      y[i, j] = acc[]
    z[i] = acc[]
  for row in 0..n:
    for column in 0..row:
      y[row, column] = x[row, column]
  for p in 0..n:
    z[p] = z[p] + 1.0f32
  for u in 0..n:
    copy[u] = h[u]
  for q in 0..64:
    for l in 0..8:
      if q*8 + l < n:
        z[q*8 + l] = 2.0f32
"""

REFUSALS = {
    "split jj 4": ("split: there is no loop 'jj'", "did you mean 'j'?"),
    "unroll nowhere": (
        "unroll: there is no loop 'nowhere'",
        "the loops are i, j, row, column, p, u, q, l",
    ),
    "split i 0": ("split i: the factor is 0", "a factor is at least 1"),
    "split i 4 -> i, j": ("split: the name 'j' is taken", "give the new loop another name"),
    "split i 4 tail=exact": ("split i: 4 is not known to divide its extent", "use another tail"),
    "split i 4 tail=overlap": (
        "split i: the extent is not known to be at least 4",
        "overlapping tiles need a whole one",
    ),
    "split j 4 tail=overlap": (
        "split j: the iterations of 'j' are not known to be independent",
        "one iteration may write what another reads or writes",
    ),
    "split p 1\nsplit p_o 1 tail=exact -> a, a": ("split: the name 'a' is taken", "give the new loop another name"),
    "unroll l\nsplit l 4": ("split l: the loop is already unroll", "split it before"),
    "reorder i, i": ("reorder: the loop 'i' is named twice", "name each loop once"),
    "reorder column, row": (
        "reorder row: the bounds of 'column' depend on it",
        "leave the loop further out",
    ),
    "reorder j, i": (
        "reorder i: 'acc' would need one element an iteration, and their number is not constant",
        "leave the loop further out",
    ),
    "fuse i, j": ("fuse i: 'j' is not the only thing inside it", "reorder the loops first"),
    "fuse row, column": ("fuse row: the bounds of 'column' depend on it", None),
    "skew i, p 1": ("skew i: 'p' is not the only thing inside it", "reorder the loops first"),
    "skew q, l 0": ("skew q: the factor is 0", "a factor is positive or negative"),
    "skew row, column 1": ("skew row: the bounds of 'row' are not constant", "split it first"),
    "vectorize l\nskew q, l 1": ("skew q: the loop 'l' is already vector", "skew before"),
    "unroll i": ("unroll i: its extent is not constant", "split the loop by a constant first"),
    "vectorize j": ("vectorize j: its extent is not constant", "split the loop by a constant first"),
    "parallel j": (
        "parallel j: the iterations of 'j' are not known to be independent",
        "one iteration may write what another reads or writes",
    ),
    "parallel p\nparallel p": ("parallel p: the loop is already parallel", None),
    "bind p thread.w": ("there is no axis 'thread.w'", "did you mean 'thread.z'?"),
    "bind q block.x\nbind l block.x": ("bind l: the loop 'q' around it is block.x", None),
    "split row 4\nvectorize row_i": (
        "vectorize row_i: the bounds of the loop 'column' would differ between the lanes of 'row_i'",
        None,
    ),
    "vectorize l\nvectorize q": ("vectorize q: the loop 'l' inside it is vector", None),
    "vectorize q\nvectorize l": ("vectorize l: the loop 'q' around it is vector", None),
    "bind q block.x\nparallel l": ("parallel l: the loop 'q' around it is block.x", None),
    "bind q thread.x\nbind l block.x": ("bind l: the loop 'q' around it is thread.x", None),
    "parallel i\nreorder j, i": ("reorder i: the loop is already parallel", "reorder it before"),
    "partition p 3, 1": ("partition p: the cuts 3, 1 are not in order", None),
    "partition p -1, 2": ("partition p: the cuts -1, 2 are not one or two cuts in order", None),
    "partition p -1 -> i\npartition p 1 -> i": ("partition: the name 'p_i' is taken", "give the new loop another name"),
    "tighten p": ("tighten p: its body is not a condition that can become bounds of it", None),
    "pack w 0, 1": ("pack w: there is no such input or output", None),
    "pack z 0": ("pack z: it is not known to be written as a whole", None),
    "pack y 1, 0": ("pack y: it is not known to be written as a whole", None),
    "pack x 0, 0": ("pack x: 0, 0 is not an order of its 2 dimensions", None),
    "pack x 1, 0 at=i in=j": ("pack x: a copy made in each iteration of 'i' is for all of it", "leave out in="),
    "pack x 1, 0 in=w": ("pack: there is no loop 'w'", "the loops are i, j, row, column, p, u, q, l"),
    "pack x 1, 0 -> acc": ("pack: the name 'acc' is taken", "give the new loop another name"),
    "widen w": ("widen w: there is no such buffer", None),
    "widen x": ("widen x: float32 is computed with as it is", None),
    "widen h": ("widen h: not every read of it is cast to float32", None),
    "pair i": ("pair i: it does not add one product of two bfloat16 elements, or of a uint8 and an int8", None),
    "pair q": ("pair q: it does not add one product of two bfloat16 elements, or of a uint8 and an int8", None),
    "rfactor j 3": ("rfactor j: 3 is not a power of two above 1", None),
    "rfactor j 8192": ("rfactor j: 8192 partial results are too many", "take up to 4096"),
    "split i 9223372036854775808": ("'9223372036854775808' is too large", "a number has up to 9 digits"),
    "rfactor j 4": ("rfactor j: its body is not one step of a sum, product, minimum or maximum", None),
    "rfactor p 4": ("rfactor p: 'z' is not local to a nest", None),
    "stage w at=i": ("stage w: there is no such buffer", None),
    "stage x at=p": ("stage x: nothing inside 'p' touches it", None),
    "stage x at=i": ("stage x: the size of its region is not constant", "stage it in heap, or further in"),
    "stage z at=p": (
        "stage z: one iteration of 'p' both reads and writes it, and it is not known to have values before",
        None,
    ),
    "parallel p\nstage z at=p": (
        "stage z: one iteration of 'p' both reads and writes it",
        "stage before loops get threads",
    ),
    "regroup j, jj": ("regroup: there is no loop 'jj'", "did you mean 'j'?"),
    "regroup j, j": ("regroup j: it cannot go inside itself", "name another loop of the sum"),
    "regroup j, i": ("regroup j: it does not hold the loop 'i'", "name the outer loop first"),
    "regroup row, column": ("regroup row: it holds more than steps of sums", None),
    "regroup i, j": ("regroup i: it holds more than steps of sums", None),
    "split p 4\nunroll p_i\nregroup p_o, p_i": (
        "regroup p_o: a loop there is already unroll",
        "regroup before",
    ),
    "pitch y 0 9": ("pitch y: the kernel allocates no such buffer", None),
    "pitch acc 0 9": ("pitch acc: it has no dimension 0", None),
    "permute y 1, 0": ("permute y: the kernel allocates no such buffer", "it has acc"),
    "permute acc 1, 0": ("permute acc: its 0 dimensions each belong into the order once", None),
    "stage z at=q space=stack": ("stage z: its region is not known to be written as a whole", None),
    "stage acc at=i": ("stage acc: it is allocated inside 'i'", None),
}


@pytest.mark.parametrize("text", REFUSALS)
def test_refusal(text: str) -> None:
    kernel = parse_kernel(PREFIX)
    with pytest.raises(ScheduleError) as refusal:
        apply(kernel, parse_schedule(text))
    assert (refusal.value.message, refusal.value.help) == REFUSALS[text]


LARGE = """
kernel large(x: float32[64, 4096]) -> (y: float32[64, 4096]):
  alloc t: float32[64, 4096] heap
  for a in 0..64:
    for b in 0..4096:
      t[a, b] = x[a, b] * 2.0f32
  for o in 0..1:
    for i in 0..64:
      for j in 0..4096:
        y[i, j] = t[i, j] + x[i, j]
"""


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("stage x at=o space=stack -> near", "stage x: 'near'", "stage"),
        ("stage y at=o space=register -> near", "stage y: 'near'", "stage"),
        ("compute_at t at=o space=stack", "compute_at t: it", "compute"),
    ],
)
def test_what_has_no_room_is_refused(text: str, what: str, place: str) -> None:
    """A MiB on the stack; the same in heap, or a row of it, is right."""
    space = "register" if "register" in text else "stack"
    with pytest.raises(ScheduleError) as refusal:
        apply(parse_kernel(LARGE), parse_schedule(text))
    assert refusal.value.message == f"{what} is too large for the {space}"
    assert refusal.value.help == f"{place} it in heap, or further in"
    apply(parse_kernel(LARGE), parse_schedule(text.replace(f"space={space}", "space=heap")))
    apply(parse_kernel(LARGE), parse_schedule(text.replace("at=o", "at=i")))


def test_bounds_are_not_tightened_apart_within_lanes() -> None:
    kernel = parse_kernel(
        "kernel steps(x: float32[8]) -> (y: float32[8]):\n  for i in 0..8:\n    alloc acc: float32[] register\n"
        "    acc[] = 0.0f32\n    for j in 0..8:\n      if j < i:\n        acc[] = acc[] + x[j]\n    y[i] = acc[]\n"
    )
    with pytest.raises(ScheduleError) as refusal:
        apply(kernel, parse_schedule("vectorize i\ntighten j"))
    assert refusal.value.message == "tighten j: the bounds of the loop 'j' would differ between the lanes of 'i'"


@pytest.mark.parametrize("at", ["i", "j"])
@pytest.mark.parametrize(
    ("step", "what"),
    [
        ("stage x at={at} space=heap -> near", "the size of 'near'"),
        ("pack x 0 at={at} -> near", "the bounds of the loop 'near_0'"),
    ],
)
def test_copies_within_lanes_are_of_one_size(step: str, what: str, at: str) -> None:
    """Near the end of `x` a lane's copy would be the shorter, the later the lane."""
    kernel = parse_kernel(
        "kernel ends(n: int64 in [8, inf], x: float32[n]) -> (y: float32[8, 2]):\n  for i in 0..8:\n"
        "    for j in 0..2:\n      alloc acc: float32[] register\n      acc[] = 0.0f32\n      for k in 0..4:\n"
        "        if i + k < n:\n          acc[] = acc[] + x[i + k]\n      y[i, j] = acc[]\n"
    )
    with pytest.raises(ScheduleError) as refusal:
        apply(kernel, parse_schedule(f"vectorize i\n{step.format(at=at)}"))
    assert refusal.value.message == f"stage x: {what} would differ between the lanes of 'i'"
    legalize(apply(kernel, parse_schedule(f"vectorize i\nstage x at={at} space=stack pad=true -> near")))


def test_a_refusal_names_its_line() -> None:
    with pytest.raises(ScheduleError) as refusal:
        apply(parse_kernel(PREFIX), parse_schedule("parallel i\nunroll i  # too late\n", "mine.schedule"))
    assert str(refusal.value) == (
        "mine.schedule:2:1: error[schedule]: unroll i: the loop is already parallel\n"
        "   |\n"
        " 2 | unroll i  # too late\n"
        "   | ^^^^^^"
    )


def test_a_masked_store_does_not_write_a_region_as_a_whole() -> None:
    kernel = parse_kernel(
        """
kernel masked(x: float32[4, 12]) -> (y: float32[4, 12]):
  for i in 0..4:
    for j in 0..12:
      y[i, j] = 7.0f32
  for k in 0..4:
    for j in 0..6:
      y[k, 2 * j if j < 3] = x[k, j]
      y[k, 2 * j + 1 if j < 3] = x[k, j]
"""
    )
    with pytest.raises(ScheduleError, match="its region is not known to be written as a whole"):
        apply(kernel, parse_schedule("stage y at=k"))
