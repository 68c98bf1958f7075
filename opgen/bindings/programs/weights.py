"""The file of a program's weights, which is mapped where the program runs.

It begins with a page of its own: MAGIC, then the sha256 of the program and its constants, then the file's length in
bytes (64 bits, little-endian).  The constants follow, each at a multiple of ALIGNMENT bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from opgen.graph.ir.nodes import Constant
from opgen.graph.plan.lives import whole_lines

MAGIC = b"OPGENW1\n"
HEADER = 4096
"""Bytes before the first constant: a page."""


@dataclass(frozen=True)
class Weights:
    """Offsets of the constants, the length of the file, and the digest at its beginning."""

    offsets: tuple[int, ...]
    length: int
    digest: bytes


def layout(constants: Sequence[Constant], program: bytes) -> Weights:
    """Return the layout of the constants of a program, which its code identifies."""
    offsets, end = [], HEADER
    found = hashlib.sha256(program)
    for constant in constants:
        offsets.append(end)
        end += whole_lines(constant.data.array.nbytes)
        found.update(constant.data.digest.encode())
    return Weights(tuple(offsets), end, found.digest())


def pieces(weights: Weights, constants: Sequence[Constant]) -> Iterator[bytes | memoryview]:
    """Yield the content of the file, in order."""
    head = MAGIC + weights.digest + weights.length.to_bytes(8, "little")
    yield head + bytes(HEADER - len(head))
    for constant in constants:
        array = constant.data.array
        yield array.reshape(-1).view(np.uint8).data
        yield bytes(whole_lines(array.nbytes) - array.nbytes)
