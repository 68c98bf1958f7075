"""The steps of a schedule: each a frozen value that prints as a line and runs as a primitive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from opgen.loop.nodes import Expr, Kernel, LoopKind, Space
from opgen.loop.print import print_expr
from opgen.schedule import kinds
from opgen.schedule.buffer_steps import (  # those of the kernel's own buffers are steps as all others
    BufferStep,
)
from opgen.schedule.buffer_steps import (
    Permute as Permute,
)
from opgen.schedule.buffer_steps import (
    Pitch as Pitch,
)
from opgen.schedule.buffer_steps import (
    Ring as Ring,
)
from opgen.schedule.buffer_steps import (
    Tabulate as Tabulate,
)
from opgen.schedule.compute_at import compute_at
from opgen.schedule.fill import fill
from opgen.schedule.fission import fission
from opgen.schedule.flatten import flatten
from opgen.schedule.fuse import fuse
from opgen.schedule.merge import merge
from opgen.schedule.own import own
from opgen.schedule.pack import pack
from opgen.schedule.pad import pad
from opgen.schedule.partition import partition
from opgen.schedule.placed import Placed
from opgen.schedule.prefetch import prefetch
from opgen.schedule.recode import recode
from opgen.schedule.reorder import reorder
from opgen.schedule.skew import skew
from opgen.schedule.split import Tail, split
from opgen.schedule.stage import stage
from opgen.schedule.stream import stream
from opgen.schedule.sum_steps import (  # those of sums are steps as all others
    Carry as Carry,
)
from opgen.schedule.sum_steps import (
    Distribute as Distribute,
)
from opgen.schedule.sum_steps import (
    Divide as Divide,
)
from opgen.schedule.sum_steps import (
    Pair as Pair,
)
from opgen.schedule.sum_steps import (
    Prefix as Prefix,
)
from opgen.schedule.sum_steps import (
    Regroup as Regroup,
)
from opgen.schedule.sum_steps import (
    Relay as Relay,
)
from opgen.schedule.sum_steps import (
    Rfactor as Rfactor,
)
from opgen.schedule.sum_steps import (
    Separate as Separate,
)
from opgen.schedule.sum_steps import (
    Share as Share,
)
from opgen.schedule.sum_steps import (
    SumStep,
)
from opgen.schedule.sum_steps import (
    Tensorize as Tensorize,
)
from opgen.schedule.tighten import tighten
from opgen.schedule.transpose import transpose
from opgen.schedule.version import version
from opgen.schedule.widen import widen


@dataclass(frozen=True)
class Split(Placed):
    loop: str
    factor: int
    tail: Tail
    outer: str
    inner: str

    def __str__(self) -> str:
        return f"split {self.loop} {self.factor} tail={self.tail} -> {self.outer}, {self.inner}"

    def run(self, kernel: Kernel) -> Kernel:
        return split(kernel, self.loop, self.factor, self.tail, self.outer, self.inner)


@dataclass(frozen=True)
class Reorder(Placed):
    loops: tuple[str, ...]

    def __str__(self) -> str:
        return f"reorder {', '.join(self.loops)}"

    def run(self, kernel: Kernel) -> Kernel:
        return reorder(kernel, self.loops)


@dataclass(frozen=True)
class Fuse(Placed):
    outer: str
    inner: str
    name: str

    def __str__(self) -> str:
        return f"fuse {self.outer}, {self.inner} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return fuse(kernel, self.outer, self.inner, self.name)


@dataclass(frozen=True)
class Flatten(Placed):
    outer: str
    inner: str
    name: str

    def __str__(self) -> str:
        return f"flatten {self.outer}, {self.inner} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return flatten(kernel, self.outer, self.inner, self.name)


@dataclass(frozen=True)
class Merge(Placed):
    first: str
    second: str

    def __str__(self) -> str:
        return f"merge {self.first}, {self.second}"

    def run(self, kernel: Kernel) -> Kernel:
        return merge(kernel, self.first, self.second)


@dataclass(frozen=True)
class Fission(Placed):
    loop: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        named = f" -> {', '.join(self.names)}" if self.names else ""
        return f"fission {self.loop}{named}"

    def run(self, kernel: Kernel) -> Kernel:
        return fission(kernel, self.loop, self.names)


@dataclass(frozen=True)
class Skew(Placed):
    outer: str
    inner: str
    factor: int
    name: str

    def __str__(self) -> str:
        return f"skew {self.outer}, {self.inner} {self.factor} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return skew(kernel, self.outer, self.inner, self.factor, self.name)


@dataclass(frozen=True)
class Unroll(Placed):
    loop: str

    def __str__(self) -> str:
        return f"unroll {self.loop}"

    def run(self, kernel: Kernel) -> Kernel:
        return kinds.unroll(kernel, self.loop)


@dataclass(frozen=True)
class Vectorize(Placed):
    loop: str

    def __str__(self) -> str:
        return f"vectorize {self.loop}"

    def run(self, kernel: Kernel) -> Kernel:
        return kinds.vectorize(kernel, self.loop)


@dataclass(frozen=True)
class Parallel(Placed):
    loop: str

    def __str__(self) -> str:
        return f"parallel {self.loop}"

    def run(self, kernel: Kernel) -> Kernel:
        return kinds.parallel(kernel, self.loop)


@dataclass(frozen=True)
class Bind(Placed):
    loop: str
    axis: LoopKind

    def __str__(self) -> str:
        return f"bind {self.loop} {self.axis}"

    def run(self, kernel: Kernel) -> Kernel:
        return kinds.bind(kernel, self.loop, self.axis)


@dataclass(frozen=True)
class Own(Placed):
    loop: str
    owners: int
    name: str

    def __str__(self) -> str:
        return f"own {self.loop} {self.owners} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return own(kernel, self.loop, self.owners, self.name)


@dataclass(frozen=True)
class Stage(Placed):
    buffer: str
    at: str
    space: Space
    pad: bool
    name: str

    def __str__(self) -> str:
        return f"stage {self.buffer} at={self.at} space={self.space} pad={str(self.pad).lower()} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return stage(kernel, self.buffer, self.at, self.space, self.pad, self.name)


@dataclass(frozen=True)
class ComputeAt(Placed):
    buffer: str
    at: str
    space: Space = "heap"
    again: bool = False

    def __str__(self) -> str:
        return f"compute_at {self.buffer} at={self.at} space={self.space} again={str(self.again).lower()}"

    def run(self, kernel: Kernel) -> Kernel:
        return compute_at(kernel, self.buffer, self.at, self.space, self.again)


@dataclass(frozen=True)
class Pack(Placed):
    buffer: str
    order: tuple[int, ...]
    name: str
    at: str | None = None
    loop: str | None = None

    def __str__(self) -> str:
        at = f" at={self.at}" if self.at else ""
        inside = f" in={self.loop}" if self.loop else ""
        return f"pack {self.buffer} {', '.join(map(str, self.order))}{at}{inside} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return pack(kernel, self.buffer, self.order, self.name, self.at, self.loop)


@dataclass(frozen=True)
class Pad(Placed):
    buffer: str
    dimensions: tuple[int, ...]
    name: str

    def __str__(self) -> str:
        return f"pad {self.buffer} {', '.join(map(str, self.dimensions))} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return pad(kernel, self.buffer, self.dimensions, self.name)


@dataclass(frozen=True)
class Transpose(Placed):
    outer: str
    inner: str

    def __str__(self) -> str:
        return f"transpose {self.outer}, {self.inner}"

    def run(self, kernel: Kernel) -> Kernel:
        return transpose(kernel, self.outer, self.inner)


@dataclass(frozen=True)
class Widen(Placed):
    buffer: str
    name: str

    def __str__(self) -> str:
        return f"widen {self.buffer} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return widen(kernel, self.buffer, self.name)


@dataclass(frozen=True)
class Recode(Placed):
    buffer: str
    name: str

    def __str__(self) -> str:
        return f"recode {self.buffer} -> {self.name}"

    def run(self, kernel: Kernel) -> Kernel:
        return recode(kernel, self.buffer, self.name)


@dataclass(frozen=True)
class Prefetch(Placed):
    buffer: str
    at: str
    loop: str

    def __str__(self) -> str:
        return f"prefetch {self.buffer} at={self.at} in={self.loop}"

    def run(self, kernel: Kernel) -> Kernel:
        return prefetch(kernel, self.buffer, self.at, self.loop)


@dataclass(frozen=True)
class Fill(Placed):
    buffer: str
    loop: str

    def __str__(self) -> str:
        return f"fill {self.buffer} in={self.loop}"

    def run(self, kernel: Kernel) -> Kernel:
        return fill(kernel, self.buffer, self.loop)


@dataclass(frozen=True)
class Stream(Placed):
    buffer: str

    def __str__(self) -> str:
        return f"stream {self.buffer}"

    def run(self, kernel: Kernel) -> Kernel:
        return stream(kernel, self.buffer)


@dataclass(frozen=True)
class Partition(Placed):
    loop: str
    at: tuple[int, ...]
    suffix: str | None = None

    def __str__(self) -> str:
        named = f" -> {self.suffix}" if self.suffix else ""
        return f"partition {self.loop} {', '.join(map(str, self.at))}{named}"

    def run(self, kernel: Kernel) -> Kernel:
        return partition(kernel, self.loop, self.at, self.suffix)


@dataclass(frozen=True)
class Tighten(Placed):
    loop: str

    def __str__(self) -> str:
        return f"tighten {self.loop}"

    def run(self, kernel: Kernel) -> Kernel:
        return tighten(kernel, self.loop)


@dataclass(frozen=True)
class Version(Placed):
    loop: str
    condition: Expr
    suffix: str

    def __str__(self) -> str:
        return f"version {self.loop} {print_expr(self.condition)} -> {self.suffix}"

    def run(self, kernel: Kernel) -> Kernel:
        return version(kernel, self.loop, self.condition, self.suffix)


Step: TypeAlias = (
    Split
    | Reorder
    | Fuse
    | Flatten
    | Merge
    | Fission
    | Skew
    | Own
    | Unroll
    | Vectorize
    | Parallel
    | Bind
    | Stage
    | ComputeAt
    | Pack
    | Pad
    | Transpose
    | Widen
    | Recode
    | Prefetch
    | Fill
    | Stream
    | Partition
    | Tighten
    | Version
    | BufferStep
    | SumStep
)
