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
import ctypes, time
from opgen.bindings.c import build

def link(*given):
    (given[-1] / "half.o").write_text("half")
    print("linking", flush=True)
    time.sleep(60)

build._Build._link = link
from opgen.cli import main
main()
"""
"""The command line with a linker that does not end."""


STUCK = SLOW.replace("time.sleep(60)", "mutex = ctypes.create_string_buffer(64)\n    "
                     "[ctypes.CDLL(None).pthread_mutex_lock(mutex) for _ in range(2)]")  # fmt: skip
"""The command line with machine code that does not return, and to whose end Python's signal handlers would wait."""


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
    out = tmp_path / "out"
    foreign = out / ".build-mine"
    foreign.mkdir(parents=True)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=_env(), preexec_fn=_as_at_a_terminal, **pipes) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == b"linking\n"
        child.send_signal(number)
        assert child.wait(timeout=30) == code
        assert child.stderr.read() == (b"\ninterrupted\n" if number == signal.SIGINT else b"")
    left = [p for p in out.iterdir() if p != foreign]
    assert len(left) == (number == signal.SIGKILL)
    if left:
        done = opgen("build", "small.op", "-o", "out", "--jobs", "1", "--target", "x86-64-v2")
        assert done.returncode == 0, done.stderr
        assert {p.name for p in out.iterdir()} == {
            ".build-mine", "examples", "include", "lib", "small.built", "src",
        }  # fmt: skip


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_machine_code_that_does_not_return_is_ended(
    tmp_path: Path, good: Path, number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-c", STUCK, "build", "small.op", "-o", "out", "--jobs", "1"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=_env(), preexec_fn=_as_at_a_terminal, **pipes) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == b"linking\n"
        child.send_signal(number)
        assert child.wait(timeout=30) == code
        assert child.stderr.read() == (b"\ninterrupted\n" if number == signal.SIGINT else b"")
    assert not (tmp_path / "out").exists()


def test_a_build_that_fails_leaves_no_folder(here: Run, good: Path, tmp_path: Path) -> None:
    done = here("build", "small.op", "-o", "new/out", "--target", "x86-64-v9")
    assert done.returncode == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("rename", [1, 2, 8])
def test_a_build_that_is_ended_among_its_files_is_whole(opgen: Run, tmp_path: Path, good: Path, rename: int) -> None:
    """A signal that comes while files take their places waits for the last of them."""
    command = [sys.executable, "-c", SIGNALLED, str(rename), "build", "small.op", "-o", "out", "--jobs", "1"]
    done = subprocess.run([*command, "--target", "x86-64-v2"], cwd=tmp_path, env=_env(), check=False)
    assert done.returncode == 143
    names = {p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*")}
    assert {"include/small.h", "lib/libsmall.so.2", "lib/libsmall.a", "small.built"} <= names
    assert not any(".build" in name or ".old" in name for name in names)


def test_a_build_that_cannot_replace_a_file_undoes_what_it_did(opgen: Run, tmp_path: Path, good: Path) -> None:
    command = ("build", "small.op", "-o", "out", "--jobs", "1", "--target", "x86-64-v2")
    assert opgen(*command).returncode == 0
    before = _contents(tmp_path / "out")
    good.write_text(good.read_text().replace('op ', 'op Other { type T in {float32} input x: T[n] output y: T[n] '
                                             'y[i] = x[i] }\n\nop ', 1))  # fmt: skip
    failing = SIGNALLED.replace("os.kill(os.getpid(), signal.SIGTERM)", 'raise OSError("no space")')
    done = subprocess.run([sys.executable, "-c", failing, "9", *command], cwd=tmp_path, env=_env(), check=False)
    assert done.returncode == 1
    assert _contents(tmp_path / "out") == before


SIGNALLED = """
import os, signal, sys
from opgen.bindings import commit
countdown = int(sys.argv.pop(1))
replace = commit._replace

def signalled(*given):
    global countdown
    countdown -= 1
    if not countdown:
        os.kill(os.getpid(), signal.SIGTERM)
    return replace(*given)

commit._replace = signalled
from opgen.cli import main
main()
"""


def test_the_place_of_a_living_process_stays(tmp_path: Path) -> None:
    from opgen.bindings.workplace import sweep, workplace

    with workplace(tmp_path) as first, workplace(tmp_path) as second:
        sweep(tmp_path)
        assert first.is_dir()
        assert second.is_dir()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("held", [(), ("opgen.lock.new",)])
def test_a_workplace_that_never_had_its_lock_goes_after_an_hour(held: tuple[str, ...], tmp_path: Path) -> None:
    from opgen.bindings.workplace import workplace

    left = tmp_path / ".build-0123456789abcdef"
    left.mkdir()
    for name in held:
        (left / name).touch()
    with workplace(tmp_path):
        assert left.is_dir()
    os.utime(left, (time.time() - 3700,) * 2)
    with workplace(tmp_path):
        assert not left.exists()


def test_a_folder_that_looks_like_a_workplace_and_has_no_lock_stays(tmp_path: Path) -> None:
    from opgen.bindings.workplace import sweep

    theirs = tmp_path / ".build-0123456789abcdef"
    theirs.mkdir()
    (theirs / "file").write_text("mine")
    os.utime(theirs, (time.time() - 3700,) * 2)
    sweep(tmp_path)
    assert (theirs / "file").read_text() == "mine"


FOREIGN = "it was not generated by opgen"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda lib: (lib / "libsmall.a").write_text("mine"), f"libsmall.a is in the way: {FOREIGN}"),
        (lambda lib: (lib / "libsmall.a").write_bytes(b"!<arch>\nmine"), f"libsmall.a is in the way: {FOREIGN}"),
        (lambda lib: (lib / "libsmall.so").write_text("mine"), f"libsmall.so is in the way: {FOREIGN}"),
        (lambda lib: (lib / "libsmall.so").symlink_to("/bin/sh"), "libsmall.so is in the way: it is a link"),
        (lambda lib: (lib / "libsmall.so.2").symlink_to("/bin/sh"), "libsmall.so.2 is in the way: it is a link"),
        (lambda lib: (lib.parent / "include").mkdir() or (lib.parent / "include/small.h").write_text("int mine;\n"),
         f"small.h is in the way: {FOREIGN}"),
        (lambda lib: (lib.parent / "small.built").write_text("mine"), f"small.built is in the way: {FOREIGN}"),
        (lambda lib: (lib.parent / "src").symlink_to(lib), "src is in the way: it is no folder of its own"),
    ],
)  # fmt: skip
def test_build_replaces_nothing_that_is_not_its_own(
    here: Run, good: Path, tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    lib = tmp_path / "out" / "lib"
    lib.mkdir(parents=True)
    make(lib)
    before = _contents(tmp_path / "out")
    done = here("build", "small.op", "-o", "out", "--jobs", "1", "--target", "x86-64-v2")
    assert done.returncode == 1
    assert reason in done.stderr
    assert _contents(tmp_path / "out") == before


def test_build_replaces_what_it_wrote_and_with_leave_what_others_wrote(here: Run, good: Path, tmp_path: Path) -> None:
    command = ("build", "small.op", "-o", "out", "--jobs", "1", "--target", "x86-64-v2")
    assert here(*command).returncode == 0
    built = _contents(tmp_path / "out")
    good.write_text(good.read_text() + "# another\n")
    assert here(*command).returncode == 0
    library = tmp_path / "out" / "lib" / "libsmall.a"
    library.write_text("mine")
    done = here(*command)
    assert done.returncode == 1
    assert (
        done.stderr
        == f"error: out/lib/libsmall.a is in the way: {FOREIGN}, and is left alone (--overwrite replaces it)\n"
    )
    assert library.read_text() == "mine"
    assert here(*command, "--overwrite").returncode == 0
    assert _contents(tmp_path / "out") == built
    assert subprocess.run(["sha256sum", "-c", "small.built"], cwd=tmp_path / "out", check=False).returncode == 0


def _contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def _env() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _command(arguments: tuple[str, ...]) -> str:
    return shlex.join([sys.executable, "-m", "opgen", *arguments])


def _shell(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", "-c", line], cwd=folder, env=_env(), capture_output=True, text=True, check=False)
