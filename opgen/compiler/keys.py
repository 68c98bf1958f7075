"""What decides the code of every kernel, whatever it computes: opgen itself, LLVM, and the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opgen.cache import entry
from opgen.compiler import toolchain, tuned
from opgen.version import VERSION

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target


def machine_identity() -> dict[str, str]:
    """Named texts, for the key of what is kept (`opgen.cache.entries.key_of`)."""
    host = toolchain.host()
    return {
        "compiler": toolchain.compiler_fingerprint(),
        "llvm": toolchain.llvm_version(),
        "target": repr(host),
        "machine": repr(host.machine),
        "tuned": tuned.digest(),
    }


def code_identity(target: Target, ir: str) -> dict[str, str]:
    """Everything that decides what object code comes of a text of IR: what `key_of` is given."""
    return {
        "format": str(entry.FORMAT),
        "opgen": VERSION,
        "emitter": toolchain.emitter_fingerprint(),
        "llvm": toolchain.llvm_version(),
        "target": repr(target),
        "ir": ir,
    }
