"""What the benchmark says of its rows: ratios, means, losses, a comparison of two runs, a picture."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tools.bench import compare, plot, report, summary
from tools.bench.layers import Case
from tools.bench.limits import Limits
from tools.bench.results import PLACE, Overhead, Results, ResultsError, Row, read_json, write_json

SMALL = Case("small", "dense", 1, 6, 7, 3, 8, 3, 3, 2, "SAME")
INPUT = replace(SMALL, direction="input")
CHANNELWISE = Case("small_channels", "depthwise", 1, 6, 7, 4, 8, 3, 3, 1, "VALID", "filter")
PACE = Limits(1, SMALL.flops / 0.8, 1e9)
WON, LOST, REFUSED, ALONE = (
    Row(SMALL, 1, {"opgen": 1.0, "peer": 2.0, "other": 4.0}, {"opgen": 0.1}, pace=PACE),
    Row(CHANNELWISE, 1, {"opgen": 4.0, "peer": 2.0, "other": 5.0}, disagree={"other": 0.25}),
    Row(SMALL, 2, {"peer": 2.0}, refused={"opgen": "no"}),
    Row(INPUT, 1, {"opgen": 2.0}, refused={"peer": "never", "other": "never"}),
)
RESULTS = Results(
    rows=(WON, LOST, REFUSED, ALONE),
    limits=(Limits(1, SMALL.flops / 0.5, 1e9), Limits(2, SMALL.flops / 0.25, 1e9)),
    overheads=(Overhead("a tiny call, opgen", 3e-6, 2e-6),),
    versions={"opgen": "1", "peer": "2"},
    own="opgen",
    peers=("peer", "other"),
    absent={"third": "nowhere"},
)


def text_of(show: object, *arguments: object) -> list[str]:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115  (only the record is read)
    show(console, *arguments)
    return console.export_text().split("\n")


def cells(lines: list[str], first: str) -> list[list[str]]:
    """The rows of tables whose first cell begins so."""
    split = ([c.strip() for c in line.strip("│").split("│")] for line in lines if line.startswith("│"))
    return [row for row in split if row[0].startswith(first)]


def test_a_row_is_held_against_its_best_peer_and_the_limit() -> None:
    assert [summary.speedup(row, "opgen", "peer") for row in RESULTS.rows] == [2.0, 0.5, None, None]
    assert [summary.best_peer(row, RESULTS.peers) for row in RESULTS.rows] == ["peer", "peer", "peer", None]
    assert [summary.against_best(row, "opgen", RESULTS.peers) for row in RESULTS.rows] == [2.0, 0.5, 0.0, None]
    assert summary.share(RESULTS, WON) == pytest.approx(0.5)
    assert summary.share(RESULTS, REFUSED) is None
    assert summary.share_meanwhile(RESULTS, WON) == pytest.approx(0.8)
    assert summary.share_meanwhile(RESULTS, LOST) == summary.share(RESULTS, LOST)
    assert summary.share_meanwhile(RESULTS, REFUSED) is None


def test_what_is_lost_comes_first_and_is_all_listed() -> None:
    assert summary.worst_first(RESULTS) == [REFUSED, LOST, WON, ALONE]
    assert summary.losses(RESULTS) == [REFUSED, LOST]
    lines = text_of(report.show, RESULTS)
    assert "2 of 4 rows are lost to their best peer" in lines
    assert "lost: small/1/forward, 2 threads: 0.00 of the speed of peer" in lines
    assert "lost: small_channels/1/filter, 1 threads: 0.50 of the speed of peer" in lines
    assert "absent: third: nowhere" in lines
    assert "refused by opgen: no: small/1/forward, 2 threads" in lines
    assert "result of other differs by 0.25: small_channels/1/filter, 1 threads" in lines
    rows = cells(lines, "small")
    assert [(r[0], r[1], r[3]) for r in rows] == [
        ("small", "forward", "2"), ("small_channels", "filter", "1"),
        ("small", "forward", "1"), ("small", "input", "1"),
    ]  # fmt: skip
    assert rows[0][4:] == ["refused", "", "", "", "", "", ""]
    assert rows[1][-2:] == ["0.50", "1.25 differs"]
    assert rows[2][4:9] == ["1000.000", "5", f"{SMALL.flops / 1e9:.1f}", "50", "80"]


def test_what_no_cache_holds_is_also_held_against_memory() -> None:
    limits = (replace(RESULTS.limits[0], cache=100, memory=CHANNELWISE.bytes / 2.0), RESULTS.limits[1])
    lines = text_of(report.show_rows, replace(RESULTS, limits=limits))
    (row,) = cells(lines, "small_channels")
    assert row[7].endswith(" (50)")
    assert any("of memory's limit" in line for line in lines)
    assert not any("of memory's limit" in line for line in text_of(report.show_rows, RESULTS))


def test_means_are_geometric_and_over_each_sort() -> None:
    assert summary.geometric_mean([0.5, 2.0, None, 0.0]) == pytest.approx(1.0)
    assert summary.geometric_mean([]) is None
    words = [group.words for group in summary.groups(RESULTS.rows)]
    assert words == [
        ("dense", "forward", "1", "1"), ("dense", "forward", "1", "2"), ("dense", "input", "1", "1"),
        ("depthwise stride 1", "filter", "1", "1"),
        ("dense", "all", "all", "1"), ("dense", "all", "all", "2"), ("depthwise", "all", "all", "1"),
    ]  # fmt: skip
    (dense,) = (g for g in summary.groups(RESULTS.rows) if g.words == ("dense", "all", "all", "1"))
    assert dense.rows == (WON, ALONE)
    found = next(r for r in cells(text_of(report.show_means, RESULTS), "dense") if r[1] == "all" and r[3] == "1")
    assert found[4:] == ["2", "35 (25)", "45 (25)", "2.00 (2.00)", "0", "2.00", "4.00"]


def test_other_formats_and_types_are_other_sorts() -> None:
    row = Row(replace(SMALL, data_format="NCHW", dtype="bfloat16"), 1, {"opgen": 1.0})
    assert summary.groups([row])[0].words[0] == "dense NCHW bfloat16"


def test_results_come_back_from_the_file_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_json(path, RESULTS)
    assert read_json(path) == RESULTS
    path.write_text('{"format": 3}')
    with pytest.raises(ResultsError, match="holds no results"):
        read_json(path)


def test_a_later_sitting_adds_and_replaces() -> None:
    faster = replace(WON, seconds={"opgen": 0.5})
    later = replace(RESULTS, rows=(faster,), limits=(Limits(1, 1e12, 1.0),), overheads=(), peers=("new",))
    joined = RESULTS.joined(later)
    assert joined.rows == (faster, LOST, REFUSED, ALONE)
    assert joined.limits[0] == Limits(1, 1e12, 1e9)
    assert joined.overheads == RESULTS.overheads
    assert joined.peers == ("peer", "other", "new")
    elsewhere = replace(later, versions={**later.versions, PLACE: "16 bytes behind a cache line"})
    with pytest.raises(ResultsError, match=r"--append: arguments began .*16 bytes behind a cache line"):
        RESULTS.joined(elsewhere)


def test_a_comparison_tells_the_machines_drift_from_our_change() -> None:
    """Everything takes half as long again in the new run, and one row of ours gained by half on top."""
    slower = tuple(replace(r, seconds={n: 1.5 * s for n, s in r.seconds.items()}) for r in RESULTS.rows)
    gained = replace(slower[0], seconds={**slower[0].seconds, "opgen": 1.0})
    new = replace(RESULTS, rows=(gained, *slower[1:], Row(replace(SMALL, layer="fresh"), 1, {"opgen": 1.0})))
    found = compare.changes(RESULTS, new)
    assert [c.row.key for c in found] == [LOST.key, ALONE.key, WON.key]
    assert [c.own for c in found] == pytest.approx([2 / 3, 2 / 3, 1.0])
    assert found[1].peers is None
    assert found[0].peers == pytest.approx(2 / 3)
    lines = text_of(compare.show, RESULTS, new)
    assert lines[0] == "3 rows in both runs; the libraries run at 0.667 of their speed then"
    assert "1 rows only in the new run" in lines
    assert ["small_channels/1/filter", "1", "0.67", "0.67"] in cells(lines, "small")
    assert not cells(lines, "small/1/forward")  # it did not change


def test_a_busy_machine_is_said_to_be_busy() -> None:
    assert report.busy(0.9, 2) is None
    assert report.busy(3.0, 2) == (
        "others use this machine (load 3.0, 2 processors): the times are not to be trusted"
    )  # fmt: skip


@pytest.mark.parametrize(("seconds", "text"), [(1.5, "1.50 s"), (0.0125, "12.50 ms"), (3.4e-6, "3.40 us")])
def test_times_are_said_in_their_unit(seconds: float, text: str) -> None:
    assert report.duration(seconds) == text


@pytest.mark.parametrize("name", ["results.png", "results.svg"])
def test_a_picture_is_drawn(tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    plot.save(tmp_path / name, RESULTS)
    assert (tmp_path / name).stat().st_size > 5000


def test_what_cannot_be_drawn_is_said_before_anything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(plot.PlotError, match=r"ends with \.png or \.svg, given a\.gif"):
        plot.check(Path("a.gif"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(plot.PlotError, match="pip install matplotlib"):
        plot.check(Path("a.png"))
