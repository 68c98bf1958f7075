"""Numbers of a machine provided by its owner, in the file that OPGEN_MACHINE names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from opgen import files
from opgen.diagnostics import UserError, did_you_mean
from opgen.machine.fields import Number, flatten, is_flag, is_rate
from opgen.machine.model import typical

VARIABLE = "OPGEN_MACHINE"
LIMIT = 1 << 16
"""Largest size of the file, in bytes."""
LARGEST = 1e15
"""Upper bound of a machine's numbers, far from where sums and products of them overflow."""
_VECTORS = (16, 32, 64)


class MachineFileError(UserError, ValueError):
    """A file of a machine's numbers that cannot be read or understood."""


def read_override(path: Path) -> dict[str, Number]:
    """Return the numbers in a JSON file, by their dotted names.

    The file is an object with any of the model's fields: {"fma_per_second": 3.7e9, "l2": {"size": 2097152}}.  Raises
    MachineFileError.
    """
    try:
        document = files.document(path, LIMIT)
    except files.FileRefusedError as error:
        raise MachineFileError(f"{VARIABLE}: {error}") from error
    if not isinstance(document, dict):
        raise MachineFileError(f"{VARIABLE}: {path}: expected an object of numbers, given {json.dumps(document)[:40]}")
    known = flatten(typical())
    return {name: _number(path, name, value, known) for name, value in _flat(document)}


def _flat(document: dict[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in document.items():
        if isinstance(value, dict) and not prefix:
            yield from _flat(value, f"{name}.")
        else:
            yield prefix + name, value


def _number(path: Path, name: str, value: object, known: dict[str, Number]) -> Number:
    if name not in known:
        hint = did_you_mean(name, known) or f"it can have {', '.join(known)}"
        raise MachineFileError(f"{VARIABLE}: {path}: a machine has no '{name}'; {hint}")
    expected = _expected(name)
    if is_flag(name):
        if not isinstance(value, bool):
            raise _wrong(path, name, expected, value)
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(path, name, expected, value)
    if (
        not (0 < value <= LARGEST)
        or (is_rate(name) and value < 1)
        or (not is_rate(name) and not isinstance(value, int))
    ):
        raise _wrong(path, name, expected, value)
    if name == "vector_bytes" and value not in _VECTORS:
        raise _wrong(path, name, expected, value)
    return value


def _expected(name: str) -> str:
    if name == "vector_bytes":
        return "one of " + ", ".join(map(str, _VECTORS))
    if is_flag(name):
        return "true or false"
    return f"a {'number' if is_rate(name) else 'whole number'} from 1 to {LARGEST:g}"


def _wrong(path: Path, name: str, expected: str, value: object) -> MachineFileError:
    return MachineFileError(f"{VARIABLE}: {path}: '{name}': expected {expected}, given {json.dumps(value)[:40]}")
