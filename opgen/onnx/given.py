"""A model as its caller gives it: a file that stays open, or bytes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from opgen import files
from opgen.files import FileRefusedError
from opgen.onnx.external import Folder
from opgen.onnx.opened import ChangedError, OpenFile, digest

LIMIT = (1 << 31) - 1
"""The most bytes of a message, by the format's own rule."""


@dataclass(frozen=True)
class Opened:
    """A model's opened file; `folder` may contain its external data, None if it came from no file."""

    name: str
    held: OpenFile | bytes
    folder: Folder | None

    @property
    def size(self) -> int:
        """Return its size in bytes, without external data."""
        return len(self.held) if isinstance(self.held, bytes) else self.held.size

    def content(self) -> bytes:
        """Return its bytes.  Raises FileRefusedError."""
        return self._read(0, self.size)

    def digest(self) -> str:
        """Return a hash of its bytes.  Raises FileRefusedError."""
        return digest(self._read, self.size)

    def _read(self, offset: int, count: int) -> bytes:
        if isinstance(self.held, bytes):
            return self.held[offset : offset + count]
        try:
            return self.held.read(offset, count)
        except (OSError, ChangedError) as error:
            raise FileRefusedError(Path(self.name), getattr(error, "strerror", None) or "it was cut short") from error


def opened(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> Opened:
    """Return a model by its path, or its bytes.  Raises FileRefusedError."""
    if isinstance(source, bytes | bytearray | memoryview):
        return Opened("<bytes>", bytes(source), None)
    path = Path(source)
    file = OpenFile(files.opened(path))
    if file.size > LIMIT:
        raise FileRefusedError(path, f"it is larger than {LIMIT / files.MIB:g} MiB")
    return Opened(str(path), file, Folder(path))
