"""What is kept between processes: kernels, models, tuned schedules, numbers of the machine."""

from __future__ import annotations

import os
import random
import shutil
import warnings

import numpy as np

from tests.verification.attack.finding import FoundError, Target
from tests.verification.attack.targets.damage import damage
from tests.verification.attack.targets.ops import Call, module, right_call


class Kept(Target):
    """Damaged entries of the cache, tuned schedules and numbers of the machine: calls give the same results."""

    name = "kept"
    seconds = 20.0
    memory = 1 << 30

    def prepare(self) -> None:
        """A cache as calls leave it, made in a process of its own: the one that forks must start no thread."""
        self.module = module(self.folder)
        self.calls = [right_call(random.Random(seed)) for seed in (1, 2, 3, 5)]
        self.results = [self.folder / f"result{n}.npy" for n in range(len(self.calls))]
        child = os.fork()
        if child == 0:
            try:
                self._fill()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        self.full = self.folder / "full"
        (self.folder / "cache").rename(self.full)

    def _fill(self) -> None:
        from opgen.compiler import machines, toolchain, tuned

        for call, path in zip(self.calls, self.results, strict=True):
            path.write_bytes(self._bytes(call))
        host = toolchain.host()
        machines.keep(host, {"fma_per_second": 3e9, "latency": 8})
        entry = tuned.Entry("0" * 16, "Product a=1", host.cpu, 1, 2.0, 1.0, ("parallel i", "split j 8 -> a, b"))
        tuned.write([entry])

    def _bytes(self, call: Call) -> bytes:
        found = getattr(self.module, call.op)(**call.arguments)
        return b"".join(np.asarray(r).tobytes() for r in (found if isinstance(found, tuple) else (found,)))

    def attempt(self, choose: random.Random) -> None:
        cache = self.folder / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        shutil.copytree(self.full, cache)
        cache.chmod(0o700)
        files = sorted(cache.iterdir())
        contents = [path.read_bytes() for path in files]
        done = [
            damage(path, contents, choose)
            for path in choose.sample(files, min(len(files), choose.choice((1, 2, 4, 20))))
        ]
        if choose.random() < 0.1:
            cache.chmod(choose.choice((0o777, 0o500, 0o000)))
        number = choose.randrange(len(self.calls))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self._bytes(self.calls[number])
        if found != self.results[number].read_bytes():
            raise FoundError("another result", "\n".join(done))
