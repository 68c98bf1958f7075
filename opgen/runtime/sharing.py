"""Which kernels are worth the threads that share their work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opgen.schedule.cost import seconds

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target
    from opgen.loop.nodes import Kernel

WORTH_SHARING = 2e-5
"""Seconds on one core, by an estimate that is two to three times what well scheduled kernels take.  To fork and join
takes a few microseconds where threads are awake, and several times as much where they are not.
"""


def is_for_one(kernel: Kernel, target: Target) -> bool:
    """Whether the thread that calls a (simplified) kernel is to do all its work, parallel loops or not."""
    return kernel.is_bound and seconds(kernel, target.machine) < WORTH_SHARING
