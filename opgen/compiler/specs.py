"""Resolved specs, kept in the kernel cache: parsing a text takes a fifth of a second, loading its model milliseconds.

Entries are pickled, and kept under everything that decides their contents.  Like those of `opgen.runtime.call.index`
they are verified in full, and are in a folder that belongs to the user alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opgen.cache import entries as cache
from opgen.cache import pickled
from opgen.compiler import toolchain

if TYPE_CHECKING:
    from opgen.spec.model.model import Module


def load(path: Path, text_hash: str | None) -> Module:
    """Return the model of a spec file; `text_hash` is the hash of its text and its imports (None: unknown, not kept).

    Raises DiagnosticError with all mistakes of the text.
    """
    from opgen.spec.model.model import Module

    if text_hash is None:
        return _read(path)
    parts = {"spec": text_hash, "path": str(path), "compiler": toolchain.compiler_fingerprint()}
    key = cache.key_of({"kind": "model", **parts})
    kept = pickled.take(key, Module)
    if kept is None:
        kept = _read(path)
        pickled.put(key, kept)
    return kept


def _read(path: Path) -> Module:
    try:
        from opgen.grad.load import load as read
    except ModuleNotFoundError as error:
        raise toolchain.missing(error) from error
    return read(path)
