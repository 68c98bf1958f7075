"""The table of how well prices rank plans: candidates are built and timed, and told worst first."""

from __future__ import annotations

from tools.ranking import Nest, artifacts, measured, report


def test_each_nest_with_several_candidates_is_measured() -> None:
    rows = dict(artifacts(("column_sums",)))
    assert sorted(rows) == ["column_sums ((1024, 1024),)", "column_sums ((784, 300),)"]
    row = "column_sums ((784, 300),)"
    (nest,) = measured(row, rows[row], rounds=1)
    assert nest.row == row
    assert [kind for kind, _, _ in nest.candidates][:2] == ["columns", "elementwise"]
    assert all(cost > 0 and share > 0 for _, cost, share in nest.candidates)


def test_the_worst_come_first() -> None:
    good = Nest("a", "i", (("rows", 1e-6, 1.0), ("columns", 2e-6, 1.5)))
    bad = Nest("b", "j, k", (("columns", 1e-6, 1.0), ("rows", 2e-6, 0.5)))
    lines = list(report([good, bad]))
    assert lines[0] == " 2.00  b: nest over j, k"
    assert lines[1] == "         columns      price       1.0 us  time   1.00"
    assert lines[3] == " 1.00  a: nest over i"
    assert lines[-1] == "1 of 2 nests have a plan within 5% of the best of their candidates"
