"""Plans, kinds and their prices: what is proposed is legal and computes the same, and the cheapest is chosen."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from opgen import schedule
from opgen.loop.nodes import Binary, Const, If, Kernel
from opgen.loop.parse import parse_kernel
from opgen.loop.walk import buffers_in, loads, loops_in, skeleton, walk_expr
from opgen.machine import Machine, typical
from opgen.machine.model import Cache
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.passes.unroll import constant_extent
from opgen.runtime.kernels.run import run_kernel
from opgen.schedule.auto import choose, overrides
from opgen.schedule.auto.choose import Candidate, Choice, Chooser
from opgen.schedule.auto.design import Design
from opgen.schedule.auto.kinds import registry
from opgen.schedule.auto.kinds.kind import Kind
from opgen.schedule.auto.nests import nests
from opgen.schedule.auto.overrides import Override, is_before
from opgen.schedule.auto.plan import Cut, Operand, Plan, Private, Result
from opgen.schedule.auto.price import Price, Prices
from opgen.schedule.auto.site import Site, lanes_of
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import apply, parse_schedule
from opgen.schedule.steps import Partition
from opgen.schedule.why import choices, why
from tests.schedule.differential import assert_same
from tests.schedule.kernels import kernel as kernel_from
from tests.support.machines import tiny_caches
from tests.support.plain_ops import DTYPES, Shapes, few_bits, kernel_of, shapes_across, shapes_of_rows

MOVED = ("Transpose", "TransposeAdd", "TransposeBias", "FlipOrder", "ToChannelsFirst", "ToChannelsLast")
SUMMED = ("SumFirst", "MaxFirst", "BiasGrad", "AvgPoolAll", "VecMat")


def names_of(kernel: Kernel, machine: Machine) -> list[str]:
    """The kinds of the plans that are chosen, nest by nest."""
    return [c.chosen.plan.kind for c in choices(kernel, machine) if c.chosen is not None]


# A new kind ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SideBySide:
    """Several vectors of a row in one iteration of a loop."""

    name: str = "side by side"

    def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
        vector = site.roles.lanes
        if vector is None or not site.roles.known or site.nest.inner_loops:
            return
        extent, lanes = site.nest.extent(vector) or 1, lanes_of(site.nest, machine, None)
        for vectors in (2, 4):
            if extent % (vectors * lanes):
                continue
            piece, several, lane = f"{vector}.i", f"{vector}.v", f"{vector}.l"
            others = tuple(n for n in site.nest.names if n != vector)
            yield Plan(
                self.name,
                lane,
                cuts=(Cut(vector, vectors * lanes, f"{vector}.o", piece), Cut(piece, lanes, several, lane)),
                order=(*others, f"{vector}.o"),
                tile=(several,),
                threads=(*others, f"{vector}.o")[:2],
            )


def test_a_new_kind_is_registered_proposed_priced_and_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: Shapes = {"x": (40, 256), "row": (40,), "column": (256,)}
    kernel, _ = kernel_of("Blend", shapes)
    assert names_of(kernel, typical()) == ["elementwise"]
    new: Kind = SideBySide()
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, new))
    (choice,) = choices(kernel, typical())
    assert [c.plan.kind for c in choice.ranked] == ["side by side", "side by side", "elementwise"]
    assert [len(c.plan.cuts) for c in choice.ranked if isinstance(c.plan, Plan)] == [2, 2, 1]
    assert choice.chosen is not None
    assert isinstance(choice.chosen.plan, Plan)
    assert choice.chosen.plan.cuts[0] == Cut("j", 64, "j.o", "j.i")
    schedule, after = scheduled(kernel, "cpu", typical())
    assert "split j 64 tail=exact -> j_o, j_i\nsplit j_i 16 tail=exact -> j_v, j_l\n" in str(schedule)
    arrays = few_bits(shapes, "float32", 1)
    (expected,), (found,) = (run_kernel(legalize(k), arrays, {}, 1).values() for k in (kernel, after))
    assert np.array_equal(found, expected)


# All that is proposed ----------------------------------------------------------------------------------


def a_machine(rng: random.Random) -> Machine:
    usual = rng.choice([typical(), tiny_caches()])
    far = Cache(1 << 14, 16, 64, 96e9) if rng.random() < 0.3 else usual.l3
    return replace(usual, vector_bytes=rng.choice([64, 64, 32, 16]), l3=far)


@pytest.mark.parametrize("name", [*MOVED, *SUMMED, "Blend"])
@pytest.mark.parametrize("seed", range(3))
def test_all_that_stands_to_choice_computes_the_same(name: str, seed: int) -> None:
    rng = random.Random(f"{seed} {name}")
    machine, dtype = a_machine(rng), rng.choice(DTYPES)
    if name == "Blend":
        rows, columns = rng.choice([1, 3, 40]), rng.choice([5, 16, 33, 64])
        shapes: Shapes = {"x": (rows, columns), "row": (rows,), "column": (columns,)}
    else:
        shapes = shapes_across(name, rng) if name in MOVED else shapes_of_rows(name, rng)
    kernel, values = kernel_of(name, shapes, dtype)
    arrays = few_bits(shapes, dtype, seed)
    (expected,) = run_kernel(legalize(kernel), arrays, values, 1).values()
    for choice in choices(kernel, machine):
        for candidate in choice.ranked:
            (found,) = run_kernel(legalize(candidate.trial.kernel), arrays, values, 2, guarded=True).values()
            same = np.array_equal(found.view(np.uint8), expected.view(np.uint8))
            assert same, f"seed {seed}, {name} {shapes} {dtype}: {candidate.plan}"


@pytest.mark.parametrize("name", [*MOVED, *SUMMED])
def test_what_is_told_is_what_is_done(name: str) -> None:
    """The cheapest is chosen, priced or not; its steps are those of the schedule."""
    rng = random.Random(name)
    for _ in range(4):
        shapes, machine = shapes_across(name, rng) if name in MOVED else shapes_of_rows(name, rng), a_machine(rng)
        kernel, _ = kernel_of(name, shapes)
        (choice,) = choices(kernel, machine)
        assert choice.chosen is next(iter(choice.ranked), None)
        prices = [c.price.seconds for c in choice.ranked if not c.plan.otherwise]
        assert prices == sorted(prices)
        text = "".join(f"{s}\n" for s in choice.steps)
        assert choice.chosen is None or str(scheduled(kernel, "cpu", machine)[0]) == text, f"{name} {shapes}"


@pytest.mark.parametrize(
    ("name", "shapes", "kind"),
    [
        ("Transpose", {"x": (100, 64)}, "transposed"),
        ("Blend", {"x": (8, 64), "row": (8,), "column": (64,)}, "elementwise"),
        ("LogSumExp", {"x": (7, 3000)}, "rows"),
        ("SumFirst", {"x": (64, 64)}, "columns"),
    ],
)
def test_kinds_by_what_nests_access(name: str, shapes: Shapes, kind: str) -> None:
    assert names_of(kernel_of(name, shapes)[0], typical())[-1] == kind


# Prices --------------------------------------------------------------------------------------------------


def price_of(kernel: Kernel, text: str, machine: Machine) -> Price:
    nest = nests(kernel)[0]
    return Prices(kernel, nest, machine).of(apply(kernel, parse_schedule(text)))


def test_lanes_and_partial_sums_pay() -> None:
    blend, _ = kernel_of("Blend", {"x": (64, 64), "row": (64,), "column": (64,)})
    lanes = "split j 16 tail=exact -> j_o, j_l\nvectorize j_l\n"
    assert 4 * price_of(blend, lanes, typical()).seconds < price_of(blend, "", typical()).seconds
    sums, _ = kernel_of("LogSumExp", {"x": (2, 25600)})
    one = "rfactor top_j 16 -> part\nvectorize top_j_l\n"
    assert 2 * price_of(sums, one, typical()).compute < price_of(sums, "", typical()).compute


def test_a_tile_of_sums_pays_by_fewer_loads() -> None:
    product, _ = kernel_of("VecMat", {"a": (256,), "b": (256, 256)})
    lanes = "split j 16 tail=exact -> j_o, j_l\nvectorize j_l\n"
    tile = (
        "split j 64 tail=exact -> j_o, j_i\nsplit j_i 16 tail=exact -> j_v, j_l\n"
        "reorder j_o, k, j_v, j_l\nunroll j_v\nvectorize j_l\n"
    )
    assert price_of(product, tile, typical()).compute < price_of(product, lanes, typical()).compute


def test_loops_of_other_nests_and_around_do_not_count() -> None:
    kernel, _ = kernel_of("LogSumExp", {"x": (64, 640)})
    first, second = nests(kernel)
    whole = [Prices(kernel, n, typical()).of(kernel).seconds for n in (first, second)]
    assert whole == [
        Prices(apply(kernel, parse_schedule("parallel i\n")), first, typical()).of(kernel).seconds,
        whole[1],
    ]
    assert str(Price(2e-6, 1e-6, first=1e-5)) == "4.0 us (compute 2.0, entered 1.0, L1 10.0)"
    assert str(Price()) == "0.0 us (next to nothing)"


# What is printed -------------------------------------------------------------------------------------------


def test_plans_print() -> None:
    plan = Plan(
        "any",
        "k.l",
        joins=("y*x",),
        cuts=(Cut("y*x", 6, "y*x.o", "y*x.i", "min"), Cut("k", 16, "k.o", "k.l")),
        order=("k.o", "y*x.o"),
        terms=("c",),
        tile=("y*x.i",),
        private=(Private("c", 64, "acc", 16, 4),),
        operands=(Operand("w", "panel", (1, 0), "k.o"), Operand("x", "copy", (0, 1))),
        results=(Result("out", (1, 0), "k.o"), Result("other", non_temporal=True)),
        threads=("k.o",),
    )
    assert str(plan) == (
        "lanes k.l | join y*x | cut y*x by 6 -> y*x.o, y*x.i (min), k by 16 -> k.o, k.l | order k.o, y*x.o | terms c | "
        "tile y*x.i | partial sums c in up to 4 vectors of 16 | w panel at k.o [1, 0] | x copy [0, 1] | "
        "out transposed at k.o | other non-temporal | threads k.o"
    )


def test_why_tells_all_candidates_and_why_others_are_none() -> None:
    kernel, _ = kernel_of("Blend", {"x": (40, 60), "row": (40,), "column": (60,)})
    text = why(kernel, typical())
    first, *rest = text.splitlines()
    assert first == "nest over i, j: 2 candidates"
    assert [line.split()[1] for line in rest] == ["elementwise:", "elementwise:"]
    assert rest[0].endswith("(overlap) | order i, j.o | threads i  <- chosen")


def test_refusals_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Wrong:
        name: str = "wrong"

        def plans(self, site: Site, machine: Machine) -> Iterator[Plan]:
            yield Plan(self.name, cuts=(Cut("j", 7, "j.o", "j.i"),), order=("i", "j.o", "j.i"))

    monkeypatch.setattr(registry, "KINDS", (Wrong(), *registry.KINDS))
    kernel, _ = kernel_of("Blend", {"x": (40, 64), "row": (40,), "column": (64,)})
    (choice,) = choices(kernel, typical())
    assert isinstance(choice, Choice)
    assert choice.chosen is choice.ranked[0]
    assert choice.chosen.plan.kind == "elementwise"
    assert why(kernel, typical()).splitlines()[-2:] == [
        "   - wrong: cut j by 7 -> j.o, j.i | order i, j.o, j.i",
        f"     refused: {choice.refused[0].refusal}",
    ]
    assert choice.refused[0].refusal.startswith("split j 7 tail=exact -> j_o, j_i: ")


def test_overrides_go_before_what_is_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _ = kernel_of("Blend", {"x": (40, 256), "row": (40,), "column": (256,)})
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, SideBySide()))
    assert names_of(kernel, typical()) == ["side by side"]
    monkeypatch.setattr(overrides, "OVERRIDES", (Override("elementwise", ("side by side",), "an entry"),))
    assert is_before("elementwise", "side by side")
    assert not is_before("side by side", "elementwise")
    (choice,) = choices(kernel, typical())
    assert [c.beaten for c in choice.ranked] == [False, True, True]
    assert names_of(kernel, typical()) == ["elementwise"]


def test_overrides_do_not_hold_against_what_costs_far_less(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, _ = kernel_of("Blend", {"x": (40, 256), "row": (40,), "column": (256,)})
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, SideBySide()))
    (choice,) = choices(kernel, typical())
    costs = [min(c.price.seconds for c in choice.ranked if c.plan.kind == k) for k in ("side by side", "elementwise")]
    for share, kind in ((1.01 * costs[0] / costs[1], "side by side"), (0.99 * costs[0] / costs[1], "elementwise")):
        override = Override("elementwise", ("side by side",), "an entry", share)
        monkeypatch.setattr(overrides, "OVERRIDES", (override,))
        assert not is_before("elementwise", "side by side")
        assert names_of(kernel, typical()) == [kind]


def test_overrides_name_kinds_and_entries_of_the_log() -> None:
    log = (Path(schedule.__file__).parent / "EXPERIMENTS.md").read_text()
    names = {kind.name for kind in registry.KINDS}
    for override in overrides.OVERRIDES:
        assert {override.kind, *override.before} <= names, override
        assert f"\n## {override.measured} " in log, override


def test_overrides_name_kinds_that_are_asked_later() -> None:
    """Of a kind that was asked before, a plan stands already when one comes that should go before it."""
    asked = {kind.name: place for place, kind in enumerate(registry.KINDS)}
    for override in overrides.OVERRIDES:
        assert all(asked[name] >= asked[override.kind] for name in override.before), override


# Contractions ----------------------------------------------------------------------------------------------


def product(rows: int, terms: int, columns: int, a: str = "i, k", b: str = "k, j", dtype: str = "float32") -> Kernel:
    sizes = {"i": rows, "j": columns, "k": terms}
    shapes = [", ".join(str(sizes[n]) for n in order.split(", ")) for order in (a, b)]
    zero = {"float32": "0.0f32", "float64": "0.0f64"}[dtype]
    text = f"""
        kernel product(a: {dtype}[{shapes[0]}], b: {dtype}[{shapes[1]}]) -> (c: {dtype}[{rows}, {columns}]):
            for i in 0 .. {rows}:
                for j in 0 .. {columns}:
                    alloc acc: {dtype}[] register
                    acc[] = {zero}
                    for k in 0 .. {terms}:
                        acc[] = fma(a[{a}], b[{b}], acc[])
                    c[i, j] = acc[]
    """
    return kernel_from(dedent(text).strip())


@pytest.mark.parametrize("seed", range(3))
def test_all_kinds_of_products_compute_the_same(seed: int) -> None:
    """Legal ones, whether their sizes are such that they are worth it or not."""
    rng = random.Random(seed)
    machine, dtype = replace(a_machine(rng), latency=rng.choice([4, 8])), rng.choice(["float32", "float64"])
    rows, terms, columns = rng.choice([1, 7, 12, 40]), rng.choice([1, 16, 60]), rng.choice([16, 64, 128, 150])
    a, b = rng.choice(["i, k", "k, i"]), rng.choice(["k, j", "k, j", "j, k"])
    kernel = product(rows, terms, columns, a, b, dtype)
    arrays = few_bits(
        {x.name: tuple(int(e.value) for e in x.shape if isinstance(e, Const)) for x in kernel.inputs}, dtype, seed
    )
    (expected,) = run_kernel(legalize(kernel), arrays, {}, 1).values()
    for choice in choices(kernel, machine):
        for candidate in choice.ranked:
            (found,) = run_kernel(legalize(candidate.trial.kernel), arrays, {}, 2, guarded=True).values()
            told = f"seed {seed}, {rows} {terms} {columns} {a} {b} {dtype}: {candidate.plan.kind} {candidate.plan}"
            assert np.array_equal(found, expected), told


def kinds_of(choice: Choice) -> list[str]:
    return list(dict.fromkeys(c.plan.kind for c in choice.ranked if not c.plan.otherwise))


def test_kinds_of_contractions_are_compared_by_price(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, kernel = replace(typical(64), latency=8), product(196, 128, 512)
    (choice,) = choices(kernel, machine)
    assert {"products", "nest"} <= set(kinds_of(choice))
    assert choice.chosen is not None
    assert choice.chosen.plan.kind == "products"
    cheap = Price(1e-9)
    right = Prices.of
    monkeypatch.setattr(Prices, "of", lambda self, after: cheap if is_tile(after) else right(self, after))
    monkeypatch.setattr(choose, "ENOUGH", 0)
    assert names_of(kernel, machine) == ["nest"]
    monkeypatch.setattr(overrides, "OVERRIDES", (Override("products", ("nest", "columns"), "an entry"),))
    assert names_of(kernel, machine) == ["products"]


def is_tile(kernel: Kernel) -> bool:
    """Whether a product has no panel of four vectors."""
    return not any(b.name.endswith("_panel") for b in buffers_in(kernel.body))


def test_a_plan_near_the_time_of_the_arithmetic_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, kernel = replace(typical(64), latency=8), product(196, 256, 1024)
    asked: list[str] = []
    right = Chooser._made

    def made(self: Chooser, plan: Plan | Design, beaten: bool) -> Candidate:
        asked.append(plan.kind)
        return right(self, plan, beaten)

    monkeypatch.setattr(Chooser, "_made", made)
    monkeypatch.setattr(overrides, "OVERRIDES", ())
    scheduled(kernel, "cpu", machine)
    assert asked[-1] == "products"
    asked.clear()
    monkeypatch.setattr(choose, "ENOUGH", 0)
    scheduled(kernel, "cpu", machine)
    assert "nest" in asked


PIECES = {
    "a choice between tensors": (
        "kernel join(a: float32[40, 90], b: float32[40, 53]) -> (y: float32[40, 143]):\n"
        "  for i in 0..40:\n    for j in 0..143:\n"
        "      alloc p: float32[] register\n      alloc q: float32[] register\n"
        "      if j < 90:\n        p[] = a[i, j]\n      else:\n        p[] = 0.0f32\n"
        "      if j >= 90:\n        q[] = b[i, j - 90]\n      else:\n        q[] = 0.0f32\n"
        "      y[i, j] = select(j < 90, p[], q[])\n",
        1,
    ),
    "forth, then back": (
        "kernel reflect(x: float32[160, 50]) -> (y: float32[160, 80]):\n"
        "  for i in 0..160:\n    for j in 0..80:\n"
        "      y[i, j] = x[i, min((j - 20) % 98, 98 - (j - 20) % 98)]\n",
        2,
    ),
    "a torus": (
        "kernel torus(x: float32[40, 50]) -> (y: float32[40, 50]):\n"
        "  for i in 0..40:\n    for j in 0..50:\n"
        "      y[i, j] = x[i, (j - 1) % 50] + x[i, (j + 1) % 50] + x[(i - 1) % 40, (j + 2) % 50]\n",
        2,
    ),
    "a choice of places": (
        "kernel chosen(x: float32[40, 50]) -> (y: float32[40, 50]):\n"
        "  for i in 0..40:\n    for j in 0..50:\n"
        "      y[i, j] = x[i, select(j == 0, 49, j - 1)] + x[i, select(j < 49, j + 1, 0)]\n",
        2,
    ),
}


@pytest.mark.parametrize("name", PIECES)
def test_what_is_made_otherwise_from_some_place_on_is_cut(name: str) -> None:
    text, cuts = PIECES[name]
    kernel = simplify(parse_kernel(text))
    after = scheduled(kernel, "cpu", typical(32))[1]
    assert sum(isinstance(s, Partition) for s in scheduled(kernel, "cpu", typical(32))[0].steps) == cuts
    assert len(nests(after)) == cuts + 1
    assert not any(isinstance(s, If) for nest in nests(after) for s in skeleton(nest.core))
    assert_same(kernel, after, {}, 0, name)


@pytest.mark.parametrize("terms", [3, 4, 7])
def test_sums_of_short_rows_have_lanes_across_rows(terms: int) -> None:
    kernel = parse_kernel(
        f"kernel short(x: float32[9, 40, {terms}]) -> (y: float32[9, 40]):\n"
        "  for i in 0..9:\n    for j in 0..40:\n      alloc acc: float32[] register\n      acc[] = 0.0f32\n"
        f"      for k in 0..{terms}:\n        acc[] = acc[] + x[i, j, k]\n      y[i, j] = acc[]\n"
    )
    after = scheduled(kernel, "cpu", typical(64))[1]
    assert [constant_extent(s) for s in loops_in(after.body) if s.kind == "vector"][:1] == [16]
    assert_same(kernel, after, {}, 0, f"{terms} terms")


@pytest.mark.parametrize("step", [2, 3, 8])
def test_quotients_have_vectors_for_each_result(step: int) -> None:
    kernel = parse_kernel(
        f"kernel larger(x: float32[20, 50]) -> (y: float32[20, {50 * step}]):\n"
        f"  for i in 0..20:\n    for j in 0..{50 * step}:\n"
        f"      y[i, j] = select(j % {step} == 0, x[i, j // {step}], 2.0f32 * x[i, j // {step}])\n"
    )
    assert names_of(kernel, typical(64)) == ["strides"]
    after = scheduled(kernel, "cpu", typical(64))[1]
    kinds = {s.kind: constant_extent(s) for s in loops_in(after.body)}
    assert (kinds["unroll"], kinds["vector"]) == (step, 16)
    assert_same(kernel, after, {}, 0, f"{step} results of an element")


def test_no_remainder_is_left_in_lanes() -> None:
    kernel = simplify(parse_kernel(PIECES["a torus"][0]))
    after = scheduled(kernel, "cpu", typical(32))[1]
    lanes = [s for s in loops_in(after.body) if s.kind == "vector" and constant_extent(s) == 8]
    indices = [i for s in lanes for e in loads(s) for i in e.indices[1:]]
    assert len(indices) == 3
    assert not any(isinstance(e, Binary) and e.op == "mod" for i in indices for e in walk_expr(i))


@pytest.mark.parametrize("rows", [16, 13])
def test_short_recurrences_of_several_rows_go_on_together(rows: int) -> None:
    kernel = parse_kernel(
        f"kernel sums(x: float32[{rows}, 30]) -> (y: float32[{rows}, 31]):\n"
        f"  for i in 0..{rows}:\n    y[i, 0] = 0.0f32\n"
        f"  for r in 0..{rows}:\n    ordered for t in 0..30:\n      y[r, t + 1] = y[r, t] + x[r, t]\n"
    )
    after = scheduled(kernel, "cpu", typical(32))[1]
    steps = next(s for s in loops_in(after.body) if s.kind == "ordered")
    assert [(s.kind, s.stop) for s in loops_in(steps.body)] == [("unroll", Const(8))]
    assert_same(kernel, after, {}, 0, f"{rows} rows")
