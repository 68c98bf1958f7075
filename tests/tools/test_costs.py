"""The table of costs around a kernel: every row is there, and is a time."""

from __future__ import annotations

import re

import pytest

from tools import costs


def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(costs, "ROUNDS", 1)
    costs.main()
    rows = [re.fullmatch(r"(\S.*\S) +(\d+\.\d\d) (ms|us)", line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 9
    found = {row[1]: float(row[2]) for row in rows if row is not None}
    assert all(value > 0 for value in found.values())
    assert found["first call of a process, this kernel cached"] < found["first call of a process, nothing cached"]
    assert found["a prepared call, 1x1x4x4"] < found["a repeated call, 1x1x4x4"]
