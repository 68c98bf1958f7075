"""The form of a cache entry: nothing but the very bytes that were stored is accepted."""

from __future__ import annotations

import hashlib

import pytest

from opgen.cache import entry

KEY = hashlib.sha256(b"a kernel").hexdigest()
OTHER = hashlib.sha256(b"another kernel").hexdigest()
PAYLOAD = bytes(range(40))


@pytest.mark.parametrize("payload", [b"", b"x", PAYLOAD, b"\0" * 5000])
def test_what_is_packed_comes_back(payload: bytes) -> None:
    assert entry.unpack(KEY, entry.pack(KEY, payload)) == payload


def test_every_changed_bit_is_noticed() -> None:
    content = entry.pack(KEY, PAYLOAD)
    for place in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            assert entry.unpack(KEY, bytes(damaged)) is None, (place, bit)


def test_every_cut_is_noticed() -> None:
    content = entry.pack(KEY, PAYLOAD)
    assert all(entry.unpack(KEY, content[:n]) is None for n in range(len(content)))


def test_more_than_was_stored_is_noticed() -> None:
    assert entry.unpack(KEY, entry.pack(KEY, PAYLOAD) + b"\0") is None


def test_the_entry_of_another_key_is_refused() -> None:
    assert entry.unpack(OTHER, entry.pack(KEY, PAYLOAD)) is None


def test_another_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = entry.pack(KEY, PAYLOAD)
    monkeypatch.setattr(entry, "FORMAT", entry.FORMAT + 1)
    assert entry.unpack(KEY, content) is None
