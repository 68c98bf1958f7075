"""The kernel cache: private, bounded, and never the reason for an error or for wrong code."""

from __future__ import annotations

import hashlib
import os
import stat
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from opgen.cache import entries as cache
from opgen.cache import entry
from opgen.cache.entries import CacheStats, CacheWarning, KernelCache, key_of
from opgen.diagnostics import UserError
from opgen.diagnostics.describe import describe

KEY = hashlib.sha256(b"a kernel").hexdigest()
PAYLOAD = os.urandom(500)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def numbered(n: int) -> str:
    return hashlib.sha256(str(n).encode()).hexdigest()


@pytest.fixture
def store(cache_directory: Path) -> KernelCache:
    return KernelCache(cache_directory)


def as_ordinary_user(work: Callable[[], bool]) -> bool:
    """What `work` gives in a child process that is not root (whom no permission binds)."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            status = 0 if work() else 1
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 1)
    return os.waitstatus_to_exitcode(status) == 0


# What is kept ----------------------------------------------------------------------------------------------------


def test_a_payload_comes_back_in_this_and_another_cache_object(store: KernelCache, cache_directory: Path) -> None:
    assert store.load(KEY) is None
    assert store.store(KEY, PAYLOAD)
    assert store.load(KEY) == PAYLOAD
    assert KernelCache(cache_directory).load(KEY) == PAYLOAD


def test_statistics(store: KernelCache) -> None:
    store.load(KEY)
    store.store(KEY, PAYLOAD)
    store.load(KEY)
    store.load(KEY)
    size = len(entry.pack(KEY, PAYLOAD))
    assert store.stats() == CacheStats(entries=1, bytes=size, hits=2, misses=1)


def test_directory_and_files_are_private(cache_directory: Path) -> None:
    deep = cache_directory / "a" / "b"
    KernelCache(deep).store(KEY, PAYLOAD)
    for directory in (cache_directory, cache_directory / "a", deep):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert [stat.S_IMODE(f.stat().st_mode) for f in deep.iterdir()] == [0o600]


def test_clear_removes_entries_and_nothing_else(store: KernelCache, cache_directory: Path) -> None:
    for n in range(5):
        store.store(numbered(n), PAYLOAD)
    (cache_directory / "notes.txt").write_text("mine")
    assert store.clear() == 5
    assert [f.name for f in cache_directory.iterdir()] == ["notes.txt"]
    assert store.load(numbered(0)) is None


# Damage ----------------------------------------------------------------------------------------------------------

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "header cut": lambda content: content[:20],
    "payload cut": lambda content: content[:-1],
    "longer": lambda content: content + b"x",
    "magic": lambda content: b"X" + content[1:],
    "format": lambda content: content[:8] + b"\xff" + content[9:],
    "length": lambda content: content[:12] + b"\xff" * 8 + content[20:],
    "key": lambda content: content[:20] + bytes(32) + content[52:],
    "digest": lambda content: content[:52] + bytes(32) + content[84:],
    "payload": lambda content: content[:-3] + bytes([content[-3] ^ 1]) + content[-2:],
    "zeros": lambda content: bytes(len(content)),
    "something else": lambda content: b"\x7fELF" + os.urandom(3000),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_entry_is_not_trusted_and_can_be_stored_again(
    kind: str, store: KernelCache, cache_directory: Path
) -> None:
    store.store(KEY, PAYLOAD)
    file = cache_directory / f"{KEY}.kernel"
    file.write_bytes(DAMAGE[kind](file.read_bytes()))
    assert store.load(KEY) is None
    assert not file.exists()
    assert store.store(KEY, PAYLOAD)
    assert store.load(KEY) == PAYLOAD


def test_the_entry_of_another_key_under_this_name_is_not_trusted(store: KernelCache, cache_directory: Path) -> None:
    store.store(numbered(1), PAYLOAD)
    (cache_directory / f"{numbered(1)}.kernel").rename(cache_directory / f"{KEY}.kernel")
    assert store.load(KEY) is None


def test_what_is_no_plain_file_is_not_read(store: KernelCache, cache_directory: Path, tmp_path: Path) -> None:
    store.store(numbered(1), PAYLOAD)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(entry.pack(KEY, PAYLOAD))
    file = cache_directory / f"{KEY}.kernel"
    file.symlink_to(elsewhere)
    assert store.load(KEY) is None
    file.unlink()
    os.mkfifo(file)
    assert store.load(KEY) is None
    file.unlink()
    file.mkdir()
    assert store.load(KEY) is None
    assert not store.store(KEY, PAYLOAD)
    assert list(cache_directory.glob("*.part")) == []


def test_a_file_that_others_may_write_is_not_trusted(store: KernelCache, cache_directory: Path) -> None:
    store.store(KEY, PAYLOAD)
    (cache_directory / f"{KEY}.kernel").chmod(0o622)
    assert store.load(KEY) is None
    assert store.store(KEY, PAYLOAD)
    assert store.load(KEY) == PAYLOAD


# Directories that are not ours -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777, 0o702])
def test_a_directory_that_others_may_write_is_refused(mode: int, store: KernelCache, cache_directory: Path) -> None:
    store.store(KEY, PAYLOAD)
    cache_directory.chmod(mode)
    expected = f"the kernel cache {cache_directory} is not used: others may write to it (mode {mode:04o})"
    with pytest.warns(CacheWarning) as caught:
        assert store.load(KEY) is None
    assert [str(w.message) for w in caught] == [expected]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not store.store(KEY, PAYLOAD)
    assert store.health() == f"not used: others may write to it (mode {mode:04o})"


@needs_root
def test_a_directory_of_someone_else_is_refused(store: KernelCache, cache_directory: Path) -> None:
    store.store(KEY, PAYLOAD)
    os.chown(cache_directory, 12345, -1)
    with pytest.warns(CacheWarning, match="it belongs to user 12345, not to user 0"):
        assert store.load(KEY) is None
    assert not store.store(numbered(2), PAYLOAD)
    assert sorted(f.name for f in cache_directory.iterdir()) == [f"{KEY}.kernel"]


@needs_root
def test_a_file_of_someone_else_is_not_trusted(store: KernelCache, cache_directory: Path) -> None:
    store.store(KEY, PAYLOAD)
    os.chown(cache_directory / f"{KEY}.kernel", 12345, -1)
    assert store.load(KEY) is None


# Nowhere to keep anything ----------------------------------------------------------------------------------------


def test_a_read_only_directory_is_read_and_not_written(tmp_path: Path) -> None:
    for parent in (*tmp_path.parents, tmp_path):
        if parent.stat().st_uid == os.geteuid() and not stat.S_IMODE(parent.stat().st_mode) & 0o001:
            parent.chmod(0o755)
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    shelf.chmod(0o777)
    path = shelf / "cache"

    def work() -> bool:
        store = KernelCache(path)
        stored = store.store(KEY, PAYLOAD)
        path.chmod(0o500)
        refused = not store.store(numbered(1), PAYLOAD)
        return stored and refused and store.load(KEY) == PAYLOAD and store.health() == "not writable: Permission denied"

    assert as_ordinary_user(work)


def test_a_home_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    for path in (blocker / "cache", blocker, Path("/proc/opgen/cache")):
        store = KernelCache(path)
        assert not store.store(KEY, PAYLOAD)
        assert store.load(KEY) is None
        assert store.stats() == CacheStats(0, 0, 0, 1)
        assert store.clear() == 0
        assert store.health().startswith("not writable: ")


def test_a_full_disk_keeps_nothing_and_leaves_nothing(store: KernelCache, cache_directory: Path) -> None:
    resource = pytest.importorskip("resource")
    store.store(KEY, PAYLOAD)

    def work() -> bool:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        return not store.store(numbered(1), os.urandom(100_000))

    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert [f.name for f in cache_directory.iterdir()] == [f"{KEY}.kernel"]
    assert store.load(KEY) == PAYLOAD


def test_a_cache_that_is_off_keeps_nothing() -> None:
    store = KernelCache(None)
    assert not store.store(KEY, PAYLOAD)
    assert store.load(KEY) is None
    assert (store.health(), store.clear(), store.stats()) == ("off", 0, CacheStats(0, 0, 0, 1))


def test_a_directory_removed_while_in_use_is_made_again(store: KernelCache, cache_directory: Path) -> None:
    store.store(KEY, PAYLOAD)
    for file in cache_directory.iterdir():
        file.unlink()
    cache_directory.rmdir()
    assert store.load(KEY) is None
    assert store.store(KEY, PAYLOAD)
    assert store.load(KEY) == PAYLOAD


# The bound -------------------------------------------------------------------------------------------------------


def test_the_entries_used_longest_ago_go_first(cache_directory: Path) -> None:
    size = len(entry.pack(KEY, PAYLOAD))
    store = KernelCache(cache_directory, limit=3 * size)
    for n in range(6):
        store.store(numbered(n), PAYLOAD)
        os.utime(cache_directory / f"{numbered(n)}.kernel", (1000 + n, 1000 + n))
    assert store.load(numbered(1)) == PAYLOAD
    store.sweep()
    assert [store.load(numbered(n)) is not None for n in range(6)] == [False, True, False, False, True, True]


def test_storing_keeps_within_the_bound(cache_directory: Path) -> None:
    size = len(entry.pack(KEY, PAYLOAD))
    store = KernelCache(cache_directory, limit=10 * size)
    for n in range(200):
        store.store(numbered(n), PAYLOAD)
    assert store.stats().entries <= 10 + 64


def test_what_dead_writers_left_is_swept_and_what_live_ones_write_is_not(
    store: KernelCache, cache_directory: Path
) -> None:
    store.store(KEY, PAYLOAD)
    old, new = (cache_directory / f".{numbered(n)}.77.abcdef.part" for n in range(2))
    for file in (old, new):
        file.write_bytes(b"half")
    past = time.time() - cache.STALE_SECONDS - 60
    os.utime(old, (past, past))
    store.sweep()
    assert (old.exists(), new.exists()) == (False, True)
    assert store.load(KEY) == PAYLOAD


# Where it lies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"OPGEN_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, Path("/b/opgen")),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/c"}, Path("/c/.cache/opgen")),
        ({"HOME": "/c"}, Path("/c/.cache/opgen")),
        ({"OPGEN_CACHE": "off", "OPGEN_CACHE_DIR": "/a"}, None),
        ({"OPGEN_CACHE": "OFF", "HOME": "/c"}, None),
        ({"OPGEN_CACHE": "on", "HOME": "/c"}, Path("/c/.cache/opgen")),
    ],
)
def test_location(environment: dict[str, str], expected: Path | None) -> None:
    assert cache.location(environment) == expected


def test_words_without_meaning_are_refused() -> None:
    with pytest.raises(UserError, match="OPGEN_CACHE is 'offf', expected on or off; did you mean 'off'"):
        cache.location({"OPGEN_CACHE": "offf", "HOME": "/c"})


def test_the_environment_is_looked_at_each_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPGEN_CACHE_DIR", str(tmp_path / "x"))
    monkeypatch.setenv("OPGEN_CACHE_MIB", "3")
    assert (cache.default().path, cache.default().limit) == (tmp_path / "x", 3 << 20)
    monkeypatch.setenv("OPGEN_CACHE", "off")
    assert cache.default().path is None


@pytest.mark.parametrize("text", ["many", "-1", "1.5", "²", "9" * 5000])
def test_a_size_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("OPGEN_CACHE_MIB", text)
    with pytest.raises(UserError, match=f"OPGEN_CACHE_MIB: expected a whole number of MiB, given {describe(text)}"):
        cache.default()


# Keys ------------------------------------------------------------------------------------------------------------


def test_a_key_depends_on_every_name_and_text_and_not_on_their_order() -> None:
    parts = {"ir": "kernel", "cpu": "x", "features": "+a,+b"}
    keys = {
        key_of(parts),
        key_of({**parts, "ir": "kernel "}),
        key_of({**parts, "cpu": "y"}),
        key_of({**parts, "features": "+a,-b"}),
        key_of({**parts, "more": ""}),
        key_of({"ir": "kernel", "cpu": "x+a", "features": ",+b"}),
    }
    assert len(keys) == 6
    assert key_of(dict(reversed(parts.items()))) == key_of(parts)
    assert len(key_of({})) == 64
