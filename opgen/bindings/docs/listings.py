"""What becomes of an op, stage by stage, for people to read: the same text on every machine.

One set for each op: float32 (or its first type), sizes that are small and plain, the schedule for a processor of the
x86-64-v3 level.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from opgen.bindings.docs.sizes import modest_call
from opgen.bindings.manifest import MARK
from opgen.codegen import cuda
from opgen.codegen.llvm.emit import emit
from opgen.codegen.llvm.target import Target
from opgen.loop.bind import bind
from opgen.loop.nodes import Kernel
from opgen.loop.print import print_kernel
from opgen.lower import Variant, lower, structural_attrs
from opgen.machine import typical
from opgen.passes.legalize import legalize
from opgen.passes.simplify import simplify
from opgen.schedule.default import scheduled
from opgen.spec.call.environment import Environment, evaluate
from opgen.spec.model.model import Module, OpSpec

TARGET = "x86-64-v3"
_VECTOR_BYTES = 32


def listings(module: Module, op: OpSpec, source: str) -> dict[str, str]:
    """The texts of an op's stages by file name."""
    types = {v.name: _type(tuple(t.name for t in v.allowed)) for v in op.type_variables}
    call = modest_call(module, op)
    if call is None:
        return _note(op, source, "has requirements that none of the sizes tried for a listing meet")
    lowered = lower(module, op, Variant(types, {a.name: str(call.attrs[a.name]) for a in structural_attrs(op)}))
    values = ((p, evaluate(e, call)) for p, e in zip(lowered.kernel.parameters, lowered.arguments, strict=True))
    bound = simplify(bind(lowered.kernel, {p.name: v for p, v in values if not p.dtype.is_float}))
    return _Stages(op, source, call, lowered.kernel, bound).texts()


def too_large(op: OpSpec, source: str) -> dict[str, str]:
    """In their place, for an op whose stages are too long to be read."""
    return _note(op, source, "is too large to be listed")


def _note(op: OpSpec, source: str, why: str) -> dict[str, str]:
    text = f"# {MARK}{source}. {op.name} {why}: `opgen inspect {op.name}` shows each stage.\n"
    return {f"{op.function_name}.loop": text}


def _type(allowed: tuple[str, ...]) -> str:
    return "float32" if "float32" in allowed else allowed[0]


@dataclass(frozen=True)
class _Stages:
    """An op's kernel, generic (`lowered`) and with its integers in place (`bound`)."""

    op: OpSpec
    source: str
    call: Environment
    lowered: Kernel
    bound: Kernel

    def texts(self) -> dict[str, str]:
        """The text of each stage by file name."""
        name = self.op.function_name
        schedule, kernel = scheduled(self.bound, "cpu", typical(_VECTOR_BYTES))
        _, device = scheduled(self.bound, "cuda")
        ir = emit(legalize(kernel), Target("x86_64-unknown-linux-gnu", TARGET, name=TARGET))
        portable = "\n".join(line for line in ir.split("\n") if not line.startswith("target datalayout"))
        return {
            f"{name}.loop": self._headed("#", "loop IR, generic in sizes and attributes", print_kernel(self.lowered)),
            f"{name}.schedule": self._sized("#", f"the schedule for {TARGET}", str(schedule)),
            f"{name}.scheduled.loop": self._sized("#", "loop IR after the schedule", print_kernel(kernel)),
            f"{name}.ll": self._sized(";", f"LLVM IR for {TARGET}, before LLVM's own passes", portable),
            f"{name}.cu": self._sized("//", "CUDA C", cuda.emit(legalize(device)).source),
        }

    def _headed(self, comment: str, stage: str, text: str, more: str = "") -> str:
        head = f"{comment} {MARK}{self.source}. {self.op.name}: {stage}."
        return f"{head}\n{more}\n{text.rstrip()}\n"

    def _sized(self, comment: str, stage: str, text: str) -> str:
        sizes = ", ".join(f"{name} = {value}" for name, value in self.call.symbols.items())
        lines = textwrap.wrap(f"Sizes: {sizes}.", 116, break_long_words=False)
        return self._headed(comment, stage, text, "".join(f"{comment} {line}\n" for line in lines))
