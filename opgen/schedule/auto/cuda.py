"""The default schedule of one nest for a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.schedule.auto.nests import Nest, contiguous_loop
from opgen.schedule.auto.trial import Trial
from opgen.schedule.cost.calibration import GPU_FUSED, GPU_THREADS, GPU_WARP
from opgen.schedule.steps import Bind, Reorder, Split


@dataclass(frozen=True)
class CudaNest:
    nest: Nest
    trial: Trial

    def run(self) -> bool:
        """The consecutive (else the innermost) loop over threads, everything around it over blocks; whether one is."""
        names = self.nest.names
        candidates = dict.fromkeys((contiguous_loop(self.nest) or names[-1], *reversed(names)))
        return any(self._spread(along) for along in candidates)

    def _spread(self, along: str) -> bool:
        threads = self._threads(along)
        block, thread = self.trial.fresh(f"{along}_o"), self.trial.fresh(f"{along}_t")
        others = [n for n in self.nest.names if n != along]
        order = () if along == self.nest.names[-1] else (Reorder((*others, block, thread)),)
        taken = self.trial.take(Split(along, threads, "guard", block, thread), *order, Bind(thread, "thread.x"))
        if taken:
            constant = all(self.nest.extent(n) is not None for n in others)
            around = [*others, block][: None if constant else GPU_FUSED]
            self.trial.fused_prefix(around, lambda name: Bind(name, "block.x"))
        return taken

    def _threads(self, along: str) -> int:
        extent = self.nest.extent(along)
        threads = GPU_THREADS if len(self.nest.names) == 1 else GPU_THREADS // 2
        while extent is not None and threads > GPU_WARP and threads // 2 >= extent:
            threads //= 2
        return threads
