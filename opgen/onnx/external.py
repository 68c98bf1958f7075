"""Data of a model that are in files of their own: in the model's folder only.

A model can name any path, and its results may go anywhere: a path that leads out of the folder would leak any file that
its user may read.  Links are followed while they stay in the folder.  If the model itself is a link, they may also stay
in the folder of its file.  The cache of Hugging Face needs this: `snapshots/*/model.onnx` and its data are links into
one folder `blobs`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from opgen.onnx.opened import ChangedError, OpenFile

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ExternalDataError(Exception):
    """Data that may not be read, or are not there; the text is the reason."""


class Folder:
    """The folders that may hold a model's external data; `files` are those that were opened."""

    def __init__(self, model: Path) -> None:
        """`model` is the model's file."""
        self._path = model.parent
        self._roots = tuple(dict.fromkeys((_real(model.parent), _real(model).parent)))
        self.files: dict[str, OpenFile] = {}

    def file(self, location: str) -> OpenFile:
        """Open a plain file by its path within the model's folder.  Raises ExternalDataError."""
        found = self.files.get(location)
        if found is None:
            descriptor = self._opened(location)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise ExternalDataError(f"'{location}' is no plain file")
            found = self.files[location] = OpenFile(descriptor)
        return found

    def _opened(self, location: str) -> int:
        """Return a descriptor of a file."""
        steps = [step for step in location.split("/") if step != "."]
        if not steps or any(step in ("", "..") or "\0" in step or "\\" in step for step in steps):
            raise ExternalDataError(f"'{location}' is no path within the model's folder")
        try:
            real = _real(self._path.joinpath(*steps))
            for root in self._roots:
                if root in real.parents:
                    return _within(root, real.relative_to(root).parts)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ExternalDataError(f"'{location}' cannot be read in the model's folder: {why}") from error
        reason = "is a link that leads out of the model's folder; copy the file that it leads to into the folder"
        raise ExternalDataError(f"'{location}' {reason}")


def mapped(folder: Folder | None, entries: Mapping[str, str], wanted: int) -> memoryview:
    """Map `wanted` bytes given by `location`, `offset` and `length`, without reading them.

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
    except ChangedError as error:
        raise ExternalDataError(f"'{location}' was cut short since it was opened") from error
    except OSError as error:
        raise ExternalDataError(f"'{location}' cannot be mapped: {error.strerror}") from error


def _number(entries: Mapping[str, str], name: str, default: int) -> int:
    written = entries.get(name)
    if written is None:
        return default
    if not (written.isascii() and written.isdigit() and len(written) <= 18):
        raise ExternalDataError(f"its {name} is no number of bytes")
    return int(written)


def _real(path: Path) -> Path:
    """Return a path without links, whether there is anything or not."""
    return Path(os.path.realpath(path))


def _within(root: Path, steps: Sequence[str]) -> int:
    """Open a file step by step, so that no step is a link: somebody may have changed one since they were followed."""
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for at, step in enumerate(steps):
        try:
            inner = os.open(step, _FILE if at + 1 == len(steps) else _FOLDER, dir_fd=here)
        finally:
            os.close(here)
        here = inner
    return here
