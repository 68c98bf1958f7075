"""Kernels' object code, kept on disk between processes.

The cache is in $OPGEN_CACHE_DIR, else $XDG_CACHE_HOME/opgen, else ~/.cache/opgen.  OPGEN_CACHE=off turns it off, and
OPGEN_CACHE_MIB bounds its size (least recently used entries go first).  Its contents never cause an error: a damaged
entry is rebuilt, and where nothing can be kept, each process builds for itself.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from opgen.cache import directory, entry
from opgen.cache.location import location as location
from opgen.cache.settings import shown, whole_number
from opgen.diagnostics import UserError

DEFAULT_MIB = 2048
STALE_SECONDS = 3600.0
"""A temporary file older than this was left by a writer that died."""
_SWEEP_EVERY = 64
"""Stores between two sweeps; a sweep also follows once the limit divided by this number is stored."""
_SWEEP_BYTES = 1 << 20
"""Bytes that must be stored before their amount triggers a sweep."""
_ENTRY = re.compile(r"[0-9a-f]{64}\.(?:kernel|array)")
_TEMPORARY = re.compile(
    r"\.(?:[0-9a-f]{64}(?:\.(?:kernel|array))?|(?:machine|observed)-[0-9a-f]{16}\.json|tuned\.jsonl)\.[0-9]+\.[0-9a-f]+\.part"
)


def array_name(key: str) -> str:
    """Return the name of an array's file (`opgen.runtime.memory.mapped`)."""
    return f"{key}.array"


class CacheWarning(UserWarning):
    """The kernel cache is not used, and each process builds its own kernels."""


@dataclass(frozen=True)
class CacheStats:
    """Contents of the cache on disk, and this process's hits and misses."""

    entries: int
    bytes: int
    hits: int
    misses: int


@dataclass(frozen=True)
class _File:
    name: str
    bytes: int
    used: float


class KernelCache:
    """Payloads by key in one directory, bounded in size.  Safe to use from many threads and processes at once."""

    def __init__(self, path: Path | None, limit: int = DEFAULT_MIB << 20) -> None:
        """Open the cache at `path`, bounded to `limit` bytes; with None it keeps nothing."""
        self.path = path
        self.limit = limit
        self._hits = 0
        self._misses = 0
        self._stores = 0
        self._stored = 0
        self._warned = False

    def load(self, key: str) -> bytes | None:
        """Return the payload stored under a key, or None.  An entry that is not exactly as stored is removed."""
        payload = self._load(key)
        if payload is None:
            self._misses += 1
        else:
            self._hits += 1
        return payload

    def _load(self, key: str) -> bytes | None:
        if self.path is None:
            return None
        try:
            with directory.opened(self.path, create=False) as d:
                content = directory.read(d, f"{key}.kernel")
                if content is None:
                    return None
                payload = entry.unpack(key, content)
                if payload is None:
                    directory.remove(d, f"{key}.kernel")
                return payload
        except directory.UntrustedError as reason:
            self._warn(str(reason))
        except OSError:
            pass
        return None

    def store(self, key: str, payload: bytes) -> bool:
        """Keep a payload; return True if that succeeded."""
        return self.store_file(f"{key}.kernel", entry.pack(key, payload))

    def store_file(self, name: str, *content: bytes | memoryview) -> bool:
        """Keep a file under an entry's file name; return True if that succeeded."""
        if self.path is None:
            return False
        try:
            with directory.opened(self.path, create=True) as d:
                directory.write(d, name, *content)
                self._stores += 1
                self._stored += sum(map(len, content))
                if self._stores % _SWEEP_EVERY == 1 or self._stored > max(self.limit // _SWEEP_EVERY, _SWEEP_BYTES):
                    self._stored = 0
                    self._sweep(d)
        except directory.UntrustedError as reason:
            self._warn(str(reason))
            return False
        except OSError:
            return False
        return True

    def size_of(self, name: str) -> int | None:
        """Return the size of a file in bytes; None if it does not exist."""
        if self.path is None:
            return None
        try:
            with directory.opened(self.path, create=False) as d:
                return os.stat(name, dir_fd=d, follow_symlinks=False).st_size
        except (OSError, directory.UntrustedError):
            return None

    def sweep(self) -> None:
        """Remove files of dead writers, and the least recently used entries while the cache is over its limit."""
        if self.path is None:
            return
        try:
            with directory.opened(self.path, create=False) as d:
                self._sweep(d)
        except (OSError, directory.UntrustedError):
            return

    def _sweep(self, d: int) -> None:
        now = time.time()
        for file in _files(d, _TEMPORARY):
            if now - file.used > STALE_SECONDS:
                directory.remove(d, file.name)
        entries = sorted(_files(d, _ENTRY), key=lambda f: f.used)
        excess = sum(f.bytes for f in entries) - self.limit
        for file in entries:
            if excess <= 0:
                return
            directory.remove(d, file.name)
            excess -= file.bytes

    def clear(self) -> int:
        """Remove every entry (and no other file); return their number."""
        if self.path is None:
            return 0
        try:
            with directory.opened(self.path, create=False) as d:
                for file in list(_files(d, _TEMPORARY)):
                    directory.remove(d, file.name)
                return sum(directory.remove(d, file.name) for file in list(_files(d, _ENTRY)))
        except (OSError, directory.UntrustedError):
            return 0

    def stats(self) -> CacheStats:
        """Return counts of the directory and of this process."""
        entries: list[_File] = []
        if self.path is not None:
            try:
                with directory.opened(self.path, create=False) as d:
                    entries = list(_files(d, _ENTRY))
            except (OSError, directory.UntrustedError):
                entries = []
        return CacheStats(len(entries), sum(f.bytes for f in entries), self._hits, self._misses)

    def health(self) -> str:
        """Return `ok`, or why nothing can be kept; the directory is created if it does not exist."""
        if self.path is None:
            return "off"
        probe = f".{'0' * 64}.{os.getpid()}.{os.urandom(6).hex()}.part"
        try:
            with directory.opened(self.path, create=True) as d:
                directory.write(d, probe, b"opgen")
                directory.remove(d, probe)
        except directory.UntrustedError as reason:
            return f"not used: {reason}"
        except OSError as error:
            return f"not writable: {error.strerror or error}"
        return "ok"

    def _warn(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(f"the kernel cache {self.path} is not used: {reason}", CacheWarning, stacklevel=4)


def _files(d: int, pattern: re.Pattern[str]) -> Iterator[_File]:
    """Yield the directory's own files whose names match; a file that vanishes meanwhile is skipped."""
    for name in os.listdir(d):
        if pattern.fullmatch(name):
            try:
                status = os.stat(name, dir_fd=d, follow_symlinks=False)
            except OSError:
                continue
            yield _File(name, status.st_size, status.st_mtime)


# The cache of this process ---------------------------------------------------------------------------------------


def _limit() -> int:
    text = os.environ.get("OPGEN_CACHE_MIB", "").strip()
    number = whole_number(text) if text else DEFAULT_MIB
    if number is None:
        raise UserError(f"OPGEN_CACHE_MIB: expected a whole number of MiB, given {shown(text)}")
    return number << 20


@functools.lru_cache(maxsize=16)
def _cache_at(path: Path | None, limit: int) -> KernelCache:
    return KernelCache(path, limit)


def default() -> KernelCache:
    """Return the cache that the environment names (read each time, so that it can change)."""
    return _cache_at(location(), _limit())


def clear() -> int:
    """Remove every entry of the default cache; return their number."""
    return default().clear()


def stats() -> CacheStats:
    """Return the default cache's contents, and this process's hits and misses."""
    return default().stats()


# Keys ------------------------------------------------------------------------------------------------------------


def key_of(parts: Mapping[str, str]) -> str:
    """Return the hexadecimal sha256 of named texts.  Each is hashed with its length: no text can pose as two."""
    digest = hashlib.sha256()
    for name in sorted(parts):
        for text in (name, parts[name]):
            data = text.encode()
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
    return digest.hexdigest()
