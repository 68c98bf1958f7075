"""Frozen schedules: every row has a name, a sample is drawn again, and a schedule that changes is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from opgen.schedule import default
from tools import schedules

FEW = ("--match", "mb_7_960/1/forward", "--sample", "2", "--machine", "64x1", "--machine", "16x2", "--processes", "1")


def run(*words: str) -> Result:
    return CliRunner().invoke(schedules.main, [*FEW, *words])


def test_rows_have_names_of_their_own() -> None:
    names = [row.name for row in schedules.rows(extra=20)]
    assert len(names) == len(set(names))
    assert {"r50_4_1x1/8/filter/NCHW/bfloat16", "r50_2_3x3/1/forward by minimal_filtering"} <= set(names)
    assert [row.name for row in schedules.rows(extra=20)] == names
    assert sum(name.startswith("odd") for name in names) >= 20


def test_machines_differ_by_more_than_cores() -> None:
    found = schedules.machines()
    assert {m.vector_bytes for m in found.values()} == {16, 32, 64}
    assert any(m.tiles for m in found.values())
    assert any(m.pairs for m in found.values())
    assert {m.cores for m in found.values()} == {1, 2}


def test_what_is_written_is_the_same_again(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    assert run("write", str(file)).output == "2 rows\n"
    assert all(list(row) == ["64x1", "16x2"] for row in json.loads(file.read_text()).values())
    assert (result := run("compare", str(file))).exit_code == 0, result.output
    assert result.output == "0 of 2 rows changed\n"


def test_a_changed_schedule_is_named(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    run("write", str(file))
    base: schedules.Hashes = json.loads(file.read_text())
    name = next(iter(base))
    base[name]["16x2"] = "another"
    file.write_text(json.dumps(base))
    result = run("compare", str(file))
    assert result.exit_code == 1
    assert result.output == f"{name}: 16x2\n1 of 2 rows changed\n"


def test_nothing_compared_is_no_success(tmp_path: Path) -> None:
    file = tmp_path / "base.json"
    file.write_text("{}")
    result = run("compare", str(file))
    assert result.exit_code == 1
    assert result.output == "0 of 2 rows changed, 2 are new\n"


def test_another_scheduler_has_other_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    row = next(r for r in schedules.rows() if r.name == "mb_7_960/1/forward")
    before = schedules.hashes_of(row, ["64x1", "64x2"])
    monkeypatch.setattr(default, "_for_cpu", lambda trial, machine: None)
    after = schedules.hashes_of(row, ["64x1", "64x2"])
    assert all(before[name] != after[name] for name in before)
    assert after["64x1"] == after["64x2"]


def test_another_process_is_told_the_same_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    choices = schedules.Choices(3, 7, 5, "r50", ("tilesx1", "32x2"), 1)
    told: list[schedules.Choices] = []
    monkeypatch.setattr(schedules.Choices, "freeze", lambda self, _: told.append(self) or {})
    CliRunner().invoke(schedules.main, [*choices.arguments(), "write", "/dev/null"], catch_exceptions=False)
    assert told == [choices]


def test_a_schedule_is_shown() -> None:
    blocks = run("show", "mb_7_960/1/forward").output.split("\n\n")
    shown = {block.split("\n")[0]: block.split("\n")[1:] for block in blocks}
    for machine in ("64x1", "16x2"):
        steps = shown[f"# mb_7_960/1/forward on {machine}"]
        assert "vectorize c_l" in steps
        assert len(steps) > 4
    assert run("show", "no such row").exit_code == 2
