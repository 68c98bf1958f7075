"""`opgen inspect MODEL`: a model as a graph, after each pass, its plan and program; one of its nodes at any stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opgen.cli import inspect_op
from opgen.cli.models import kinds_of, read_model
from opgen.diagnostics import UserError, did_you_mean
from opgen.locks import cached_property

if TYPE_CHECKING:
    from opgen.compiler.artifact import Artifact
    from opgen.graph.compiled.staged import Stages
    from opgen.graph.ir.nodes import Graph, Node
    from opgen.graph.program.program import Program
    from opgen.schedule.schedule import Schedule

STAGES = {"graph": "spec", "plan": "text", "program": "llvm"}
"""The stages of a whole model, and the language of each one's text."""

PARTS = ("run", "first")
"""The parts of a node's kernel: the work of each run, and the work done once, first, on constants alone."""
FIRST_STAGES = ("legal", "llvm", "asm")
"""The stages of the part that is done first: before, the kernel is one."""


@dataclass(frozen=True)
class Inspected:
    """A model for inputs of some sizes."""

    stages: Stages

    @property
    def graph(self) -> Graph:
        """Return the graph that is run."""
        return self.stages.last

    @cached_property
    def program(self) -> Program:
        """Return its program, made if it is not in the cache."""
        from opgen.graph.program.program import program

        return program(self.graph)

    def text(self, stage: str, after: str | None) -> str:
        """Return the model at a stage.  Of graphs that after each pass, or `after` one."""
        from opgen.compiler import toolchain
        from opgen.graph.ir.text import print_graph
        from opgen.graph.program.explain import plan_text
        from opgen.graph.program.program import ENTRY
        from opgen.graph.program.program_ir import entry_ir

        if after is not None and stage != "graph":
            raise UserError(f"--after is for --stage graph, not {stage}")
        if stage == "plan":
            return plan_text(self.graph, self.program)
        if stage == "program":
            return entry_ir(ENTRY, self.program.entry, toolchain.host())
        if after is None:
            return "\n".join(self._passes())
        if after not in self.stages.after:
            hint = did_you_mean(after, self.stages.after) or f"there is {', '.join(self.stages.after)}"
            raise UserError(f"--after {after}: no such pass; {hint}")
        return print_graph(self.stages.after[after])

    def _passes(self) -> list[str]:
        """Return the graph as it was resolved, and each pass with the graph after it, if it changed that."""
        from opgen.graph.ir.text import print_graph
        from opgen.graph.passes.standard import STANDARD

        stages = list(self.stages.after.items())
        found, before = [f"# {stages[0][0]}\n{print_graph(stages[0][1])}"], stages[0][1]
        for each, (name, graph) in zip(STANDARD, stages[1:], strict=True):
            same = graph == before
            found.append(
                f"# {name}{', as before' if same else ''}: {each.contract}\n{'' if same else print_graph(graph)}"
            )
            before = graph
        return found

    def explanation(self) -> str:
        """Return the explanation of passes, memory, and nodes with their work."""
        from opgen.graph.program.explain import explained
        from opgen.runtime.threads import get_num_threads

        return explained(self.stages.report, self.graph, self.program, get_num_threads())

    def node(self, name: str) -> Node:
        """Return a node of the graph that is run, by its number or name."""
        from opgen.graph.compiled.inspected import node_of

        return node_of(self.graph, int(name) if name.isdecimal() else name, "--node")

    def artifact(self, node: Node, target: str | None, schedule: Schedule | None) -> Artifact:
        """Return the kernel that the program runs for a node; `target` None means a CUDA device."""
        from opgen.compiler.make import artifact
        from opgen.graph.compiled.inspected import request_of

        found = replace(request_of(self.graph, node), target=inspect_op.target_of(target))
        return artifact(found if schedule is None else replace(found, schedule=schedule))


def inspected(path: str, shapes: tuple[str, ...], dims: tuple[str, ...]) -> Inspected:
    """Return the model of a file, resolved for sizes and gone through all passes."""
    from opgen.graph.build.resolve import resolve
    from opgen.graph.compiled.staged import stages
    from opgen.graph.ir.problems import UndecidedError

    model = read_model(path)
    try:
        return Inspected(stages(resolve(model, kinds_of(model, shapes, dims))))
    except UndecidedError as error:
        hint = "so the model is no one program: `opgen run MODEL --explain` runs it, and shows its parts"
        raise UserError(f"{error};\n{hint}") from error


def node_text(found: Artifact, stage: str, part: str) -> str:
    """Return a part of a node's kernel at a stage; its spec is the resolved one, since no file has it."""
    from opgen.compiler.request import Cuda
    from opgen.loop.print import print_kernel

    if part == PARTS[0]:
        return inspect_op.text(found, "model" if stage == "spec" else stage)
    if stage not in FIRST_STAGES:
        raise UserError(f"--part {part}: expected --stage {', '.join(FIRST_STAGES)}, got {stage}")
    if isinstance(found.request.target, Cuda) or found.first is None:
        raise UserError(f"--part {part}: nothing that this kernel computes depends on constants alone")
    return print_kernel(found.first.legal) if stage == "legal" else str(getattr(found.first, stage))


def notes(found: Artifact) -> list[str]:
    """Return notes on a node's kernel in the program: its algorithm, overwritten operands, work done once."""
    from opgen.compiler.request import Cuda, OpVariant

    source = found.request.source
    if isinstance(found.request.target, Cuda) or not isinstance(source, OpVariant):
        return []
    choice = inspect_op.choice_note(source.op, found)
    return [choice] * bool(choice) + [f"note: {line}" for line in found.in_program]


def as_json(found: Inspected, stage: str, text: str, node: Node | None) -> Mapping[str, object]:
    """Return the request and the text."""
    graph = found.graph
    inputs = [{"name": v.name, "dtype": v.dtype.name, "shape": list(v.shape)} for v in graph.inputs]
    return {
        "model": graph.name,
        "stage": stage,
        "inputs": inputs,
        "node": None if node is None else node.name,
        "text": text,
    }
