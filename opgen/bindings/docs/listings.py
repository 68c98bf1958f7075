"""Stages of an op's compilation for people to read: the same text on every machine.

One set for each op: float32 (or its first type), sizes that are small and plain, the schedule for a processor of the
x86-64-v3 level.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from opgen.bindings.docs.sizes import modest_call
from opgen.bindings.manifest import MARK
from opgen.codegen.llvm.target import Target
from opgen.compiler.artifact import Artifact
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, OpVariant
from opgen.loop.print import print_kernel
from opgen.lower import Variant, structural_attrs
from opgen.machine import typical
from opgen.spec.call.environment import Environment
from opgen.spec.model.model import Module, OpSpec

TARGET = "x86-64-v3"
_TARGET = Target("x86_64-unknown-linux-gnu", TARGET, name=TARGET, numbers=typical(32))


def listings(module: Module, op: OpSpec, source: str) -> dict[str, str]:
    """Return the texts of an op's stages by file name."""
    types = {v.name: _type(tuple(t.name for t in v.allowed)) for v in op.type_variables}
    call = modest_call(module, op)
    if call is None:
        return _note(op, source, "has requirements that none of the sizes tried for a listing meet")
    variant = OpVariant(module, op, Variant(types, {a.name: str(call.attrs[a.name]) for a in structural_attrs(op)}))
    found = artifact(Compilation(variant, _TARGET, call, algorithms="off", schedule="automatic"))
    return _Stages(op, source, call, variant, found).texts()


def too_large(op: OpSpec, source: str) -> dict[str, str]:
    """Return replacements of the listings of an op whose stages are too long to be read."""
    return _note(op, source, "is too large to be listed")


def _note(op: OpSpec, source: str, why: str) -> dict[str, str]:
    text = f"# {MARK}{source}. {op.name} {why}: `opgen inspect {op.name}` shows each stage.\n"
    return {f"{op.function_name}.loop": text}


def _type(allowed: tuple[str, ...]) -> str:
    return "float32" if "float32" in allowed else allowed[0]


@dataclass(frozen=True)
class _Stages:
    """An op's variant, and the artifact of a call of it."""

    op: OpSpec
    source: str
    call: Environment
    variant: OpVariant
    found: Artifact

    def texts(self) -> dict[str, str]:
        """Return the text of each stage by file name."""
        name, found = self.op.function_name, self.found
        portable = "\n".join(line for line in found.llvm.split("\n") if not line.startswith("target datalayout"))
        generic = print_kernel(self.variant.lowered().lowered.kernel)
        return {
            f"{name}.loop": self._headed("#", "loop IR, generic in sizes and attributes", generic),
            f"{name}.schedule": self._sized("#", f"the schedule for {TARGET}", found.text("schedule")),
            f"{name}.scheduled.loop": self._sized("#", "loop IR after the schedule", found.text("scheduled")),
            f"{name}.ll": self._sized(";", f"LLVM IR for {TARGET}, before LLVM's own passes", portable),
            f"{name}.cu": self._sized("//", "CUDA C", found.cuda),
        }

    def _headed(self, comment: str, stage: str, text: str, more: str = "") -> str:
        head = f"{comment} {MARK}{self.source}. {self.op.name}: {stage}."
        return f"{head}\n{more}\n{text.rstrip()}\n"

    def _sized(self, comment: str, stage: str, text: str) -> str:
        sizes = ", ".join(f"{name} = {value}" for name, value in self.call.symbols.items())
        lines = textwrap.wrap(f"Sizes: {sizes}.", 116, break_long_words=False)
        return self._headed(comment, stage, text, "".join(f"{comment} {line}\n" for line in lines))
