"""Paths on the command line that are no plain files, or empty: said as mistakes, in little time."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from opgen.compiler import toolchain
from tests.cli.conftest import Run

EMPTY = "the path is empty (a variable that is not set?)"
CALL = ("inspect", "ScaledSum", "--specs", "small.op")
TUNE = ("tune", "ScaledSum", "--specs", "small.op", "--shape", "x=8", "--shape", "y=8", "--seconds", "0")
DEEP = "[" * 100_000
DIGITS = "9" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ("generate", "small.op", "-o", ""),
        ("generate", "", "-o", "out"),
        ("build", "small.op", "-o", " "),
        ("check", ""),
        ("fmt", ""),
        ("inspect", "ScaledSum", "--specs", ""),
        (*CALL, "--output", ""),
        (*CALL, "--schedule", ""),
        ("tune", "ScaledSum", "--specs", ""),
        (*TUNE, "--calls", ""),
    ],
)
def test_an_empty_path_is_a_wrong_command_line(
    here: Run, good: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    before = sorted(tmp_path.iterdir())
    result = here(*arguments)
    assert (result.returncode, EMPTY in result.stderr) == (2, True), result.stderr
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [("check",), ("fmt",), ("generate", "-o", "out"), ("build", "-o", "out"), (*CALL, "--schedule"), (*TUNE, "--calls"),
     (*TUNE, "--schedule"), ("inspect", "ScaledSum", "--specs")],
)  # fmt: skip
def test_what_is_no_plain_file_is_not_opened(here: Run, good: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    os.mkfifo(tmp_path / "pipe.op")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket.op"))
    for name, kind in (("/dev/zero", "a device"), ("pipe.op", "a pipe"), ("socket.op", "a socket")):
        result = here(*arguments, name)
        assert (result.returncode, result.stdout) == (2, "")
        assert f"'{name}' cannot be read: it is {kind}." in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DEEP, "calls.json is no JSON: it nests too deeply"),
        (f'[{{"op": "ScaledSum", "attrs": {{"alpha": {"[" * 90}{"]" * 90}}}}}]', "it nests too deeply"),
        (f'[{{"op": "ScaledSum", "shapes": {{"x": [{DIGITS}]}}}}]', "is no JSON: Exceeds the limit"),
        (f'[{{"op": "ScaledSum", "shapes": {{"x": [{"9" * 900}]}}}}]', "expected integers of at most 18 digits"),
        ("\udcff", "calls.json: not UTF-8 text (byte 0)"),
        (" " * (9 << 20), "cannot read calls.json: it is larger than 8 MiB"),
    ],
)
def test_files_of_calls_that_no_person_wrote(here: Run, good: Path, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "calls.json").write_bytes(text.encode(errors="surrogateescape"))
    result = here("tune", "--specs", "small.op", "--calls", "calls.json", "--seconds", "0")
    assert result.returncode == 1
    assert message in result.stderr
    assert len(result.stderr) < 500


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((*CALL, "--shape", f"x={DIGITS}"), 1),
        ((*CALL, "--shape", "x=9223372036854775807", "--shape", "y=9223372036854775807"), 1),
        ((*CALL, "--shape", "x=999999999999999999", "--shape", "y=999999999999999999"), 0),
        ((*CALL, "--shape", "x=٣", "--shape", "y=3"), 1),
        ((*CALL, "--attr", f"alpha={'x' * 5000}", "--shape", "x=1", "--shape", "y=1"), 1),
        ((*TUNE, "--seed", DIGITS), 2),
        ((*TUNE, "--seconds", "x" * 5000), 2),
        (("build", "small.op", "-o", "out", "--jobs", DIGITS), 2),
        (("build", "small.op", "-o", "out", "--specialize", f"ScaledSum:count={DIGITS}"), 1),
        (("build", "small.op", "-o", "out", "--specialize", "ScaledSum:count=--3"), 1),
    ],
)
def test_numbers_without_end(here: Run, good: Path, arguments: tuple[str, ...], code: int) -> None:
    result = here(*arguments)
    assert result.returncode == code, result.stderr
    assert "internal error" not in result.stderr


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "folder", "deep", "large"])
def test_numbers_of_a_machine_that_are_no_file(
    here: Run, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / kind if kind != "/dev/zero" else Path(kind)
    reason = {"pipe": "it is a pipe", "/dev/zero": "it is a device", "folder": "it is a folder"}.get(kind)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "deep":
        path.write_text(DEEP[: 1 << 15])
        reason = "it nests too deeply"
    elif kind == "large":
        path.write_text(json.dumps({"cores": 1}) + " " * (1 << 17))
        reason = "it is larger than 0.0625 MiB"
    monkeypatch.setenv("OPGEN_MACHINE", str(path))
    toolchain.host.cache_clear()  # nothing is kept of a machine whose numbers cannot be read
    result = here(*CALL, "--stage", "schedule")
    assert result.returncode == 1
    assert result.stderr.startswith("error: OPGEN_MACHINE: ")
    assert result.stderr.endswith(f"{reason}\n")


def test_output_may_be_a_device_or_a_link(here: Run, good: Path, tmp_path: Path) -> None:
    assert here(*CALL, "--stage", "loop", "--output", "/dev/null").returncode == 0
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    assert here(*CALL, "--stage", "loop", "--output", "link").returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text().startswith("kernel scaled_sum")
