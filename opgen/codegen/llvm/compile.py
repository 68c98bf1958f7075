"""LLVM IR to optimised IR, assembly and object code.

The loop IR is already tiled, unrolled and vectorised, so LLVM's own loop unroller and vectorisers are off: they would
only cost time and undo the schedule.  LLVM's tasks are promotion to registers, common subexpressions, hoisting,
addressing and instruction scheduling.

In a kernel whose sizes are all numbers (`bound`) little of that is left to do: the emitter writes equal instructions
once, and outside the loops in which they do not change.  The small helpers are inlined, local buffers become registers
and empty blocks go: a quarter of the time of LLVM's shortest pipeline for functions, and the same speed of the code.
Kernels of open sizes get the whole pipeline; without it some are a third slower.
"""

from __future__ import annotations

import llvmlite.binding as llvm

from opgen.codegen.llvm.target import Target, machine
from opgen.diagnostics import InternalError
from opgen.locks import BUILD


def optimise(ir: str, target: Target, bound: bool = False) -> llvm.ModuleRef:
    """Parse, verify and optimise a module.  IR that LLVM refuses is a bug of the emitter: an InternalError."""
    with BUILD:
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
        if bound:
            _simplify(module, builder)
        else:
            builder.getModulePassManager().run(module, builder)
        return module


def _simplify(module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """Inline the helpers that are to be inlined, then promote local buffers to registers and tidy up the blocks."""
    inliner = llvm.create_new_module_pass_manager()
    inliner.add_always_inliner_pass()
    inliner.run(module, builder)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def optimised_ir(ir: str, target: Target) -> str:
    """Return the text of the optimised module."""
    with BUILD:
        return str(optimise(ir, target))


def assembly(ir: str, target: Target, bound: bool = False) -> str:
    """Return the assembly of an optimised module."""
    with BUILD:
        return str(machine(target).emit_assembly(optimise(ir, target, bound)))


def commented_assembly(ir: str, target: Target, bound: bool = False) -> str:
    """Return the same assembly with LLVM's comments: at each label the name of its block in the IR."""
    with BUILD:
        emitter = machine(target)
        emitter.set_asm_verbosity(True)
        try:
            return str(emitter.emit_assembly(optimise(ir, target, bound)))
        finally:
            emitter.set_asm_verbosity(False)


def object_code(ir: str, target: Target, bound: bool = False) -> bytes:
    """Return the position-independent object file of an optimised module."""
    with BUILD:
        return bytes(machine(target).emit_object(optimise(ir, target, bound)))


def llvm_version() -> str:
    """Return the version of LLVM in use, such as `22.1.0`."""
    return ".".join(str(part) for part in llvm.llvm_version_info)
