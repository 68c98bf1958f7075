"""Kernel index: specialised kernels by call.  A call that any process has made before needs no spec and no compiler.

An entry of the kernel cache has the kernel's interface and the key of its object code.  Its key covers everything that
decides which code the call gets.  Entries are pickled: the cache's folder belongs to the user alone, and its entries
are verified in full, just as for the object code that is run from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opgen.cache import pickled
from opgen.compiler import keys
from opgen.loop.nodes import Kernel

if TYPE_CHECKING:
    from opgen.runtime.call.call import Call
    from opgen.runtime.kernels.kernel import CompiledKernel


@dataclass(frozen=True)
class _Entry:
    """The data that a call needs besides the object code; `interface` is the kernel without its body."""

    interface: Kernel
    code: str
    parallel: bool
    algorithm: str | None


def key_of(spec: str, op: str, call: Call, algorithms: str) -> str | None:
    """Return the key of a call of an op of the spec with that hash, for the requested algorithms.

    The result is None if a number of the call stays open in the kernel.
    """
    if any(isinstance(v, float) for value in call.attributes.values() for v in _flat(value)):
        return None
    numbers: Mapping[str, object] = {
        "types": sorted(call.types.items()),
        "words": sorted(call.words.items()),
        "attributes": sorted(call.attributes.items()),
        "integers": sorted(call.integers.items()),
        "shapes": sorted((n, t.shape) for n, t in call.tensors.items()),
    }
    return keys.call_key(spec, op, numbers, algorithms)


def _flat(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)


def take(key: str) -> CompiledKernel | None:
    """Return the kernel of a call, if both its entry and its code are there and intact."""
    from opgen.runtime.kernels.kernel import load_kept

    entry = pickled.take(key, _Entry)
    return None if entry is None else load_kept(entry.code, entry.interface, not entry.parallel, entry.algorithm)


def put(key: str, compiled: CompiledKernel) -> None:
    """Keep a kernel for the next process that makes this call."""
    pickled.put(key, _Entry(compiled.kernel, compiled.key, compiled.parallel, compiled.algorithm))
