"""The machine itself as a contestant: its variants do a known amount of work (`tools.bench.limits`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tools.bench.limits import VARIANTS, Loops
from tools.bench.workers.protocol import Call, Given, Library


class Limits(Library):
    name = "limits"
    version = ""
    variants = VARIANTS

    def __init__(self, threads: int) -> None:
        loops = Loops(threads)
        self._runs: dict[str, Callable[[], object]] = dict(zip(VARIANTS, (loops.multiply, loops.read), strict=True))

    def prepare(self, variant: str, case: dict[str, Any], given: Given) -> Call:
        return Call(self._runs[variant], _nothing, timed=True)


def _nothing(result: object) -> np.ndarray:
    return np.zeros(0)


def library(threads: int) -> Library:
    return Limits(threads)
