"""LLVM IR to optimised IR, assembly and object code.

The loop IR is already tiled, unrolled and vectorised, so LLVM's own loop unroller and vectorisers are off: they would
only cost time and undo the schedule.  What is wanted from LLVM is promotion to registers, common subexpressions,
hoisting, addressing and instruction scheduling.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from opgen.codegen.llvm.target import LOCK, Target, machine
from opgen.diagnostics import InternalError


def optimise(ir: str, target: Target) -> llvm.ModuleRef:
    """Parse, verify and optimise a module.  IR that LLVM refuses is a bug of the emitter: an InternalError."""
    with LOCK:
        target_machine = machine(target)
        try:
            module = llvm.parse_assembly(ir, llvm.create_context())
            module.verify()
        except RuntimeError as error:
            raise InternalError(f"LLVM refuses the emitted code: {error}") from error
        options = llvm.create_pipeline_tuning_options(speed_level=target.opt_level)
        options.loop_unrolling = False
        options.loop_vectorization = False
        options.loop_interleaving = False
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(target_machine, options)
        builder.getModulePassManager().run(module, builder)
        return module


def optimised_ir(ir: str, target: Target) -> str:
    """The text of the optimised module."""
    with LOCK:
        return str(optimise(ir, target))


def assembly(ir: str, target: Target) -> str:
    """The assembly of an optimised module."""
    with LOCK:
        return str(machine(target).emit_assembly(optimise(ir, target)))


def object_code(ir: str, target: Target) -> bytes:
    """The position-independent object file of an optimised module."""
    with LOCK:
        return bytes(machine(target).emit_object(optimise(ir, target)))


def llvm_version() -> str:
    """The version of LLVM in use, such as `22.1.0`."""
    return ".".join(str(part) for part in llvm.llvm_version_info)
