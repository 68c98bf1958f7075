"""Every op as CUDA C: the default schedule for a GPU, generic and bound to a small shape, against the interpreter.

The emitted source is compiled for the CPU and run through the emulation header, each block and thread in turn; where
nvcc is installed it is compiled for a GPU as well.  What is computed with `exp` and its like may differ in the last
bits of each operation (`ULPS` of `test_paths`); all else is equal bit for bit.

The shapes are drawn from OPGEN_TEST_SEED (0); all cells of an op are compiled together.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import pytest

from opgen.codegen.cuda import emit
from opgen.codegen.cuda.program import CudaProgram
from opgen.compiler.cuda import nvcc
from opgen.loop.bind import bind
from opgen.loop.interpret import interpret
from opgen.loop.nodes import Call as Function
from opgen.loop.nodes import Kernel
from opgen.loop.walk import walk_exprs
from opgen.lower import Variant, variants
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.runtime.devices import emulation
from opgen.runtime.devices.emulation import EmulatedKernel, compile_emulated
from opgen.schedule.default import scheduled
from opgen.schedule.schedule import Schedule
from opgen.spec.model.model import OpSpec
from tests.codegen.cuda.kernels import joined
from tests.harness import random_arrays
from tests.support.paths import MODULES, PLATFORM, a_call, same, sizes_in

SEED = int(os.environ.get("OPGEN_TEST_SEED", "0"))
ARCHITECTURE = "compute_80"
OPS = [pytest.param(module, op, id=op.name) for module, spec in MODULES.items() for op in spec.ops]


@dataclass(frozen=True)
class Cell:
    """A variant of an op in a random small call, and its program for a GPU: generic, or bound to the call's integers.

    `kernel` is the generic kernel as it was lowered, which says what the call means.
    """

    op: str
    variant: Variant
    seed: int
    kernel: Kernel
    parameters: dict[str, int | float]
    schedule: Schedule
    program: CudaProgram

    def __str__(self) -> str:
        where = f"OPGEN_TEST_SEED={SEED}: {self.op} {self.variant.suffix} {self.parameters}"
        return f"{where}\n{self.schedule}\n{self.program.source}"


def cells(module: str, op: OpSpec) -> list[Cell]:
    found = []
    for index, variant in enumerate(variants(op)):
        seed = 1000 * SEED + index
        kernel, parameters = a_call(MODULES[module], op, variant, seed)
        integers = {n: v for n, v in parameters.items() if not isinstance(v, float)}
        for made in (kernel, bind(kernel, integers)):
            schedule, after = scheduled(simplify(made), "cuda")
            program = emit(legalize(after, check=False))
            found.append(Cell(op.name, variant, seed, kernel, parameters, schedule, program))
    return found


def check(cell: Cell, run: EmulatedKernel) -> None:
    """The program computes what the kernel means, whichever way round its blocks and threads run, and runs the same."""
    shapes = {b.name: tuple(sizes_in(b.shape, cell.parameters)) for b in cell.kernel.inputs}
    arrays = random_arrays(shapes, cell.variant.types["T"], cell.seed)
    expected = interpret(cell.kernel, arrays, cell.parameters)
    exact = not any(isinstance(e, Function) and e.function in PLATFORM for e in walk_exprs(cell.kernel.body))
    left = {p.name: cell.parameters[p.name] for p in cell.program.kernel.parameters}
    for reverse in (False, True):
        found = run(arrays, left, reverse=reverse)
        assert set(found) == set(expected), str(cell)
        for output, want in expected.items():
            same(found[output], want, exact, str(cell))


@pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize(("module", "op"), OPS)
def test_every_op_is_right_for_a_gpu(module: str, op: OpSpec) -> None:
    made = cells(module, op)
    for generic in made[::2]:
        assert "threadIdx.x" in generic.program.source, str(generic)
        assert "blockIdx.x" in generic.program.source, str(generic)
    for cell, run in zip(made, compile_emulated([c.program for c in made]), strict=True):
        check(cell, run)
    if (tool := nvcc.nvcc()) is not None:
        ptx = nvcc.compile_nvcc(tool, joined([c.program for c in made]), ARCHITECTURE).decode()
        assert ptx.count(".entry") == sum(len(c.program.launches) for c in made)


@pytest.mark.skipif(emulation.compiler() is None, reason="there is no C++ compiler")
def test_the_comparison_can_fail() -> None:
    """A planted fault, a sign, is noticed."""
    module, op = next(p.values for p in OPS if p.values[1].name == "ScaledAdd")
    cell = next(c for c in cells(module, op) if c.variant.types["T"] == "float32")
    wrong = replace(cell.program, source=cell.program.source.replace("* x[", "* -x["))
    right_run, wrong_run = compile_emulated([cell.program, wrong])
    check(cell, right_run)
    with pytest.raises(AssertionError):
        check(cell, wrong_run)
