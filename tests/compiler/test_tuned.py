"""Tuned schedules: found, kept, preferred, and ignored where they no longer apply."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from opgen.compiler import sharing, toolchain, tuned
from opgen.compiler.request import Compilation
from opgen.loop.nodes import Binary, Const, Store
from opgen.loop.parse import parse_kernel
from opgen.loop.walk import map_stmt
from opgen.runtime.call import specialize
from opgen.runtime.kernels.kernel import CompiledKernel
from opgen.runtime.measuring import diagnosis, tuner
from opgen.schedule.auto.decisions import Decisions
from opgen.schedule.default import default_schedule
from opgen.schedule.schedule import Schedule, apply
from opgen.schedule.variations import variations
from tests.support.variations import another, entry, kernel


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty database."""
    path = tmp_path / "kept" / "tuned.jsonl"
    monkeypatch.setenv("OPGEN_TUNED", str(path))
    return path


def test_a_kept_schedule_is_preferred_and_forgotten() -> None:
    given, host = kernel(), toolchain.host()
    default = default_schedule(given, "cpu", host.machine)
    assert tuned.scheduled(given, host)[0] == default
    other = another(given)
    tuned.store(entry(given, other))
    schedule, after = tuned.scheduled(given, host)
    assert schedule == other
    assert after == apply(given, other)
    renamed = dataclasses.replace(given, name="another_name")
    assert tuned.scheduled(renamed, host)[0] == other
    assert specialize.build(Compilation(given, host)).kernel != specialize.build(Compilation(renamed, host)).kernel
    assert tuned.forget("Op") == 1
    assert tuned.entries() == ()
    assert tuned.scheduled(given, host)[0] == default


def test_another_cpu_has_schedules_of_its_own() -> None:
    given, host = kernel(), toolchain.host()
    tuned.store(entry(given, another(given)))
    other = dataclasses.replace(host, cpu="another")
    assert tuned.scheduled(given, other)[0] == default_schedule(given, "cpu", other.machine)


def test_the_digest_follows_what_is_used() -> None:
    given = kernel()
    assert tuned.digest() == ""
    tuned.store(entry(given, another(given)))
    first = tuned.digest()
    assert first != ""
    tuned.store(dataclasses.replace(entry(given, another(given)), refused="no"))
    assert tuned.digest() == ""


def test_a_schedule_that_no_longer_applies_is_ignored_with_a_note() -> None:
    given, host = kernel(), toolchain.host()
    wrong = dataclasses.replace(entry(given, another(given)), schedule=("unroll no_such_loop",))
    tuned.store(wrong)
    for _ in range(2):
        assert tuned.scheduled(given, host)[0] == default_schedule(given, "cpu", host.machine)
    (kept,) = tuned.entries()
    assert "no_such_loop" in kept.refused
    found = dict(diagnosis.describe())
    assert found["tuned"].startswith("1 schedule (")
    assert found["tuned"].endswith("; 1 no longer applied and ignored (opgen tune --list)")


def test_lines_that_are_no_entries_are_passed_over(file: Path) -> None:
    given = kernel()
    right = entry(given, another(given))
    file.parent.mkdir(parents=True)
    fields = dataclasses.asdict(right)
    lines = ["", "no json", "[]", '{"key": 1}', json.dumps(fields), "\x00"]
    wrong = {"key": 1, "call": " ", "cpu": None, "threads": "2", "default_us": None, "refused": [], "schedule": [1]}
    lines += [json.dumps({**fields, "key": f"other {name}", name: value}) for name, value in wrong.items()]
    file.write_text("\n".join(lines))
    assert tuned.entries() == (right,)
    file.write_bytes(b"\xff\xfe")
    assert tuned.entries() == ()


@pytest.mark.parametrize("word", ["off", "0", "no"])
def test_it_can_be_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_TUNED", word)
    assert tuned.place() is None
    assert tuned.entries() == ()
    assert tuned.finding() == "off"


def test_a_search_ends_in_time_with_a_legal_schedule() -> None:
    given = kernel()
    found = tuner.tune(given, (), toolchain.host(), 4, seed=4)
    assert found.tried > 0
    assert found.default > 0
    apply(given, found.schedule)


def test_the_scheduler_is_asked_to_decide_otherwise() -> None:
    """A kind of nest that no change of one step leads to comes first."""
    given, machine = kernel(), toolchain.host().machine
    search = tuner._Search(given, machine, tuner.decided(given, machine, Decisions()), 0)
    first = search.next(float("inf"))
    assert first is not None
    assert str(first.schedule) not in map(str, variations(default_schedule(given, "cpu", machine)))
    assert first.decisions is not None
    assert first.schedule == tuner.decided(given, machine, Decisions(first.decisions.path)).schedule


@pytest.mark.parametrize(("ratio", "better"), [(0.5, True), (1.0, False)])
def test_a_given_schedule_is_tried_first(monkeypatch: pytest.MonkeyPatch, ratio: float, better: bool) -> None:
    """With no time left for others, and timings as planted."""
    monkeypatch.setattr(tuner, "_ratio", lambda *_: ratio)
    given = Schedule()
    found = tuner.tune(kernel(), (), toolchain.host(), 0, given=given)
    assert (found.tried, found.better, found.given) == (1, better, ratio * found.default)
    assert (found.schedule == given) == better


ROWS = """
kernel doubled(x: float32[64, 256]) -> (y: float32[64, 256]):
  for i in 0..64:
    for j in 0..256:
      y[i, j] = x[i, j] + x[i, j]
"""
"""Rows that any machine's default schedule shares out."""


@pytest.mark.parametrize(("worth", "parallel"), [(0.0, True), (1.0, False)])
def test_schedules_are_timed_by_as_many_threads_as_calls_take(
    monkeypatch: pytest.MonkeyPatch, worth: float, parallel: bool
) -> None:
    given = parse_kernel(ROWS)
    monkeypatch.setattr(sharing, "WORTH_SHARING", worth)
    assert specialize.build(Compilation(given, toolchain.host())).parallel == parallel
    built: list[bool] = []
    compiled = tuner.compile_kernel

    def compile_kernel(*arguments: Any) -> CompiledKernel:
        found = compiled(*arguments)
        built.append(found.parallel)
        return found

    monkeypatch.setattr(tuner, "compile_kernel", compile_kernel)
    tuner.tune(given, (), toolchain.host(), 0)
    assert built == [parallel]


def test_the_luckiest_is_timed_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: timings that show a gain until what is found is confirmed."""
    rounds: list[int] = []
    monkeypatch.setattr(tuner, "_ratio", lambda _, __, turns: rounds.append(turns) or (1.0 if turns == 15 else 0.5))
    found = tuner.tune(kernel(), (), toolchain.host(), 2)
    assert rounds[-1] == tuner.CONFIRMED
    assert not found.better
    assert found.schedule == default_schedule(kernel(), "cpu", toolchain.host().machine)


def test_what_computes_something_else_is_never_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: a candidate that is much faster, and wrong."""
    given = kernel()

    def doubled(s: object) -> object:
        wrong = isinstance(s, Store) and s.value.type.dtype.is_float
        return dataclasses.replace(s, value=Binary("add", s.value, Const(1.0, s.value.type))) if wrong else s

    schedule = next(variations(default_schedule(given)))
    proposals = iter([(schedule, map_stmt(given.body, stmt=doubled))])
    timed: list[object] = []

    def propose(*_: object) -> object:
        found = next(proposals, None)
        return None if found is None else tuner.Proposal(found[0], dataclasses.replace(given, body=found[1]))

    monkeypatch.setattr(tuner._Search, "next", propose)
    monkeypatch.setattr(tuner, "_ratio", lambda *_: timed.append(_) or 0.1)
    found = tuner.tune(given, (), toolchain.host(), 5)
    assert (found.tried, found.better, timed) == (0, False, [])
