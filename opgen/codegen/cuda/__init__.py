"""CUDA C from loop IR."""

from opgen.codegen.cuda.emit import emit
from opgen.codegen.cuda.program import CudaProgram, DeviceLimitError, Launch

__all__ = ["CudaProgram", "DeviceLimitError", "Launch", "emit"]
