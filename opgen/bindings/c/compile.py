"""A kernel to an object file, in a process of its own, through the kernel cache."""

from __future__ import annotations

from dataclasses import dataclass

from opgen.bindings.c.kernels import Task
from opgen.bindings.c.room import room_lines
from opgen.bindings.c.small import small_lines
from opgen.cache import pickled
from opgen.codegen.llvm.target import Target
from opgen.compiler import keys, toolchain
from opgen.compiler.artifact import Artifact
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, LibraryFunctions
from opgen.passes.simplify import simplify
from opgen.schedule.fallback import unless_broken


@dataclass(frozen=True)
class Compiled:
    """The object file of a task, with the C lines of its memory and of its calls for one thread.

    A flag says if it came from the cache.
    """

    symbol: str
    code: bytes
    room: tuple[str, ...]
    small: tuple[str, ...]
    cached: bool


@dataclass(frozen=True)
class _Lines:
    """The C lines of a task."""

    room: tuple[str, ...]
    small: tuple[str, ...]


def compile_task(task: Task) -> Compiled:
    """Return the object file of a task and its C lines, from the cache if they were made before."""
    target = toolchain.target(task.target)
    made = artifact(Compilation(task.kernel, target, schedule="automatic", memory=LibraryFunctions(task.helper)))
    kept = made.kept()
    found = kept or made.build()
    key = keys.request_key(made.request, target, "bindings/c")
    lines = pickled.take(key, _Lines)
    if lines is None:
        lines = _lines(task, made, target)
        pickled.put(key, lines)
    return Compiled(task.symbol, found.code, lines.room, lines.small, kept is not None)


def _lines(task: Task, made: Artifact, target: Target) -> _Lines:
    room = room_lines(made.scheduled_parts.main.heap, task.kernel.parameters, task.helper)
    small = unless_broken(
        "the estimate of a kernel's time", lambda: small_lines(simplify(task.kernel), task.helper, target.machine)
    )
    return _Lines(tuple(room), tuple(small or ()))
