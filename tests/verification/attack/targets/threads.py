"""Results for any number of threads."""

from __future__ import annotations

import random

import numpy as np

from opgen.compiler import sharing
from opgen.runtime.threads import set_num_threads
from tests.verification.attack.finding import FoundError, Target
from tests.verification.attack.targets.ops import module, right_call

COUNTS = (1, 2, 3, 5, 8)


class Threads(Target):
    """Comparisons over numbers of threads: results are the same, to the bit."""

    name = "threads"
    batch = 200
    seconds = 30.0
    memory = 0

    def prepare(self) -> None:
        self.module = module(self.folder)

    def attempt(self, choose: random.Random) -> None:
        sharing.WORTH_SHARING = 0.0  # however small: in this process only
        call = right_call(choose, 40)
        source = np.random.default_rng(choose.randrange(1 << 32))
        for name, value in call.arguments.items():
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                call.arguments[name] = np.asarray(source.standard_normal(value.shape), value.dtype)
        found = {}
        for count in COUNTS:
            set_num_threads(count)
            result = getattr(self.module, call.op)(**call.arguments)
            found[count] = b"".join(
                np.asarray(r).tobytes() for r in (result if isinstance(result, tuple) else (result,))
            )
        if len(set(found.values())) > 1:
            other = next(c for c in COUNTS if found[c] != found[1])
            raise FoundError(f"{call.op}: other bits by {other} threads", str(call))
