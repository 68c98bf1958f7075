"""What decides the code of every kernel, whatever it computes: opgen itself, LLVM, and the machine."""

from __future__ import annotations

from opgen.runtime import toolchain, tuned


def machine_identity() -> dict[str, str]:
    """Named texts, for the key of what is kept (`opgen.runtime.cache.key_of`)."""
    host = toolchain.host()
    return {
        "compiler": toolchain.compiler_fingerprint(),
        "llvm": toolchain.llvm_version(),
        "target": repr(host),
        "machine": repr(host.machine),
        "tuned": tuned.digest(),
    }
