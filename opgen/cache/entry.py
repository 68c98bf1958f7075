"""The format of a kernel cache entry: a header that authenticates the payload, and the payload.

    magic (8 bytes), format (4), length of the payload (8), key (32), sha256 of the payload (32), payload

Integers are little-endian.  `unpack` returns None for anything that is not, to the last byte, an entry of that key.
"""

from __future__ import annotations

import hashlib
import struct

FORMAT = 1
_MAGIC = b"OPGENKRN"
_HEADER = struct.Struct("<8sIQ32s32s")


def pack(key: str, payload: bytes) -> bytes:
    """Return the bytes of an entry; `key` is 64 hexadecimal digits."""
    digest = hashlib.sha256(payload).digest()
    return _HEADER.pack(_MAGIC, FORMAT, len(payload), bytes.fromhex(key), digest) + payload


def unpack(key: str, content: bytes) -> bytes | None:
    """Return the payload, or None if the content is damaged, truncated, too long, or another key's."""
    if len(content) < _HEADER.size:
        return None
    payload = content[_HEADER.size :]
    expected = (_MAGIC, FORMAT, len(payload), bytes.fromhex(key), hashlib.sha256(payload).digest())
    return payload if _HEADER.unpack_from(content) == expected else None
