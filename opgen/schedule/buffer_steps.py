"""The steps of schedules that change how buffers of the kernel's own lie in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from opgen.loop.nodes import Kernel
from opgen.schedule.permute import permute
from opgen.schedule.pitch import pitch
from opgen.schedule.placed import Placed
from opgen.schedule.ring import ring
from opgen.schedule.tabulate import tabulate


@dataclass(frozen=True)
class Permute(Placed):
    buffer: str
    order: tuple[int, ...]

    def __str__(self) -> str:
        return f"permute {self.buffer} {', '.join(map(str, self.order))}"

    def run(self, kernel: Kernel) -> Kernel:
        return permute(kernel, self.buffer, self.order)


@dataclass(frozen=True)
class Pitch(Placed):
    buffer: str
    dimension: int
    size: int

    def __str__(self) -> str:
        return f"pitch {self.buffer} {self.dimension} {self.size}"

    def run(self, kernel: Kernel) -> Kernel:
        return pitch(kernel, self.buffer, self.dimension, self.size)


@dataclass(frozen=True)
class Ring(Placed):
    buffer: str
    dimension: int
    rows: int

    def __str__(self) -> str:
        return f"ring {self.buffer} {self.dimension} {self.rows}"

    def run(self, kernel: Kernel) -> Kernel:
        return ring(kernel, self.buffer, self.dimension, self.rows)


@dataclass(frozen=True)
class Tabulate(Placed):
    buffer: str
    loops: tuple[str, ...]
    name: str
    join: bool = False

    def __str__(self) -> str:
        join = " join=true" if self.join else ""
        return f"tabulate {self.buffer} {', '.join(self.loops)}{join} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return tabulate(kernel, self.buffer, self.loops, self.name, self.join)


BufferStep: TypeAlias = Permute | Pitch | Ring | Tabulate
