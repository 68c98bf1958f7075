"""A kernel to an object file, in a process of its own, through the kernel cache."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import opgen
from opgen.bindings.c.kernels import VECTOR_BYTES, Task
from opgen.bindings.c.room import room_lines
from opgen.bindings.c.small import small_lines
from opgen.cache import entries as cache
from opgen.codegen.llvm.compile import object_code
from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.compiler.keys import code_identity
from opgen.loop.nodes import Kernel
from opgen.loop.print import print_kernel
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.schedule.default import scheduled
from opgen.schedule.fallback import built, unless_broken
from opgen.schedule.schedule import Schedule

_SOURCES = (
    "loop",
    "passes",
    "schedule",
    "bindings/c/compile.py",
    "bindings/c/room.py",
    "bindings/c/small.py",
    "compiler/sharing.py",
)


@dataclass(frozen=True)
class Compiled:
    """The object file of a task, the C lines that tell the memory it needs and which calls are for one thread, and
    whether it came from the cache.
    """

    symbol: str
    code: bytes
    room: tuple[str, ...]
    small: tuple[str, ...]
    cached: bool


def compile_task(task: Task) -> Compiled:
    """Schedule, legalise, emit and compile; or find in the cache what that gave before."""
    target = Target.from_name(task.target)
    identity = code_identity(target, print_kernel(task.kernel))
    key = cache.key_of({**identity, "library": task.helper, "sources": _fingerprint()})
    found = cache.default().load(key)
    if found is not None:
        head, _, code = found.partition(b"\n")
        room, small = json.loads(head)
        return Compiled(task.symbol, code, tuple(room), tuple(small), True)
    machine = typical(VECTOR_BYTES[task.target])

    def made(_: Schedule, fast: Kernel) -> tuple[bytes, list[str]]:
        kernel = legalize(fast)
        return object_code(_own(emit(kernel, target), task), target), room_lines(kernel, task.helper)

    code, room = built(task.kernel, lambda check: scheduled(task.kernel, "cpu", machine, check=check), made)
    estimate = unless_broken(
        "the estimate of a kernel's time", lambda: small_lines(simplify(task.kernel), task.helper, machine)
    )
    small = estimate or []
    cache.default().store(key, json.dumps([room, small]).encode() + b"\n" + code)
    return Compiled(task.symbol, code, tuple(room), tuple(small), False)


def _own(ir: str, task: Task) -> str:
    """The library's own memory functions in place of malloc and free, and an entry that stays inside the library."""
    ir = re.sub(r"@(malloc|free)\(", rf"@{task.helper}_\1(", ir)
    return ir.replace(f"define i32 @{task.symbol}(", f"define hidden i32 @{task.symbol}(")


@functools.cache
def _fingerprint() -> str:
    """A hash of the sources that decide what a kernel becomes (the emitter's own is in the identity)."""
    digest = hashlib.sha256()
    root = Path(opgen.__path__[0])
    for source in _SOURCES:
        found = root / source
        for path in sorted(found.rglob("*.py")) if found.is_dir() else [found]:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root)}:{len(content)}:".encode())
            digest.update(content)
    return digest.hexdigest()
