"""The entry of a program, in LLVM IR: the whole run on its tensors.

  i32 @NAME(ptr kernels, ptr inputs_outputs, ptr weights, ptr arena, ptr parallel_for, i64 threads)

`kernels` holds the address of each kernel, `inputs_outputs` those of the inputs' and then the outputs' memory,
`weights` those of the constants.  `arena` is memory at a multiple of 64 bytes, contents undefined: the plan's, and
behind it a part for each thread.

Each step fills the words of a kernel and calls it (`opgen.runtime.native.words`; `opgen.codegen.llvm.emit`).  A nonzero
status ends the run at once.  The entry returns 0, or one number with the failed step and its kernel's status
(`failure_of`).  In that case, the first word of `inputs_outputs` is the kernel's report.  The entry allocates nothing,
and concurrent runs share only kernels and weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from opgen.codegen.llvm.target import Target, data_layout
from opgen.compiler import toolchain
from opgen.diagnostics import InternalError
from opgen.graph.plan.places import Place
from opgen.runtime.native.words import FIRST_BUFFER

STEP_BITS = 16
"""Low bits of the result that hold the number of a step, counted from 1; the status is above."""


def failure_of(result: int) -> tuple[int, int]:
    """Return the failed step, counted from 0, and its kernel's status, from an entry's (positive) result."""
    return (result & ((1 << STEP_BITS) - 1)) - 1, result >> STEP_BITS


@dataclass(frozen=True)
class Launch:
    """A call of a kernel by its number.

    `places` are those of its tensors, `parameters` the words of its parameters.  `shared`: threads may share its work.
    `room` is the offset of its workspace in the arena, and the bytes that each thread needs (None: it has no
    workspace).
    """

    kernel: int
    places: tuple[Place, ...]
    parameters: tuple[int, ...]
    shared: bool
    room: tuple[int, int] | None

    @property
    def words(self) -> int:
        """Return the number of words that its kernel takes."""
        return FIRST_BUFFER + len(self.places) + len(self.parameters) + (3 if self.room is not None else 0)


@dataclass(frozen=True)
class Moved:
    """Bytes that are copied from one place to another at the end."""

    source: Place
    target: Place
    bytes: int


@dataclass(frozen=True)
class Entry:
    """Work of an entry; `inputs` is the number of inputs, `parts` the offset of the threads' parts in the arena."""

    launches: tuple[Launch, ...]
    moved: tuple[Moved, ...]
    inputs: int
    parts: int


def entry_ir(name: str, entry: Entry, target: Target, clock: int | None = None) -> str:
    """Return the text of a module that defines the entry.

    `clock` is a position in `inputs_outputs`: the processor's counter is written to that memory before each step and at
    the end (64 bits each).
    """
    head = f'target datalayout = "{data_layout(target)}"\ntarget triple = "{target.triple}"'
    parameters = "ptr %kernels, ptr %inputs_outputs, ptr %weights, ptr %arena, ptr %parallel_for, i64 %threads"
    body = "\n".join(_body(entry, clock))
    used = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\ndeclare i64 @llvm.readcyclecounter()"
    return f"{head}\n\n{used}\n\ndefine i32 @{name}({parameters}) nounwind {{\n{body}\n}}\n"


def entry_code(name: str, entry: Entry, clock: int | None = None) -> bytes:
    """Return the object file of `entry_ir` for this machine.  Raises NoCompilerError if LLVM is missing."""
    target = toolchain.host()
    return toolchain.object_code(entry_ir(name, entry, target, clock), target, bound=True)


def _body(entry: Entry, clock: int | None) -> Iterator[str]:
    count = len(entry.launches)
    if count >= 1 << STEP_BITS:
        raise InternalError(f"a program of {count} steps")
    yield "entry:"
    yield f"  %words = alloca [{max((x.words for x in entry.launches), default=1)} x i64], align 8"
    refs: dict[Place, str] = {}
    used = [*(p for x in entry.launches for p in x.places), *(p for m in entry.moved for p in (m.source, m.target))]
    for place in dict.fromkeys(used):
        yield from _address(place, entry.inputs, refs)
    yield f"  %parts = getelementptr i8, ptr %arena, i64 {entry.parts}"
    yield f"  br label %step.{1 if count else 'end'}"
    for number, launch in enumerate(entry.launches, 1):
        yield f"step.{number}:"
        yield from _tick(clock, number)
        yield from _launch(launch, number, refs)
        yield f"  br i1 %failed.{number}, label %failed, label %step.{number + 1 if number < count else 'end'}"
    yield "step.end:"
    yield from _tick(clock, count + 1)
    for m in entry.moved:
        source, to = refs[m.source], refs[m.target]
        yield f"  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {m.bytes}, i1 false)"
    yield "  ret i32 0"
    if count:
        yield "failed:"
        cases = ", ".join(f"[ {number}, %step.{number} ]" for number in range(1, count + 1))
        statuses = ", ".join(f"[ %status.{number}, %step.{number} ]" for number in range(1, count + 1))
        yield f"  %number = phi i32 {cases}"
        yield f"  %status = phi i32 {statuses}"
        yield "  %reported = load i64, ptr %words"
        yield "  store i64 %reported, ptr %inputs_outputs"
        yield f"  %above = shl i32 %status, {STEP_BITS}"
        yield "  %result = or i32 %above, %number"
        yield "  ret i32 %result"


def _tick(clock: int | None, number: int) -> Iterator[str]:
    """Write the time before a step."""
    if clock is None:
        return
    yield f"  %clock.word.{number} = getelementptr ptr, ptr %inputs_outputs, i64 {clock}"
    yield f"  %clock.{number} = load ptr, ptr %clock.word.{number}"
    yield f"  %tick.at.{number} = getelementptr i64, ptr %clock.{number}, i64 {number - 1}"
    yield f"  %tick.{number} = call i64 @llvm.readcyclecounter()"
    yield f"  store i64 %tick.{number}, ptr %tick.at.{number}"


def _address(place: Place, inputs: int, refs: dict[Place, str]) -> Iterator[str]:
    """Compute the address of a place, which is then in `refs`."""
    ref = refs[place] = f"%{place.room}.{place.at}"
    if place.room == "arena":
        yield f"  {ref} = getelementptr i8, ptr %arena, i64 {place.at}"
        return
    table, number = {
        "input": ("%inputs_outputs", place.at),
        "output": ("%inputs_outputs", inputs + place.at),
        "weight": ("%weights", place.at),
    }[place.room]
    yield f"  {ref}.word = getelementptr ptr, ptr {table}, i64 {number}"
    yield f"  {ref} = load ptr, ptr {ref}.word"


def _launch(launch: Launch, number: int, refs: Mapping[Place, str]) -> Iterator[str]:
    """Write the words of a kernel, and call it."""
    head = ["ptr %parallel_for", "i64 %threads"] if launch.shared else ["i64 0", "i64 1"]
    words: list[str] = [*head, *(f"ptr {refs[p]}" for p in launch.places), *(f"i64 {p}" for p in launch.parameters)]
    if launch.room is not None:
        at, part_bytes = launch.room
        yield f"  %room.{number} = getelementptr i8, ptr %arena, i64 {at}"
        words += [f"ptr %room.{number}", "ptr %parts", f"i64 {part_bytes}"]
    yield from _stores(words, number)
    yield f"  %at.{number} = getelementptr ptr, ptr %kernels, i64 {launch.kernel}"
    yield f"  %kernel.{number} = load ptr, ptr %at.{number}"
    yield f"  %status.{number} = call i32 %kernel.{number}(ptr %words)"
    yield f"  %failed.{number} = icmp ne i32 %status.{number}, 0"


def _stores(words: Sequence[str], number: int) -> Iterator[str]:
    for k, word in enumerate(words):
        yield f"  %word.{number}.{k} = getelementptr i64, ptr %words, i64 {k}"
        yield f"  store {word}, ptr %word.{number}.{k}"
