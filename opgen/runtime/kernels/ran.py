"""Runs of kernels, as `opgen.record` lists them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelRun:
    """A run of a kernel: for a call of `op`, or at a node of a model.

    `kernel` is the symbol of its machine code, `code_hash` the sha256 of the object file with it.  `algorithm` is None
    for the definition of the op.  A `specialized` kernel is for certain sizes.  `built` is True if this process built
    it, and False if it came from the cache.  `seconds` is None where only the whole run can be timed.
    """

    op: str
    kernel: str
    code_hash: str
    algorithm: str | None
    specialized: bool
    built: bool
    threads: int
    seconds: float | None
    node: str | None = None
