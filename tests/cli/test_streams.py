"""Streams that are closed, broken or full, and signals: quiet, with the exit code that custom has."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Run

OK, WRONG = ("check", "small.op"), ("check", "bad.op")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "2>&- >&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [(OK, 0), (WRONG, 1), (("no-such",), 2), (("generate", "small.op", "-o", "out", "--check"), 1)],
)
def test_closed_streams(
    tmp_path: Path, good: Path, bad: Path, closed: str, arguments: tuple[str, ...], code: int
) -> None:
    done = _shell(tmp_path, f"{_command(arguments)} {closed}")
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "internal" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "full", "code"),
    [(OK, ">", 1), (OK, "2>", 0), (WRONG, "2>", 1), (("no-such",), "2>", 2), (("--help",), ">", 1)],
)
def test_full_streams(tmp_path: Path, good: Path, bad: Path, arguments: tuple[str, ...], full: str, code: int) -> None:
    done = _shell(tmp_path, f"{_command(arguments)} {full}/dev/full")
    assert done.returncode == code
    assert done.stderr == ("error: No space left on device\n" if full == ">" else "")


@pytest.mark.parametrize(("stream", "code"), [("stdout", 1), ("stderr", 1)])
def test_a_reader_that_left(tmp_path: Path, bad: Path, good: Path, stream: str, code: int) -> None:
    read, write = os.pipe()
    os.close(read)
    outer = subprocess.PIPE
    out, err = (write, outer) if stream == "stdout" else (outer, write)
    command = [sys.executable, "-m", "opgen", *(OK if stream == "stdout" else WRONG)]
    try:
        done = subprocess.run(command, cwd=tmp_path, env=_env(), check=False, stdout=out, stderr=err)
    finally:
        os.close(write)
    assert (done.returncode, done.stdout or b"", done.stderr or b"") == (code, b"", b"")


SLOW = """
import time
from opgen.bindings.c import build

def link(*_):
    (_[-2] / "half.o").write_text("half")
    print("linking", flush=True)
    time.sleep(60)

build._Build._link = link
from opgen.cli import main
main()
"""
"""The command line with a linker that does not end."""


def _as_at_a_terminal() -> None:
    """No signal is ignored, as those are by what runs in the background of a shell."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129), (signal.SIGKILL, -9)]
)
def test_a_build_that_is_ended_leaves_nothing(
    opgen: Run, tmp_path: Path, good: Path, number: signal.Signals, code: int
) -> None:
    """What a killed one leaves the next removes, and nothing that others have put there."""
    command = [sys.executable, "-c", SLOW, "build", "small.op", "-o", "out", "--jobs", "1"]
    lib = tmp_path / "out" / "lib"
    lib.mkdir(parents=True)
    foreign = lib / ".build-mine"
    foreign.mkdir()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=_env(), preexec_fn=_as_at_a_terminal, **pipes) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == b"linking\n"
        child.send_signal(number)
        assert child.wait(timeout=30) == code
        assert child.stderr.read() == (b"\ninterrupted\n" if number == signal.SIGINT else b"")
    left = [p for p in lib.iterdir() if p != foreign]
    assert len(left) == (number == signal.SIGKILL)
    if left:
        done = opgen("build", "small.op", "-o", "out", "--jobs", "1", "--target", "x86-64-v2")
        assert done.returncode == 0, done.stderr
        assert {p.name for p in lib.iterdir()} == {".build-mine", "cmake", "libsmall.a", "libsmall.so", "libsmall.so.2",
                                                   "pkgconfig"}  # fmt: skip


def test_the_place_of_a_living_process_stays(tmp_path: Path) -> None:
    from opgen.bindings.c.workplace import sweep, workplace

    with workplace(tmp_path) as first, workplace(tmp_path) as second:
        old = time.time() - 1e6
        os.utime(first, (old, old))
        sweep(tmp_path)
        assert first.is_dir()
        assert second.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_within_a_left_one_is_nobodys_business(tmp_path: Path) -> None:
    from opgen.bindings.c.workplace import sweep

    left = tmp_path / ".build-0123456789abcdef"
    (left / "folder").mkdir(parents=True)
    (left / "opgen.lock").write_text("")
    (left / "link").symlink_to(tmp_path)
    sweep(tmp_path)
    assert [p.name for p in left.iterdir()] == ["folder"]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda lib: (lib / "libsmall.a").write_text("mine"), "libsmall.a is in the way: it is no library"),
        (lambda lib: (lib / "libsmall.so").write_text("mine"), "libsmall.so is in the way: it is no link to a library"),
        (lambda lib: (lib / "libsmall.so.2").symlink_to("/bin/sh"), "libsmall.so.2 is in the way: it is no library"),
        (lambda lib: (lib.parent / "include").mkdir() or (lib.parent / "include/small.h").write_text("int mine;\n"),
         "small.h is in the way: it was not generated by opgen"),
    ],
)  # fmt: skip
def test_build_replaces_nothing_that_is_not_its_own(
    here: Run, good: Path, tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    lib = tmp_path / "out" / "lib"
    lib.mkdir(parents=True)
    make(lib)
    done = here("build", "small.op", "-o", "out", "--jobs", "1", "--target", "x86-64-v2")
    assert done.returncode == 1
    assert done.stderr.endswith(f"{reason}, and is left alone\n")


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _command(arguments: tuple[str, ...]) -> str:
    return shlex.join([sys.executable, "-m", "opgen", *arguments])


def _shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", line], cwd=folder, env=_env(), capture_output=True, text=True, check=False)
