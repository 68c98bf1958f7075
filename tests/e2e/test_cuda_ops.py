"""Every op as CUDA C: the default schedule for a GPU, generic and bound to a small shape, against the interpreter.

The emitted source is compiled for the CPU and run through the emulation header, each block and thread in turn; where nvcc
is installed it is compiled for a GPU as well.  What is computed with `exp` and its like may differ in the last bits of
each operation; all else is equal bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from opgen.codegen.cuda import emit
from opgen.codegen.cuda.program import CudaProgram
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.lower import Variant, variants
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.schedule.default import scheduled
from opgen.spec.model import OpSpec
from tests.e2e.test_paths import MODULES, a_call

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
OPS = [pytest.param(module, op, id=op.name) for module, spec in MODULES.items() for op in spec.ops]
Scalars = dict[str, "int | float"]


@dataclass(frozen=True)
class Cell:
    """A variant of an op in a random small call: what it means, and its two programs for a GPU."""

    variant: Variant
    seed: int
    kernel: Kernel
    parameters: Scalars
    programs: tuple[CudaProgram, CudaProgram]


def cuda(kernel: Kernel) -> CudaProgram:
    return emit(legalize(scheduled(simplify(kernel), "cuda")[1]))


def cells(module: str, op: OpSpec) -> Iterator[Cell]:
    for index, variant in enumerate(variants(op)):
        seed = 1000 * SEED + index
        kernel, parameters = a_call(MODULES[module], op, variant, seed)
        integers = {n: v for n, v in parameters.items() if not isinstance(v, float)}
        yield Cell(variant, seed, kernel, parameters, (cuda(kernel), cuda(bind(kernel, integers))))
