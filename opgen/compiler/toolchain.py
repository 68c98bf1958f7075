"""The single interface to the code generator and LLVM.

They are imported on first use, not with this module.  Importing the runtime, counting threads or maintaining the cache
never loads LLVM.  The import happens under the build lock, so that no fork finds a module half imported: a child would
wait for ever for the thread that was importing it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opgen.compiler import host_record as known
from opgen.compiler import matrix_unit
from opgen.diagnostics import UserError
from opgen.locks import BUILD

if TYPE_CHECKING:
    from opgen.codegen.llvm.target import Target
    from opgen.loop.nodes import Kernel


class NoCompilerError(UserError, ImportError):
    """A kernel has to be built, and a package that building needs is not installed."""


@functools.cache
def has_llvm() -> bool:
    """Return True if LLVM is installed; without it only kernels that are already built run."""
    try:
        return importlib.util.find_spec("llvmlite") is not None
    except (ImportError, ValueError):
        return False


@functools.cache
def _load(module: str) -> None:
    """Import a module that the caller is about to import from.

    Raises NoCompilerError if a package that it needs is not installed.
    """
    with BUILD:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise missing(error) from error


def missing(error: ModuleNotFoundError) -> Exception:
    """Return the exception to raise for a missing module; opgen's own modules are never missing."""
    name = (error.name or "").partition(".")[0]
    if name not in ("llvmlite", "lark"):
        return error
    return NoCompilerError(
        f"this call needs a kernel that is not in the cache, and '{name}', which building it takes, is not installed: "
        f"install opgen with what it depends on (pip install opgen), or fill the cache where that is (OPGEN_CACHE_DIR)"
    )


@functools.lru_cache(maxsize=1)
def host() -> Target:
    """Return this process's processor, with its numbers.  Raises MachineFileError if provided ones are wrong."""
    _load("opgen.codegen.llvm.target")
    _load("opgen.compiler.machines")
    from opgen.codegen.llvm.target import Target
    from opgen.compiler import machines

    with BUILD:
        if has_llvm():
            target = Target.host()
            known.keep(known.Host(target.triple, target.cpu, target.features, llvm_version()))
        else:
            found = _known()
            target = Target(found.triple, found.cpu, found.features, name="host")
    if target.has_tiles and not matrix_unit.granted():
        target = target.without_tiles()
    return replace(target, numbers=machines.describe(target).machine)


def target(name: str) -> Target:
    """Return the target of that name (see `Target.from_name`); `host` with its numbers."""
    if name == "host":
        return host()
    _load("opgen.codegen.llvm.target")
    from opgen.codegen.llvm.target import Target

    return Target.from_name(name)


def listing(kernel: Kernel) -> str:
    """Return the text of a scheduled kernel, which contains everything that the emitter uses."""
    _load("opgen.loop.print")
    from opgen.loop.print import print_kernel

    return print_kernel(kernel)


def emit(kernel: Kernel, target: Target, workspace: bool = False) -> str:
    """Return the LLVM IR of a scheduled kernel; with `workspace` its caller provides temporary memory."""
    _load("opgen.codegen.llvm.emit")
    from opgen.codegen.llvm.emit import emit as emit_kernel

    return emit_kernel(kernel, target, workspace)


def entry_name(kernel: Kernel) -> str:
    """Return the symbol of the emitted kernel."""
    _load("opgen.codegen.llvm.emit")
    from opgen.codegen.llvm.emit import entry_name as symbol

    return symbol(kernel)


def assembly(ir: str, target: Target, bound: bool = False) -> str:
    """Return assembly for the target, from LLVM IR; `bound` as for object code."""
    _load("opgen.codegen.llvm.compile")
    from opgen.codegen.llvm import compile as compiler

    return compiler.assembly(ir, target, bound)


def commented_assembly(ir: str, target: Target, bound: bool = False) -> str:
    """Return the same assembly, with the IR name of each block as a comment at its label."""
    _load("opgen.codegen.llvm.compile")
    from opgen.codegen.llvm import compile as compiler

    return compiler.commented_assembly(ir, target, bound)


def object_code(ir: str, target: Target, bound: bool = False) -> bytes:
    """Return an object file for the target, from LLVM IR; `bound`: all sizes of the kernel are numbers."""
    _load("opgen.codegen.llvm.compile")
    from opgen.codegen.llvm import compile as compiler

    return compiler.object_code(ir, target, bound)


def llvm_version() -> str:
    """Return LLVM's version, such as `22.1.0`."""
    if not has_llvm():
        return _known().llvm
    _load("opgen.codegen.llvm.compile")
    from opgen.codegen.llvm import compile as compiler

    return compiler.llvm_version()


def _known() -> known.Host:
    """Return LLVM's kept description of this machine.  Raises NoCompilerError if there is none."""
    found = known.read()
    if found is None:
        raise missing(ModuleNotFoundError("llvmlite", name="llvmlite"))
    return found


@functools.lru_cache(maxsize=1)
def emitter_fingerprint() -> str:
    """Return a hash of the emitter's sources and its inputs': other versions never find this one's code."""
    return fingerprint("loop", "passes", "codegen/llvm")


@functools.lru_cache(maxsize=1)
def compiler_fingerprint() -> str:
    """Return a hash of all sources between a spec and object code: they decide which code a call gets."""
    own = ("dtypes.py", "diagnostics", "compiler")
    return fingerprint(
        *own, "machine", "spec", "grad", "loop", "lower", "passes", "schedule", "codegen/llvm", "runtime"
    )


@functools.lru_cache(maxsize=16)
def fingerprint(*rooms: str) -> str:
    """Return a hash over the files of some packages (or single files; `.`: all): their names and contents."""
    digest = hashlib.sha256()
    for path, content in _sources().items():
        if any(room in (".", path) or path.startswith(f"{room}/") for room in rooms):
            digest.update(f"{path}:".encode() + content)
    return digest.hexdigest()


@functools.cache
def _sources() -> dict[str, bytes]:
    """Return the sha256 of each of opgen's own files by its path, in order; each file is read once."""
    root = Path(__file__).parent.parent
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != "__pycache__"]
        inside = Path(folder).relative_to(root).as_posix()
        for name in names:
            if name.endswith((".py", ".lark", ".json")):
                path = name if inside == "." else f"{inside}/{name}"
                found[path] = hashlib.sha256(Path(folder, name).read_bytes()).digest()
    return dict(sorted(found.items()))
