"""Data of a model that lie in files of their own: beside the model's, and nowhere else."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from opgen.onnx.opened import OpenFile

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ExternalDataError(Exception):
    """Data that may not be read, or are not there; the text is the reason."""


class Folder:
    """Where a model's external data may lie; `files` are those that were opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.files: dict[str, OpenFile] = {}

    def file(self, location: str) -> OpenFile:
        """A plain file in it.  No link is followed, and no way leads out of the folder.  Raises ExternalDataError."""
        found = self.files.get(location)
        if found is None:
            descriptor = _opened(self._path, location)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise ExternalDataError(f"'{location}' is no plain file")
            found = self.files[location] = OpenFile(descriptor)
        return found


def mapped(folder: Folder | None, entries: Mapping[str, str], wanted: int) -> memoryview:
    """The `wanted` bytes that `location`, `offset` and `length` tell, mapped and not read.

    Raises ExternalDataError.
    """
    location = entries.get("location", "")
    offset, length = _number(entries, "offset", 0), _number(entries, "length", wanted)
    if length != wanted:
        raise ExternalDataError(f"'{location}' is said to hold {length} bytes of it, and its shape needs {wanted}")
    if folder is None:
        raise ExternalDataError(f"its data lie in '{location}', but the model came from no file")
    file = folder.file(location)
    if offset + length > file.size:
        raise ExternalDataError(f"'{location}' ends before byte {offset + length}, the end of its data")
    try:
        return file.mapped[offset : offset + length]
    except OSError as error:
        raise ExternalDataError(f"'{location}' cannot be mapped: {error.strerror}") from error


def _number(entries: Mapping[str, str], name: str, default: int) -> int:
    written = entries.get(name)
    if written is None:
        return default
    if not (written.isascii() and written.isdigit() and len(written) <= 18):
        raise ExternalDataError(f"its {name} is no number of bytes")
    return int(written)


def _opened(folder: Path, location: str) -> int:
    """A descriptor of the file, reached step by step from the folder so that no step is a link."""
    steps = location.split("/")
    if not location or any(step in ("", ".", "..") or "\0" in step or "\\" in step for step in steps):
        raise ExternalDataError(f"'{location}' is no path within the model's folder")
    try:
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for at, step in enumerate(steps):
            try:
                inner = os.open(step, _FILE if at + 1 == len(steps) else _FOLDER, dir_fd=here)
            finally:
                os.close(here)
            here = inner
        return here
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ExternalDataError(f"'{location}' cannot be read in the model's folder: {why}") from error
