"""Finding an OpenMP runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from opgen.runtime.threads import openmp

MAPS = """\
55f0-55f1 r--p 00000000 08:01 1 /usr/bin/python3.11
7f00-7f01 r--p 00000000 08:01 2 /opt/some place/torch/lib/libgomp-a34b3233.so.1
7f01-7f02 r-xp 00001000 08:01 2 /opt/some place/torch/lib/libgomp-a34b3233.so.1
7f03-7f04 r--p 00000000 08:01 3 /usr/lib/libiomp5.so
7f05-7f06 r--p 00000000 08:01 4 /usr/lib/libcompute.so
7f07-7f08 r--p 00000000 08:01 5 /usr/lib/libgomp-plugin-nvptx.py
7f09-7f0a rw-p 00000000 00:00 0 [stack]
7f0b-7f0c rw-p 00000000 00:00 0
"""


def test_runtimes_that_are_loaded_already_are_found(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(MAPS)
    assert list(openmp.loaded(maps)) == [
        "/opt/some place/torch/lib/libgomp-a34b3233.so.1",
        "/usr/lib/libiomp5.so",
    ]


def test_where_the_system_tells_nothing_none_is_seen(tmp_path: Path) -> None:
    assert list(openmp.loaded(tmp_path / "none")) == []


def test_a_library_without_the_functions_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openmp, "_candidates", lambda: iter(["libc.so.6", "libnothing-of-the-kind.so.9"]))
    assert openmp.find() is None
