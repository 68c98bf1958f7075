"""What an attack is, and what it finds."""

from __future__ import annotations

import random
import re
import traceback
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from opgen.diagnostics import InternalError, OpgenError


class FoundError(Exception):
    """Something that must not be: `kind` groups it with others, `detail` shows this one."""

    def __init__(self, kind: str, detail: str) -> None:
        self.kind = kind
        self.detail = detail
        super().__init__(f"{kind}\n{detail}")


@dataclass(frozen=True)
class Finding:
    """A failed attempt: `python -m tests.verification.attack TARGET --seed SEED --attempts 1` repeats it."""

    target: str
    seed: int
    kind: str
    detail: str

    @property
    def group(self) -> str:
        """The kind without its numbers."""
        return re.sub(r"0x[0-9a-f]+|\d+", "#", self.kind)


class Target(ABC):
    """A surface and how it is attacked.  Each attempt follows from its random source alone.

    `batch` attempts share a process; one of them may take `seconds` of processor time, and its process `memory` bytes
    more than it began with (0: as much as it likes).  It may wait for other processes for `patience` seconds.
    """

    name: ClassVar[str]
    batch: ClassVar[int] = 1
    seconds: ClassVar[float] = 5.0
    memory: ClassVar[int] = 512 << 20
    patience: ClassVar[float] = 60.0

    def __init__(self, folder: Path) -> None:
        """`folder` is empty, and lives as long as the target."""
        self.folder = folder

    @abstractmethod
    def prepare(self) -> None:
        """Make what all attempts share, in the process that all others are forked from: it must start no thread."""

    @abstractmethod
    def attempt(self, choose: random.Random) -> None:
        """One attempt.  Raises FoundError, or anything else, if something is wrong."""


def is_typed(error: BaseException) -> bool:
    """Whether an error is one that a mistake should draw."""
    return isinstance(error, OpgenError) and not isinstance(error, InternalError)


def described(error: BaseException) -> str:
    """The class of an unexpected error and where it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    place = next((f for f in reversed(frames) if "opgen" in Path(f.filename).parts), frames[-1] if frames else None)
    where = "" if place is None else f" at {Path(place.filename).name}:{place.lineno} ({place.name})"
    return f"{type(error).__name__}{where}: {str(error)[:200]}"
