"""Schedules as text: what prints reads back, and mistakes have a place."""

from __future__ import annotations

import random

import pytest

from opgen.schedule.errors import ScheduleError
from opgen.schedule.schedule import Schedule, parse_schedule
from opgen.schedule.steps import PRIMITIVES
from tests.schedule.random_steps import Drawn
from tools import tables

EVERY_STEP = """\
split x 14 tail=min -> x_o, x_i
split k 16 tail=overlap -> k_block, k_lane
reorder n, y, x_o, k_block, r, s, c, x_i, k_lane
fuse n, y -> n_y
merge n_y, m
fission d -> d_1, d_2
skew r, y_i -2 -> r_y
own i 64 -> i_owner
unroll x_i
vectorize k_lane
parallel n_y
bind x_o block.x
stage input at=x_o space=register pad=true -> input_local
pack filter 0, 1, 3, 2 at=x_o -> panel
pack filter 0, 1, 3, 2 in=x_o -> turned
pad input 1, 2 -> input_padded
permute sums 2, 0, 1
pitch sums 1 65
ring states 0 2
tabulate scale n, c -> scale_table
tabulate scale n, c join=true -> joined
recode x -> x_recoded
distribute c -> x_sums, w_sums
pair c -> x, w_pairs
tensorize x_i, k_i, c_i -> tiles
transpose x_i, k_lane
separate s -> first
prefix t 16 -> running
relay t 4096 -> t_o, before
regroup y_i, x_o
carry r at=n_y
share j 32 at=i space=heap -> part
share j 4096 space=shared -> part
prefetch input at=y in=c
fill panel in=x_i
stream output
compute_at weight at=n_y space=heap again=true
partition x_o 1, -1
partition x_o -2
partition x_o -1 -> left
tighten r
"""


def test_text_reads_back() -> None:
    schedule = parse_schedule(EVERY_STEP)
    assert str(schedule) == EVERY_STEP
    assert parse_schedule(str(schedule)) == schedule


def test_what_is_left_out_has_a_default() -> None:
    text = "split x 4  # tiles\n\nfuse n y\nskew r y 1\nstage input at=y\ncompute_at w at=y\n"
    assert str(parse_schedule(text)) == (
        "split x 4 tail=guard -> x_o, x_i\nfuse n, y -> n_y\nskew r, y 1 -> r_y\n"
        "stage input at=y space=stack pad=false -> input_local\n"
        "compute_at w at=y space=heap again=false\n"
    )


@pytest.mark.parametrize("seed", range(50))
def test_any_schedule_reads_back(seed: int) -> None:
    rng = random.Random(seed)
    names = ["x", "y_o", "n", "c3", "_tile"]
    drawn = Drawn(rng, names, names, names, lambda: rng.choice(names), lambda: rng.randint(-99, 99))
    schedule = Schedule(tuple(drawn.step() for _ in range(rng.randint(0, 20))))
    assert parse_schedule(str(schedule)) == schedule, f"seed {seed}\n{schedule}"


MISTAKES = {
    "splt x 4\n": (
        "<schedule>:1:1: error[schedule]: there is no step 'splt'\n"
        "   |\n"
        " 1 | splt x 4\n"
        "   | ^^^^\n"
        "   = help: did you mean 'split'?"
    ),
    "unroll y\nsplit x four\n": (
        "<schedule>:2:9: error[schedule]: 'four' is not an integer\n   |\n 2 | split x four\n   |         ^^^^"
    ),
    "split x 4 tail=gard\n": (
        "<schedule>:1:16: error[schedule]: there is no tail 'gard'\n"
        "   |\n"
        " 1 | split x 4 tail=gard\n"
        "   |                ^^^^\n"
        "   = help: did you mean 'guard'?"
    ),
    "split x\n": (
        "<schedule>:1:1: error[schedule]: split is not complete, or has too much\n"
        "   |\n"
        " 1 | split x\n"
        "   | ^^^^^\n"
        "   = help: write split LOOP FACTOR tail=TAIL -> OUTER, INNER"
    ),
    "unroll x by=3\n": (
        "<schedule>:1:13: error[schedule]: unroll has no option 'by'\n"
        "   |\n"
        " 1 | unroll x by=3\n"
        "   |             ^\n"
        "   = help: write unroll LOOP"
    ),
    "unroll x ; y\n": (
        "<schedule>:1:10: error[schedule]: ';' is not expected here\n   |\n 1 | unroll x ; y\n   |          ^"
    ),
    "stage input space=stack\n": (
        "<schedule>:1:1: error[schedule]: stage needs the loop at which to make the copy\n"
        "   |\n"
        " 1 | stage input space=stack\n"
        "   | ^^^^^\n"
        "   = help: write stage BUFFER at=LOOP space=SPACE pad=true -> NAME"
    ),
    "stage input at=y space=local\n": (
        "<schedule>:1:24: error[schedule]: there is no space 'local'\n"
        "   |\n"
        " 1 | stage input at=y space=local\n"
        "   |                        ^^^^^\n"
        "   = help: it is one of heap, stack, register"
    ),
    "reorder x\n": (
        "<schedule>:1:1: error[schedule]: reorder is not complete, or has too much\n"
        "   |\n"
        " 1 | reorder x\n"
        "   | ^^^^^^^\n"
        "   = help: write reorder LOOP, LOOP, ..."
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_has_a_place_and_a_remedy(text: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule(text)
    assert str(refusal.value) == MISTAKES[text]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("split j 4 -> 3, j_i", "3"),
        ("fuse i, j -> thread.x", "thread.x"),
        ("pack x 1, 0 in=j -> a.b", "a.b"),
        ("partition j -1 -> -9", "-9"),
    ],
)
def test_what_is_made_has_a_name(text: str, word: str) -> None:
    with pytest.raises(ScheduleError, match=f"'{word}' is not a name"):
        parse_schedule(text)


def test_the_page_has_all_steps_as_they_are_declared() -> None:
    page = tables.PAGE.read_text(encoding="utf-8")
    assert tables.page(page) == page, "run python -m tools.tables"
    assert all(f"| `{command} " in page for command in PRIMITIVES)


def test_examples_of_steps_are_steps() -> None:
    for command, declared in PRIMITIVES.items():
        for text in declared.examples:
            (step,) = parse_schedule(text).steps
            assert type(step) is PRIMITIVES[command]
            assert str(step) == text
