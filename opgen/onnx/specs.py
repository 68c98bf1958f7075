"""The specs of ONNX's operators, among those that come with opgen."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from opgen.diagnostics import InternalError
from opgen.spec.shipped import folder as shipped

_FILE = "onnx/onnx_ops.op"


def specs_file() -> Path:
    """Return the file.  Raises InternalError if it is missing."""
    here = shipped()
    if here is None or not (here / _FILE).is_file():
        raise InternalError(f"the specs of ONNX's operators are missing: {_FILE}")
    return here / _FILE


@functools.cache
def specs_digest() -> str:
    """Return the sha256 of the specs that come with opgen."""
    digest = hashlib.sha256()
    for path in sorted(specs_file().parents[1].rglob("*.op")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()
