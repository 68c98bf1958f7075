"""Loop IR to LLVM IR, assembly and object code for CPUs."""

from opgen.codegen.llvm.compile import assembly, llvm_version, object_code, optimise, optimised_ir
from opgen.codegen.llvm.emit import emit, entry_name
from opgen.codegen.llvm.target import Target

__all__ = ["Target", "assembly", "emit", "entry_name", "llvm_version", "object_code", "optimise", "optimised_ir"]
