"""Schedules as text: what prints reads back, and mistakes have a place."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from opgen.schedule.errors import ScheduleError
from opgen.schedule.parse import COMMANDS
from opgen.schedule.schedule import Schedule, parse_schedule
from opgen.schedule.steps import (
    Bind,
    Distribute,
    Fission,
    Flatten,
    Fuse,
    Merge,
    Own,
    Pack,
    Pad,
    Pair,
    Parallel,
    Partition,
    Permute,
    Pitch,
    Prefix,
    Recode,
    Regroup,
    Relay,
    Reorder,
    Ring,
    Separate,
    Share,
    Skew,
    Split,
    Stage,
    Step,
    Tabulate,
    Tensorize,
    Tighten,
    Transpose,
    Unroll,
    Vectorize,
)

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


def random_step(rng: random.Random) -> Step:
    def name() -> str:
        return rng.choice(["x", "y_o", "n", "c3", "_tile"])

    cuts = tuple(rng.randint(-4, 4) for _ in range(rng.randint(1, 2)))
    return rng.choice(
        [
            Split(name(), rng.randint(1, 99), rng.choice(("guard", "min", "overlap", "exact")), name(), name()),
            Reorder(tuple(name() for _ in range(rng.randint(2, 6)))),
            Fuse(name(), name(), name()),
            Flatten(name(), name(), name()),
            Merge(name(), name()),
            Fission(name(), tuple(name() for _ in range(rng.randint(0, 2)))),
            Skew(name(), name(), rng.randint(-3, 3), name()),
            Own(name(), rng.randint(2, 99), name()),
            Share(name(), rng.randint(2, 99), name(), rng.choice((None, name()))),
            Unroll(name()),
            Vectorize(name()),
            Parallel(name()),
            Bind(name(), rng.choice(("block.x", "thread.z"))),
            Stage(name(), name(), rng.choice(("heap", "stack", "register")), rng.random() < 0.5, name()),
            Pack(name(), (1, 0, 2), name(), rng.choice((None, name()))),
            Pad(name(), (1, 2), name()),
            Permute(name(), (1, 0)),
            Pitch(name(), rng.randint(0, 3), rng.randint(1, 99)),
            Tabulate(name(), tuple(name() for _ in range(rng.randint(1, 3))), name(), rng.random() < 0.5),
            Ring(name(), rng.randint(0, 3), rng.randint(1, 99)),
            Pair(name(), name(), name()),
            Recode(name(), name()),
            Distribute(name(), name(), name()),
            Separate(name(), name()),
            Tensorize(name(), name(), name(), name()),
            Transpose(name(), name()),
            Regroup(name(), name()),
            Prefix(name(), rng.randint(1, 64), name()),
            Relay(name(), rng.randint(1, 99), name(), name()),
            Partition(name(), cuts),
            Tighten(name()),
        ]
    )


@pytest.mark.parametrize("seed", range(50))
def test_any_schedule_reads_back(seed: int) -> None:
    rng = random.Random(seed)
    schedule = Schedule(tuple(random_step(rng) for _ in range(rng.randint(0, 12))))
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
    with pytest.raises(ScheduleError, match=f"'{word}' is no name"):
        parse_schedule(text)


def test_every_step_stands_in_the_table_of_steps() -> None:
    page = (Path(__file__).parents[2] / "specs" / "SCHEDULES.md").read_text(encoding="utf-8")
    assert set(COMMANDS) == {c for row in re.findall(r"^\| (`.*?) \|", page, re.M) for c in re.findall(r"`(\w+) ", row)}
