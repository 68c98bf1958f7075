"""Every primitive against the unscheduled program, before and after the passes, on random shapes."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from opgen.loop.interpret import interpret
from opgen.loop.nodes import Const, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.print import print_kernel
from opgen.loop.verify import verify
from opgen.loop.walk import buffers_in
from opgen.passes.legalize import legalize
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.errors import ScheduleError
from opgen.schedule.limits import Limits
from opgen.schedule.loops import loop_names
from opgen.schedule.schedule import Schedule, apply, parse_schedule
from opgen.schedule.steps import Partition, Step
from tests.schedule import kernels
from tests.schedule.differential import random_inputs, specialised
from tests.schedule.random_steps import Drawn
from tests.support.scheduled import check

DENSE = [
    "split k 4 -> k_o, k_i",
    "split k 4 tail=min",
    "split x 4 tail=min -> x_o, x_i\nsplit y 2",
    "split k 4\nvectorize k_i",
    "split k 4\nreorder n, y, x, g, k_o, r, s, c, k_i\nvectorize k_i",
    "split k 4\nsplit x 2\nreorder n, y, k_o, x_o, g, r, s, c, x_i, k_i\nunroll x_i\nvectorize k_i",
    "split x 4\nvectorize x_i",
    "split x 4\nreorder x_o, n, y, g, k, r, s, c, x_i\nvectorize x_i",
    "parallel n\nfuse n, y",
    "fuse y, x -> y_x\nfuse n, y_x",
    "parallel n\nfuse n, y -> n_y\nfuse n_y, x",
    "partition x 1, -1",
    "partition y -2\npartition x 2",
    "partition x 1, -1 -> last\nparallel x_last\nsplit k_last 4",
    "partition y -1 -> last\npack filter 0, 1, 3, 2 in=y -> w\npack image 0, 3, 1, 2 in=y_last",
    "tighten r\ntighten s",
    "split k 4\nbind k_i thread.x\nbind x block.x",
    "stage filter at=n space=heap",
    "stage image at=y space=heap pad=true",
    "split k 3\nstage filter at=k_o space=heap pad=true",
    "reorder k, g, x, y, n",
    "rfactor c 4 -> part",
    "share c 4 at=n -> part\nparallel part_i",
    "share r 2 at=n -> part\nbind part_i thread.x\nbind n_part block.x",
    "rfactor s 2 -> part\nvectorize s_l\nvectorize part_i",
    "rfactor c 8 -> part\npartition c_o -1\nvectorize c_l\nvectorize part_i\nvectorize part_4\nparallel n",
    "pack filter 0, 1, 3, 2",
    "pack filter 2, 0, 1, 3 at=n -> w\nparallel n",
    "pack filter 3, 2, 0, 1 -> w\nsplit w_0 4 tail=min\nparallel w_1\npack image 0, 3, 1, 2",
]


@pytest.mark.parametrize("text", DENSE)
@pytest.mark.parametrize("seed", range(3))
def test_dense(text: str, seed: int) -> None:
    sizes = kernels.random_dense(random.Random(seed))
    check(kernels.dense(), parse_schedule(text), sizes, seed)


@pytest.mark.parametrize(
    "text",
    [
        "widen image",
        "widen filter -> w\nsplit w_3 4\nvectorize w_3_i",
        "pack filter 0, 1, 3, 2\nwiden filter_packed\nwiden image",
    ],
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("seed", range(2))
def test_widen(text: str, dtype: str, seed: int) -> None:
    check(kernels.dense(dtype), parse_schedule(text), kernels.random_dense(random.Random(seed)), seed)


NARROW = """
kernel narrow(x: float16[5, 12], w: bfloat16[12, 7]) -> (y: float16[5, 7]):
  for i in 0..5:
    for j in 0..7:
      alloc acc: float32[] register
      acc[] = 0.0f32
      for k in 0..12:
        acc[] = fma(float32(x[i, k]), float32(w[k, j]), acc[])
      y[i, j] = float16(max(acc[], 0.0f32))
"""


@pytest.mark.parametrize(
    "text",
    [
        "widen y",
        "widen y -> sums\nsplit sums_1 4 tail=overlap\nvectorize sums_1_i",
        "widen y\nsplit k 4\ncarry k_o at=i\nparallel i",
        "pack y 1, 0 -> turned",
        "widen y\nsplit j 4 tail=overlap\npack w 1, 0 at=j_o -> panel\nwiden panel -> wide\nwiden x",
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_results_are_kept_wide(text: str, seed: int) -> None:
    check(parse_kernel(NARROW), parse_schedule(text), {}, seed)


def test_only_what_is_computed_wide_is_kept_wide() -> None:
    other = NARROW.replace("float16(max(acc[], 0.0f32))", "x[i, 0]")
    for text, body, message in (
        ("widen y", other, "widen y: what it holds is not computed in float32"),
        (
            "widen y",
            NARROW.replace("for i in 0..5", "for i in 1..5"),
            "widen y: it is not known to be written as a whole",
        ),
        ("widen y -> acc", NARROW, "widen: the name 'acc' is taken"),
    ):
        with pytest.raises(ScheduleError) as refusal:
            apply(parse_kernel(body), parse_schedule(text))
        assert refusal.value.message == message


SUMS = """
kernel sums(height: int64 in [0, inf], width: int64 in [0, inf], image: float32[height, width, 8],
            weight: float32[height, width, 8]) -> (result: float32[3, 2, 8]):
  for r in 0..3:
    for s in 0..2:
      for c in 0..8:
        alloc acc: float32[] register
        acc[] = 0.0f32
        for y in 0..height:
          if y + r - 1 >= 0 and y + r - 1 < height:
            for x in 0..width:
              if x + s - 1 >= 0 and x + s - 1 < width:
                acc[] = fma(image[y + r - 1, x + s - 1, c], weight[y, x, c], acc[])
        result[r, s, c] = acc[]
"""
TILED = "split y 4 -> y_o, y_i\nsplit x 2 -> x_o, x_i\nsplit c 4 tail=exact -> c_o, c_l\n"
TILE = "x_o, c_o, r, y_i, x_i, s, c_l\nskew r, y_i 1 -> r_y\n"
LANED = "unroll r\nunroll r_y\nunroll y_i\nunroll x_i\nunroll s\nvectorize c_l\n"


@pytest.mark.parametrize(
    "text",
    [
        "regroup y, x",
        "split x 3 tail=min\nregroup y, x_o",
        f"{TILED}regroup y_i, x_o\nreorder y_o, {TILE}",
        f"{TILED}regroup y_i, x_o\nreorder y_o, {TILE}stage acc at=c_o space=register -> kept\n{LANED}vectorize kept_3",
        f"{TILED}rfactor y_o 2 -> part\nregroup y_i, x_o\nreorder y_o_l, y_o_o, {TILE}permute part 4, 0, 1, 2, 3\n"
        f"stage part at=c_o space=register -> kept\n{LANED}unroll part_i\nvectorize kept_4\nparallel y_o_l",
    ],
)
@pytest.mark.parametrize(("height", "width"), [(0, 3), (1, 1), (5, 4), (9, 3)])
def test_sums(text: str, height: int, width: int) -> None:
    """Terms in another order, sums that wait in memory and are worked on in registers, parts of a sum for threads."""
    check(parse_kernel(SUMS), parse_schedule(text), {"height": height, "width": width}, height)


def test_what_is_summed_is_not_read() -> None:
    kernel = parse_kernel(
        "kernel steps(x: float32[4, 4]) -> (y: float32[1]):\n  for k in 0..1:\n    alloc acc: float32[] register\n"
        "    acc[] = 0.0f32\n    for i in 0..4:\n      for j in 0..4:\n        acc[] = fma(x[i, j], acc[], acc[])\n"
        "    y[k] = acc[]\n"
    )
    with pytest.raises(ScheduleError) as refusal:
        apply(kernel, parse_schedule("regroup i, j"))
    assert refusal.value.message == "regroup i: what it adds up is read there"


SHIFT = """
kernel shift(n: int64 in [1, inf], x: float32[n]) -> (y: float32[n]):
  for i in 0..n:
    if i > 0:
      y[i] = x[i - 1]
    else:
      y[i] = 0.0f32
"""


@pytest.mark.parametrize("text", ["stage x at=i", "stage x at=i pad=true", "split i 3\nstage x at=i_o space=heap"])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_copy_ends_where_the_buffer_does(text: str, n: int) -> None:
    check(parse_kernel(SHIFT), parse_schedule(text), {"n": n}, n)


@pytest.mark.parametrize("n", [4, 5, 8, 11])
def test_overlapping_tiles(n: int) -> None:
    text = "kernel square(n: int64 in [4, inf], x: float32[n]) -> (y: float32[n]):\n  for i in 0..n:\n"
    text += "    y[i] = x[i]*x[i]\n"
    check(parse_kernel(text), parse_schedule("split i 4 tail=overlap\nvectorize i_i"), {"n": n}, n)


BLOCK = """
kernel block(n: int64 in [0, inf], x: {T}[n, {E}, {E}]) -> (y: {T}[{E}, n, {E}], z: {T}[n, {E}, {E}]):
  for i in 0..n:
    for r in 0..{E}:
      for c in 0..{E}:
        y[c, i, r] = x[i, r, c]
  for j in 0..n:
    for d in 0..{E}:
      for s in {E}..{F}:
        z[j, {E} - 1 - d, s - {E}] = x[j, s - {E}, d]
"""


@pytest.mark.parametrize("edge", [2, 4, 16])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "float64", "bool"])
def test_transposed_blocks(edge: int, dtype: str) -> None:
    """Whichever loop is outside, and wherever the block lies."""
    kernel = parse_kernel(BLOCK.replace("{T}", dtype).replace("{E}", str(edge)).replace("{F}", str(2 * edge)))
    schedule = parse_schedule("parallel i\ntranspose r, c\ntranspose d, s")
    check(kernel, schedule, {"n": 2}, edge)
    scheduled = apply(kernel, schedule)
    assert parse_kernel(print_kernel(scheduled)) == scheduled


MASKED = """
kernel masked(n: int64 in [0, inf], x: float32[n]) -> (y: float32[n]):
  for i in 0..n:
    let half: int64 = i // 2
    alloc t: float32[2] stack
    alloc u: float32[] register
    if i % 3 == 0:
      t[0] = x[i]
      t[1] = x[half]
      u[] = t[0] + t[1]
    else:
      if x[i] > 0.0f32:
        u[] = x[i]*2.0f32
      else:
        u[] = x[n - 1 - i]
    y[i] = u[]
"""


@pytest.mark.parametrize("n", [0, 1, 5, 8, 13])
def test_conditions_become_masks(n: int) -> None:
    check(parse_kernel(MASKED), parse_schedule("split i 4\nvectorize i_i"), {"n": n}, n)


ONE_LANE = """
kernel one(n: int64 in [0, 5], x: float32[8]) -> (y: float32[6], z: float32[2, 3]):
  for q in 0..6:
    y[q] = 0.0f32
  for r in 0..2:
    for s in 0..3:
      z[r, s] = 1.0f32
  for i in 0..8:
    if i < 1:
      y[n] = x[i]*2.0f32
    if i*8 < 7:
      z[1, i*16 % 16] = x[i] - 1.0f32
      if x[i] > 0.0f32:
        z[0, n // 2] = z[1, 0] + x[i]
"""


@pytest.mark.parametrize("n", [0, 3, 5])
def test_one_lane_stores(n: int) -> None:
    """What all lanes would store to is stored by the one that is on, and by none where it is off."""
    kernel, schedule = parse_kernel(ONE_LANE), parse_schedule("vectorize i")
    check(kernel, schedule, {"n": n}, n)
    inputs = random_inputs(kernel, {"n": n}, n)
    expected = interpret(kernel, inputs, {"n": n})
    found = run_kernel(legalize(apply(kernel, schedule)), inputs, {"n": n}, guarded=True)
    assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


SKEWED = """
kernel skewed(x: float32[12], f: float32[3]) -> (y: float32[4]):
  for i in 0..4:
    alloc acc: float32[] register
    acc[] = 0.0f32
    for r in 0..3:
      if i*{S} + r >= 1:
        acc[] = acc[]*0.75f32 + x[i*{S} + r]*f[r]
    y[i] = acc[]
"""
"""The order of the terms shows in the result."""


@pytest.mark.parametrize("factor", [-2, -1, 1, 2, 3])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("rest", ["", "unroll r_i\nunroll i", "unroll r_i", "vectorize i"])
def test_skew_of_terms_by_results(factor: int, step: int, rest: str) -> None:
    kernel = parse_kernel(SKEWED.format(S=step))
    check(kernel, parse_schedule(f"reorder r, i\nskew r, i {factor}\n{rest}"), {}, abs(factor))


@pytest.mark.parametrize("factor", [1, 2])
def test_skew_of_results_by_terms(factor: int) -> None:
    check(parse_kernel(SKEWED.format(S=1)), parse_schedule(f"reorder r, i\nskew r, i 1\nskew r_i, i {factor}"), {}, 1)
    text = "kernel sums(x: float32[9], g: float32[6]) -> (y: float32[4]):\n  for s in 0..4:\n"
    text += "    alloc acc: float32[] register\n    acc[] = 0.0f32\n    for i in 0..6:\n"
    text += "      acc[] = acc[]*0.75f32 + x[i + s]*g[i]\n    y[s] = acc[]\n"
    schedule = f"split s 4 tail=exact -> s_o, s_i\nreorder s_o, s_i, i\nskew s_i, i {factor} -> j"
    kernel = parse_kernel(text)
    with pytest.raises(ScheduleError):
        apply(kernel, parse_schedule(schedule))  # what is allocated stands between the loops


def test_rows_that_are_shared_stand_together() -> None:
    """After the passes each row that is read is one branch."""
    schedule = parse_schedule("reorder r, i\nskew r, i 1\nunroll r_i\nunroll i")
    legal = print_kernel(legalize(apply(parse_kernel(SKEWED.format(S=1)), schedule)))
    reads = [line.split("x[")[1].split("]")[0] for line in legal.splitlines() if "x[" in line]
    assert len(reads) == 11
    assert reads == sorted(reads, key=int)


# Random schedules ---------------------------------------------------------------------------------


def random_schedule(rng: random.Random, kernel: Kernel) -> Schedule:
    """Return random steps of all primitives, as far as they are legal."""
    taken: list[Step] = []
    numbers = itertools.count()
    parameters = [p.name for p in kernel.parameters] or ["n"]
    limits = Limits.of(kernel)
    for _ in range(40):
        loops = loop_names(kernel)
        buffers = [o.name for o in (*kernel.buffers, *buffers_in(kernel.body))]
        drawn = Drawn(rng, loops, buffers, parameters, lambda: f"made_{next(numbers)}", lambda: rng.randint(-1, 4))
        # Parts of parts make programs that say nothing new and take long to reason about.
        step = drawn.step(without=["partition"] if any(isinstance(t, Partition) for t in taken) else [])
        try:
            after = step.run(kernel)
            limits.require(after)
        except ScheduleError:
            continue
        kernel = after
        verify(kernel)
        taken.append(step)
    return Schedule(tuple(taken))


@pytest.mark.parametrize("seed", range(24))
def test_random_schedules(seed: int) -> None:
    rng = random.Random(seed)
    if seed % 3:
        kernel, sizes = kernels.dense(rng.choice(["float32", "bfloat16", "int32"])), kernels.random_dense(rng)
    else:
        kernel = kernels.kernel(
            rng.choice([kernels.ELEMENTWISE, kernels.NORMALISE, kernels.INTEGERS, kernels.TRANSPOSE])
        )
        sizes = {"m": rng.randint(0, 6), "n": rng.randint(0, 9)}
    if seed % 2:
        kernel, sizes = specialised(kernel, sizes), {}
    if not loop_names(kernel):
        return
    check(kernel, random_schedule(rng, kernel), sizes, seed)


SUMMED = """kernel summed(x: float32[6, 8]) -> (y: float32[8]):
  for t in 0..1:
    alloc part: float32[8] stack
    for k in 0..8:
      part[k] = 0.0f32
    for i in 0..6:
      for j in 0..8:
        part[j] = part[j] + x[i, j]
    for m in 0..8:
      y[m] = part[m]
"""


def test_a_reduction_goes_inside_independent_loops() -> None:
    """Each element keeps the order of its terms."""
    check(parse_kernel(SUMMED), parse_schedule("reorder j, i"), {}, 3)


def test_a_reduction_stays_outside_loops_that_share_its_sums() -> None:
    kernel = parse_kernel(SUMMED.replace("part[j] = part[j] + x[i, j]", "part[0] = part[0] + x[i, j]"))
    with pytest.raises(ScheduleError, match="not known to be independent"):
        apply(kernel, parse_schedule("reorder j, i"))


JOINED = """
kernel joined(x: float32[6, 8]) -> (y: float32[8, 6]):
  for i in 0..6:
    for j in 0..8:
      y[j, i] = x[i, j]
"""
COUNTED = """
kernel counted(x: float32[8]) -> (y: float32[22]):
  for z in 0..22:
    y[z] = 0.0f32
  alloc p: int64[] stack
  p[] = 0
  for i in 0..8:
    y[max(0, min(p[], 21))] = x[i]
    p[] = p[] + 3
"""
NAMED = """
kernel named(x: float32[1]) -> (y: float32[5, 4], p: int64[1]):
  for i in 0..5:
    for j in 0..4:
      y[i, j] = 0.0f32
  p[0] = 7
  let q: int64 = max(0, min(p[0], 19)) // 4
  let r: int64 = max(0, min(p[0], 19)) % 4
  p[0] = 0
  y[q, r] = x[0]
"""


@pytest.mark.parametrize(
    ("text", "steps"),
    [(JOINED, "fuse i, j -> p\nsplit p 4 -> a, b\nvectorize b\nunroll a"), (COUNTED, "unroll i"), (NAMED, "")],
)
def test_indices_that_are_loaded_are_loaded_anew(text: str, steps: str) -> None:
    """What is stored in between changes where the next access goes, also in machine code."""
    kernel = parse_kernel(text)
    legal = legalize(apply(kernel, parse_schedule(steps)))
    given = {
        a.name: np.ones([int(e.value) for e in a.shape if isinstance(e, Const)], np.float32) for a in kernel.inputs
    }
    for number, array in enumerate(given.values(), 1):
        array[...] = np.arange(array.size, dtype=np.float32).reshape(array.shape) + number
    expected = interpret(kernel, given)
    for name, found in run_kernel(legal, given, {}, 1, guarded=True).items():
        assert np.array_equal(found, expected[name]), name
