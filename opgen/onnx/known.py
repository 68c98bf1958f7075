"""Models that a process read before: identified by a hash of their bytes, they are read again only when necessary.

The information for callers (the model's inputs and outputs) is kept under that hash, and so are its programs
(`opgen.graph.program.records`).  The file stays open: for sizes without a kept program, the model is read then.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opgen.cache import entries as cache
from opgen.cache import pickled
from opgen.compiler import toolchain
from opgen.files import FileRefusedError
from opgen.graph.ir.values import Array, Kind, Outline
from opgen.graph.program.records import Recall
from opgen.locks import Lock
from opgen.onnx.external import ExternalDataError
from opgen.onnx.given import opened
from opgen.onnx.opened import ChangedError
from opgen.onnx.specs import specs_digest

if TYPE_CHECKING:
    from opgen.graph.build.model import Model
    from opgen.graph.ir.nodes import Graph


@dataclass(frozen=True)
class _Head:
    """Cached facts about a model: its outline, its files of external data, the version of the package `onnx`.

    Each file has its name and a hash; the version is the one that read the model.
    """

    outline: Outline
    outside: tuple[tuple[str, str], ...]
    package: str


class KnownModel:
    """A model by its path or bytes, that is read when it must be."""

    def __init__(self, source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> None:
        """Opens it, and begins to hash it.  Raises FileRefusedError."""
        self._given = opened(source)
        self._lock = Lock()
        self._model: Model | None = None
        self._digest = ""
        self._hashing: threading.Thread | None = None
        if cache.default().path is not None and self._given.size <= cache.default().limit:
            self._hashing = threading.Thread(target=self._hash)
            self._hashing.start()

    def _hash(self) -> None:
        try:
            self._digest = self._given.digest()
        except FileRefusedError:  # who reads it next is told
            self._digest = ""

    def known(self) -> tuple[Outline, Recall | None]:
        """Return the callers' view of the model, and its programs if they are kept.

        Raises the errors of reading the model (`opgen.onnx.load.load`), if it was not read before.
        """
        if self._hashing is not None:
            self._hashing.join()
        if not self._digest:
            return self.model().outline, None
        key = cache.key_of({"model": self._digest, "opgen": toolchain.fingerprint("."), "specs": specs_digest()})
        head = pickled.take(key, _Head)
        if head is None or head.package not in (_package(), "") or self._outside(head) != head.outside:
            head = self._head()
            if head is None:
                return self.model().outline, None
            pickled.put(key, head)
        identity = cache.key_of({"model": key, "outside": repr(head.outside), "by": head.package})
        return head.outline, Recall(identity, self._changed)

    def resolve(self, kinds: Mapping[str, Kind], known: Mapping[str, Array]) -> Graph:
        """Return the graph for inputs of some kinds.

        Raises the errors of `opgen.graph.build.resolve`, and FileRefusedError, also if external data have changed.
        They are mapped, and programs of two versions of them are not one model's.
        """
        from opgen.graph.build.resolve import resolve

        model = self.model()
        for name in self._changed():
            raise FileRefusedError(Path(self._given.name).parent / name, "it has changed since it was opened")
        return resolve(model, kinds, known)

    def _changed(self) -> list[str]:
        """Return the files of external data that were written to since they were opened."""
        files = {} if self._given.folder is None else self._given.folder.files
        return sorted(name for name, file in files.items() if file.changed())

    def model(self) -> Model:
        """Return the model, read if it is not yet.  Raises FileRefusedError if its file has changed meanwhile."""
        from opgen.onnx.load import load_opened

        with self._lock:
            if self._model is None:
                if self._digest and self._given.digest() != self._digest:
                    raise FileRefusedError(Path(self._given.name), "it has changed since it was opened")
                self._model = load_opened(self._given)
            return self._model

    def _head(self) -> _Head | None:
        """Return the record to keep; None for a model that would fill the cache."""
        outline, folder = self.model().outline, self._given.folder
        files = {} if folder is None else folder.files
        if self._given.size + sum(file.size for file in files.values()) > cache.default().limit:
            return None
        return _Head(outline, tuple((name, file.digest()) for name, file in sorted(files.items())), _package())

    def _outside(self, head: _Head) -> tuple[tuple[str, str], ...] | None:
        """Return the files of external data that a model was read with, in their present state; None if they are
        missing.
        """
        folder = self._given.folder
        try:
            return tuple((name, folder.file(name).digest()) for name, _ in head.outside) if folder else ()
        except (ExternalDataError, ChangedError, OSError):
            return None


@functools.cache
def _package() -> str:
    """Return the version of the installed package `onnx`, without importing it; empty if there is none."""
    found = importlib.util.find_spec("onnx")
    if found is None or found.origin is None:
        return ""
    return ", ".join(sorted(p.name for p in Path(found.origin).parent.parent.glob("onnx-*.dist-info"))) or "unknown"
