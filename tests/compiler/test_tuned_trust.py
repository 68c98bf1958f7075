"""Tuned schedules are believed like the kernels beside them, and can neither fail nor stall calls."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import stat
import time
import warnings
from pathlib import Path

import pytest

from opgen.compiler import toolchain, tuned
from opgen.compiler.request import Compilation
from opgen.diagnostics import UserError
from opgen.runtime.call import specialize
from opgen.schedule.default import default_schedule
from opgen.schedule.schedule import apply
from tests.support.variations import another, entry, kernel

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database in a folder of the user's alone, with a schedule that is not the default one."""
    path = tmp_path / "kept" / "tuned.jsonl"
    monkeypatch.setenv("OPGEN_TUNED", str(path))
    tuned._warn.cache_clear()
    tuned.store(entry(kernel(), another(kernel())))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path


def refuses(file: Path, reason: str) -> None:
    """The file is ignored with one warning, the default schedule is used, and nothing is written to it."""
    before = sorted((p.name, p.lstat().st_mtime_ns, p.lstat().st_size) for p in file.parent.iterdir())
    given, host = kernel(), toolchain.host()
    with pytest.warns(tuned.TunedWarning) as caught:
        assert tuned.scheduled(given, host)[0] == default_schedule(given, "cpu", host.machine)
    assert [str(w.message) for w in caught] == [f"the tuned schedules in {file} are not used: {reason}"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tuned.digest() == ""
    assert tuned.finding() == f"not used: {reason} ({file})"
    for write in (tuned.require_writable, lambda: tuned.store(entry(given, another(given)))):
        with pytest.raises(UserError) as refused:
            write()
        assert str(refused.value) == f"schedules cannot be kept in {file}: {reason}"
    assert sorted((p.name, p.lstat().st_mtime_ns, p.lstat().st_size) for p in file.parent.iterdir()) == before


def test_a_file_of_something_else_is_not_replaced(file: Path) -> None:
    file.write_text("my notes\n")
    given = kernel()
    for write in (tuned.require_writable, lambda: tuned.store(entry(given, another(given)))):
        with pytest.raises(UserError, match="it holds something else; name another file, or remove this one"):
            write()
    assert file.read_text() == "my notes\n"


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777, 0o702])
def test_in_a_folder_that_others_may_write_to(file: Path, mode: int) -> None:
    file.parent.chmod(mode)
    refuses(file, f"others may write to it (mode {mode:04o})")


def test_a_file_that_others_may_write_to(file: Path) -> None:
    file.chmod(0o666)
    refuses(file, "others may write to it (mode 0666)")


@needs_root
@pytest.mark.parametrize("which", ["file", "folder"])
def test_of_someone_else(file: Path, which: str) -> None:
    os.chown(file if which == "file" else file.parent, 12345, -1)
    refuses(file, "it belongs to user 12345, not to user 0")


def test_a_link(file: Path) -> None:
    real = file.rename(file.with_name("real"))
    file.symlink_to(real)
    refuses(file, "it is a link")


def test_a_pipe_or_folder(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)
    refuses(file, "it is a pipe")
    file.unlink()
    file.mkdir()
    tuned._warn.cache_clear()
    refuses(file, "it is a folder")


def test_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPGEN_TUNED", "/dev/zero")
    with pytest.warns(tuned.TunedWarning, match="the tuned schedules in /dev/zero are not used: it is a device"):
        assert tuned.entries() == ()


def test_a_planted_link_is_not_written_through(file: Path, tmp_path: Path) -> None:
    """At every name that a writer of this process could take for its text."""
    victim = tmp_path / "victim"
    victim.write_text("dear")
    for name in (f".{file.name}.{os.getpid()}", f"{file.name}.tmp", f".{file.name}.part"):
        (file.parent / name).symlink_to(victim)
    tuned.store(entry(kernel(), another(kernel())))
    assert victim.read_text() == "dear"
    assert len(tuned.entries()) == 1


def test_what_is_too_large_is_not_read(file: Path) -> None:
    with file.open("ab") as end:
        end.truncate(200 << 20)
    begin = time.perf_counter()
    with pytest.warns(tuned.TunedWarning, match="it is larger than 4 MiB"):
        assert tuned.entries() == ()
    assert time.perf_counter() - begin < 0.5


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 60_000,
        b"{" * 1000,
        b'{"key":' * 8000,
        b"1" * 60_000,
        b"x" * 3_900_000,
        b"[],\n" * 999_999,
        b"{}\n" * 999_999,
    ],
)
def test_no_line_fails_or_takes_long(file: Path, line: bytes) -> None:
    file.write_bytes(line + b"\n" + file.read_bytes())
    begin = time.perf_counter()
    assert len(tuned.entries()) == 1
    assert time.perf_counter() - begin < 6
    begin = time.perf_counter()
    assert len(tuned.entries()) == 1
    assert time.perf_counter() - begin < 0.1


@pytest.mark.parametrize(
    "change",
    [
        {"threads": 10**400},
        {"threads": -1},
        {"default_us": float("nan")},
        {"tuned_us": float("inf")},
        {"call": "Op \x1b[2J"},
        {"cpu": "\ud800"},
        {"schedule": "unroll"},
        {"schedule": {"unroll": 1}},
        {"schedule": ["unroll x\n"]},
        {"more": 1},
    ],
)
def test_entries_that_nothing_wrote(file: Path, change: dict[str, object]) -> None:
    fields = dataclasses.asdict(tuned.entries()[0])
    file.write_text(json.dumps({**fields, **change}) + "\n")
    assert tuned.entries() == ()


ABSURD = {
    "split k 65536 tail=guard -> a, b\nvectorize b": "the loop 'b' would have 65536 lanes (at most 512)",
    "unroll no_such_loop": "unroll: there is no loop 'no_such_loop'",
    "unroll y\n" * 501: "a schedule has more than 500 steps",
    "no_such_step": "there is no step 'no_such_step'",
}


@pytest.mark.parametrize("text", ABSURD)
def test_an_absurd_schedule_is_marked_and_the_default_built(text: str) -> None:
    given = kernel()
    tuned.store(dataclasses.replace(tuned.entries()[0], schedule=tuple(text.strip().split("\n"))))
    assert specialize.build(Compilation(given, toolchain.host())).kernel.name == given.name
    (kept,) = tuned.entries()
    assert ABSURD[text] in kept.refused


def test_a_schedule_that_cannot_be_built_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: whatever comes after the schedule fails on it."""
    given, host = kernel(), toolchain.host()
    made: list[object] = []

    def make(_: object, scheduled: object) -> str:
        made.append(scheduled)
        if len(made) == 1:
            raise UserError("no\x1b[2J\nmore")
        return "made"

    assert tuned.build(given, host, make) == "made"
    assert len(made) == 2
    assert tuned.entries()[0].refused == "no[2J"
    assert tuned.build(given, host, make) == "made"
    assert len(made) == 3


def test_damaged_files_change_nothing_but_the_schedule(file: Path) -> None:
    """Random bytes changed: entries are read or passed over, and kernels are built all the same."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    choose = random.Random(seed)
    right = file.read_bytes()
    given, host = kernel(), toolchain.host()
    for _ in range(150):
        data = bytearray(right)
        for _ in range(choose.choice((1, 1, 2, 5, 50))):
            at = choose.randrange(len(data))
            data[at : at + choose.randrange(3)] = choose.choice(
                (b"", b'"', b"}", b"\\u0000", bytes([choose.randrange(256)]))
            )
        file.write_bytes(data)
        schedule, after = tuned.scheduled(given, host)
        assert len(after.outputs) == len(given.outputs)
        assert apply(given, schedule) == after


def test_no_more_is_written_than_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuned, "LIMIT", 1 << 14)
    first = tuned.entries()[0]
    tuned.write(dataclasses.replace(first, key=f"{n:016x}") for n in range(100))
    kept = tuned.entries()
    assert 5 < len(kept) < 100
    assert kept[-1].key == f"{99:016x}"
