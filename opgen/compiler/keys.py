"""Cache keys: everything that decides the object code of a kernel, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from opgen.cache import entries as cache
from opgen.cache import entry
from opgen.compiler import toolchain, tuned
from opgen.version import VERSION

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target
    from opgen.compiler.request import Compilation
    from opgen.loop.nodes import Kernel


def machine_identity() -> dict[str, str]:
    """Return named texts that identify the machine, for `opgen.cache.entries.key_of`."""
    host = toolchain.host()
    return {
        "compiler": toolchain.compiler_fingerprint(),
        "llvm": toolchain.llvm_version(),
        "target": repr(host),
        "machine": repr(host.machine),
        "tuned": tuned.digest(),
    }


def code_identity(target: Target, ir: str) -> dict[str, str]:
    """Return everything that decides the object code of an IR text, for `key_of`."""
    return {
        "format": str(entry.FORMAT),
        "opgen": VERSION,
        "emitter": toolchain.emitter_fingerprint(),
        "llvm": toolchain.llvm_version(),
        "target": repr(target),
        "ir": ir,
    }


def call_key(spec: str, op: str, numbers: Mapping[str, object], algorithms: str) -> str:
    """Return the key of the kernel for a call of an op of the spec with that hash, without reading the spec.

    `numbers` are all values of the call: types, words and integers by name.  `algorithms` is the requested mode.
    """
    identity = {"spec": spec, "op": op, "algorithms": algorithms, **machine_identity()}
    return cache.key_of({**identity, **{name: repr(value) for name, value in numbers.items()}})


def request_key(request: Compilation, target: Target, *holders: str) -> str:
    """Return the key of a request's results, without lowering its op where all numbers of the call are bound.

    `holders` are files or packages whose source decides the format of the entry under the key.
    """
    return cache.key_of(
        {
            **code_identity(target, _source(request)),
            "compiler": toolchain.compiler_fingerprint(),
            "holders": toolchain.fingerprint(*holders),
            "machine": repr(target.machine),
            "schedule": str(request.schedule),
            "tuned": tuned.digest() if request.schedule == "tuned" else "",
            "algorithms": repr((request.algorithms, request.algorithm)),
            "numbers": repr(_numbers(request)),
            "opening": repr(request.opening),
            "places": repr((request.constants, request.in_place)),
            "memory": repr(request.memory),
        }
    )


def _source(request: Compilation) -> str:
    from opgen.compiler.request import OpVariant

    source = request.source
    return source.identity if isinstance(source, OpVariant) else toolchain.listing(source)


def _numbers(request: Compilation) -> object:
    """Return the numbers of a call that are constants in its kernel."""
    from opgen.compiler.request import OpVariant

    source, call = request.source, request.call
    if call is None or not isinstance(source, OpVariant):
        return None
    if request.opening.names:
        integers = source.integers(call)
        request.opening.require(integers)
        return sorted((n, v) for n, v in integers.items() if n not in request.opening.names)
    decides = bool(source.op.algorithms)  # an algorithm's condition may depend on any number of the call
    floats = () if decides else tuple(a.name for a in source.op.attrs if a.kind == "float")
    attrs = sorted((n, v) for n, v in call.attrs.items() if n not in floats)
    return attrs, sorted(call.shapes.items()), sorted(call.symbols.items())


def kernel_key(kernel: Kernel, request: Compilation, target: Target) -> str:
    """Return the key of the object code of a (simplified) kernel, whichever op it came from.

    A kernel with a workspace of its caller's is named by the key, so its own name does not count.
    """
    from opgen.loop.canonical import canonical

    text = toolchain.listing(canonical(kernel) if request.memory == "caller" else kernel)
    identity = {**code_identity(target, text), "memory": repr(request.memory)}
    if request.schedule == "finished":
        return cache.key_of(identity)
    tensors = request.tensors
    names = [x.name for x in kernel.inputs]
    constants = [name in {tensors[k] for k in request.constants} for name in names]
    pairs = [(names.index(tensors[k]), r) for k, r in request.in_place if tensors[k] in names]
    identity |= {
        "compiler": toolchain.compiler_fingerprint(),
        "machine": repr(target.machine),
        "schedule": str(request.schedule),
        "tuned": _tuned(kernel, request, target),
        "places": repr((constants, pairs)),
        "like": repr([value for _, value in request.opening.like]),
    }
    return cache.key_of(identity)


def _tuned(kernel: Kernel, request: Compilation, target: Target) -> str:
    """Return the tuned schedule of a kernel; the digest of all where another one's schedule is transferred to it."""
    if request.schedule != "tuned":
        return ""
    if request.opening.like:
        return tuned.digest()
    found = tuned.entry_for(kernel, target)
    return "" if found is None else repr(found.schedule)


def symbol(key: str) -> str:
    """Return the name of a kernel that is named by its key."""
    return f"kernel_{key[:16]}"


def first_key(symbol: str, target: Target) -> str:
    """Return the key of the object code of a kernel that runs once on constants, by its symbol."""
    identity = {**code_identity(target, symbol), "compiler": toolchain.compiler_fingerprint()}
    return cache.key_of({**identity, "machine": repr(target.machine), "tuned": tuned.digest()})


def symbol_of_first(first: Kernel) -> str:
    """Return the name of a kernel that runs once on constants; kernels for other sizes may share it."""
    from opgen.loop.canonical import canonical

    return f"first_{cache.key_of({'text': toolchain.listing(canonical(first))})[:16]}"
