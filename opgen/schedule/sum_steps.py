"""The steps of schedules that change how sums are made: in another order, of other factors, by other instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from opgen.loop.nodes import Kernel, Space
from opgen.schedule.carry import carry
from opgen.schedule.distribute import distribute
from opgen.schedule.divide import divide
from opgen.schedule.pair import pair
from opgen.schedule.placed import Placed
from opgen.schedule.prefix import prefix
from opgen.schedule.regroup import regroup
from opgen.schedule.relay import relay
from opgen.schedule.rfactor import rfactor
from opgen.schedule.separate import separate
from opgen.schedule.share import share
from opgen.schedule.tensorize import tensorize


@dataclass(frozen=True)
class Carry(Placed):
    loop: str
    at: str

    def __str__(self) -> str:
        return f"carry {self.loop} at={self.at}"

    def run(self, kernel: Kernel) -> Kernel:
        return carry(kernel, self.loop, self.at)


@dataclass(frozen=True)
class Divide(Placed):
    loop: str
    at: str
    name: str
    space: Space = "heap"

    def __str__(self) -> str:
        return f"divide {self.loop} at={self.at} space={self.space} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return divide(kernel, self.loop, self.at, self.name, self.space)


@dataclass(frozen=True)
class Rfactor(Placed):
    loop: str
    factor: int
    partial: str

    def __str__(self) -> str:
        return f"rfactor {self.loop} {self.factor} -> {self.partial}"

    def run(self, kernel: Kernel) -> Kernel:
        return rfactor(kernel, self.loop, self.factor, self.partial)


@dataclass(frozen=True)
class Prefix(Placed):
    loop: str
    lanes: int
    name: str

    def __str__(self) -> str:
        return f"prefix {self.loop} {self.lanes} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return prefix(kernel, self.loop, self.lanes, self.name)


@dataclass(frozen=True)
class Relay(Placed):
    loop: str
    size: int
    outer: str
    name: str

    def __str__(self) -> str:
        return f"relay {self.loop} {self.size} -> {self.outer}, {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return relay(kernel, self.loop, self.size, self.outer, self.name)


@dataclass(frozen=True)
class Share(Placed):
    loop: str
    count: int
    name: str
    at: str | None = None
    space: Space = "heap"

    def __str__(self) -> str:
        at = "" if self.at is None else f" at={self.at}"
        return f"share {self.loop} {self.count}{at} space={self.space} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return share(kernel, self.loop, self.count, self.name, self.at, self.space)


@dataclass(frozen=True)
class Regroup(Placed):
    loop: str
    inside: str

    def __str__(self) -> str:
        return f"regroup {self.loop}, {self.inside}"

    def run(self, kernel: Kernel) -> Kernel:
        return regroup(kernel, self.loop, self.inside)


@dataclass(frozen=True)
class Separate(Placed):
    loop: str
    first: str

    def __str__(self) -> str:
        return f"separate {self.loop} -> {self.first}"

    def run(self, kernel: Kernel) -> Kernel:
        return separate(kernel, self.loop, self.first)


@dataclass(frozen=True)
class Distribute(Placed):
    loop: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"distribute {self.loop} -> {self.first}, {self.second}"

    def run(self, kernel: Kernel) -> Kernel:
        return distribute(kernel, self.loop, self.first, self.second)


@dataclass(frozen=True)
class Pair(Placed):
    loop: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"pair {self.loop} -> {self.first}, {self.second}"

    def run(self, kernel: Kernel) -> Kernel:
        return pair(kernel, self.loop, self.first, self.second)


@dataclass(frozen=True)
class Tensorize(Placed):
    rows: str
    columns: str
    depth: str
    name: str

    def __str__(self) -> str:
        return f"tensorize {self.rows}, {self.columns}, {self.depth} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return tensorize(kernel, self.rows, self.columns, self.depth, self.name)


SumStep: TypeAlias = (
    Carry | Divide | Rfactor | Share | Prefix | Relay | Regroup | Separate | Distribute | Pair | Tensorize
)
