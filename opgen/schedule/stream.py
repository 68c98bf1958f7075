"""stream: non-temporal stores of a result."""

from __future__ import annotations

from dataclasses import replace

from opgen.diagnostics import did_you_mean
from opgen.loop.nodes import Kernel
from opgen.loop.walk import loads
from opgen.schedule.declaration import Step, primitive
from opgen.schedule.errors import ScheduleError
from opgen.schedule.values import BufferName


@primitive("memory", "stream output")
class Stream(Step):
    """Stores past the caches (x86) where whole vectors lie at multiples of their size."""

    output: BufferName

    def run(self, kernel: Kernel) -> Kernel:
        return stream(kernel, self.output)


def stream(kernel: Kernel, buffer: str) -> Kernel:
    """Store to an output by non-temporal stores, where whole vectors are stored at multiples of their size.

        output: float32[8, 112, 112, 32]  ->  output: float32[8, 112, 112, 32] streamed

    A cache line that is stored is then neither read before nor kept.  This gains if the last cache does not hold it
    anyway, and loses if it is read again soon.  The kernel itself must not read it.
    """
    known = [o.name for o in kernel.outputs]
    if buffer not in known:
        raise ScheduleError(f"stream {buffer}: there is no such output", did_you_mean(buffer, known))
    if any(e.buffer == buffer for e in loads(kernel.body)):
        raise ScheduleError(f"stream {buffer}: the kernel reads it too")
    outputs = tuple(replace(o, space="streamed") if o.name == buffer else o for o in kernel.outputs)
    return replace(kernel, outputs=outputs)
