"""A new primitive takes one file: its text, its reader, what it concerns, its variations and its row come of that."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Annotated, Literal

import pytest

from opgen.loop import build as b
from opgen.loop.analysis.bounds import Context
from opgen.loop.nodes import For, Kernel, Stmt
from opgen.loop.parse import parse_kernel
from opgen.loop.walk import outermost
from opgen.passes.unroll import expand
from opgen.schedule.declaration import Option, Step, Varied, form_of, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.loops import require_fresh, require_independent, require_loops, rewrite_loops
from opgen.schedule.schedule import Schedule, apply, parse_schedule
from opgen.schedule.steps import PRIMITIVES
from opgen.schedule.targets import require_target
from opgen.schedule.values import LoopName, Made
from opgen.schedule.variations import variations
from tests.schedule.differential import assert_same
from tests.schedule.random_steps import Drawn
from tools import tables

Way = Literal["up", "down"]


def rotate(kernel: Kernel, loop: str, by: int, way: Way, name: str) -> Kernel:
    """Begin an independent loop elsewhere.

    for i in 0..n: s(i)    ->    for i_r in 0..n: s((i_r + 3) % n)
    """
    require_loops(kernel, "rotate", [loop])
    require_fresh(kernel, "rotate", [name])

    def rewrite(s: For, context: Context) -> Stmt:
        require_independent(s, context, "rotate")
        place = b.mod(b.add(b.var(name), b.index(by if way == "up" else -by)), s.stop)
        return For(name, s.start, s.stop, expand(s.body, {loop: place}), s.kind)

    return rewrite_loops(kernel, loop, rewrite)


@pytest.fixture(autouse=True)
def declared() -> Iterator[type[Step]]:
    """Declare the primitive for a test."""

    @primitive("loops", "rotate i 3 way=down -> i_r", target="cpu")
    class Rotate(Step):
        """Begins a loop elsewhere."""

        loop: LoopName
        by: Annotated[int, Varied(lambda by: (by - 1, by + 1))]
        way: Annotated[Way, Option("up")]
        name: Annotated[str, Made("{loop}_r")]

        def run(self, kernel: Kernel) -> Kernel:
            seen.append(len(outermost(kernel.body)[1]))
            return rotate(kernel, self.loop, self.by, self.way, self.name)

    seen.clear()
    yield Rotate
    del PRIMITIVES["rotate"]


seen: list[int] = []
"""Number of statements of each kernel that the step was run on."""
SQUARES = "".join(f"  for i{k} in 0..7:\n    y{k}[i{k}] = x[i{k}]*x[i{k}]\n" for k in range(20))
KERNEL = f"kernel squares(x: float32[7]) -> ({', '.join(f'y{k}: float32[7]' for k in range(20))}):\n{SQUARES}"


def test_its_text_reads_back() -> None:
    assert str(parse_schedule("rotate i 3")) == "rotate i 3 way=up -> i_r\n"
    text = "rotate i -3 way=down -> j\n"
    assert str(parse_schedule(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "rotate i",
            "<schedule>:1:1: error[schedule]: rotate is not complete, or has too much\n"
            "   |\n 1 | rotate i\n   | ^^^^^^\n   = help: write rotate LOOP BY way=WAY -> NAME",
        ),
        (
            "rotate i 3 way=dwn",
            "<schedule>:1:16: error[schedule]: there is no way 'dwn'\n"
            "   |\n 1 | rotate i 3 way=dwn\n   |                ^^^\n   = help: did you mean 'down'?",
        ),
        (
            "rotate i far",
            "<schedule>:1:10: error[schedule]: 'far' is not an integer\n   |\n 1 | rotate i far\n   |          ^^^",
        ),
        (
            "rotat i 3",
            "<schedule>:1:1: error[schedule]: there is no step 'rotat'\n"
            "   |\n 1 | rotat i 3\n   | ^^^^^\n   = help: did you mean 'rotate'?",
        ),
    ],
)
def test_its_mistakes_have_a_place_and_a_remedy(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as refusal:
        parse_schedule(text)
    assert str(refusal.value) == message


def test_it_computes_the_same_and_looks_at_its_nest_alone() -> None:
    kernel, schedule = parse_kernel(KERNEL), parse_schedule("rotate i5 3\nrotate i7 -1 -> j")
    assert_same(kernel, apply(kernel, schedule), {}, 1, str(schedule))
    assert seen == [3, 3], "the nest, and a mark for those before and after it"


def test_it_is_refused_with_the_reason() -> None:
    with pytest.raises(ScheduleError) as refusal:
        apply(parse_kernel(KERNEL), parse_schedule("unroll i3\nrotate k 1"))
    assert str(refusal.value).startswith("<schedule>:2:1: error[schedule]: rotate: there is no loop 'k'")
    with pytest.raises(ScheduleError, match="the target is one of the GPUs"):
        require_target(parse_schedule("rotate i3 1"), "cuda")


def test_a_search_varies_it() -> None:
    others = [str(s) for s in variations(parse_schedule("rotate i 3"))]
    assert others == ["rotate i 2 way=up -> i_r\n", "rotate i 4 way=up -> i_r\n", ""]


def test_random_schedules_have_it() -> None:
    seed = 4
    rng = random.Random(seed)
    drawn = Drawn(rng, ["i"], ["x"], ["n"], lambda: "made", lambda: rng.randint(-9, 9))
    steps = [drawn.step(without=[c for c in PRIMITIVES if c != "rotate"]) for _ in range(4)]
    assert parse_schedule(str(Schedule(tuple(steps)))).steps == tuple(steps), f"seed {seed}"


def test_the_page_has_its_row(declared: type[Step]) -> None:
    page = tables.page(tables.PAGE.read_text(encoding="utf-8"))
    assert "| `rotate i 3 way=down -> i_r` | Begins a loop elsewhere. |\n| `skew " in page
    assert form_of(declared).usage == "rotate LOOP BY way=WAY -> NAME"
