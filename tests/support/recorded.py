"""Small recorded TensorFlow calls."""

from __future__ import annotations

import numpy as np

from tests.golden.load import Case, cases


def small_case(op: str) -> Case:
    """A small recorded call of an op, with values that every type can hold."""
    usable = [c for c in cases() if c.op == op and _size(c) > 60]
    return min((c for c in usable if 0.5 < np.abs(c.reference).max(initial=0) < 100), key=_size)


def _size(case: Case) -> int:
    return sum(a.size for a in case.tensors.values())
