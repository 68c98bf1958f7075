"""What became of a model, for people: the passes' notes, the nodes with their work and places, the memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from opgen.compiler import toolchain
from opgen.compiler.sharing import work_of
from opgen.graph.ir.bound import bound
from opgen.graph.ir.nodes import Graph, Node
from opgen.graph.kernels.kernels import lowered
from opgen.graph.passes.base import Report
from opgen.graph.plan.in_place import Pairs
from opgen.graph.program.amounts import UNIT, count, memory
from opgen.graph.program.program import Program
from opgen.graph.program.step_times import Taken
from opgen.machine import Machine
from opgen.runtime.kernels.run import evaluate


@dataclass(frozen=True)
class Row:
    """A node of a program.  `kernel` is its kernel's number, None for a view; `places` says where its tensors lie.
    `operations` are those on elements, as an estimate; `bytes` those of what it reads and makes.
    """

    number: int
    node: Node
    kernel: int | None
    places: tuple[str, ...]
    operations: int
    bytes: int


def rows(graph: Graph, program: Program) -> list[Row]:
    """The nodes in order."""
    launches = dict(zip(program.nodes, program.entry.launches, strict=True))
    machine = toolchain.host().machine
    found = []
    for number, node in enumerate(graph.nodes):
        launch = launches.get(number)
        values = [graph.value[name] for name in dict.fromkeys((*node.inputs, *node.outputs))]
        size = sum(prod(v.shape) * v.dtype.bytes for v in values)
        if launch is None:
            found.append(Row(number, node, None, (), 0, 0))
        else:
            places = tuple(map(str, launch.places))
            found.append(Row(number, node, launch.kernel, places, operations(graph, node, machine), size))
    return found


def operations(graph: Graph, node: Node, machine: Machine) -> int:
    """About how many operations on elements a node does (a multiply-add is one)."""
    call = bound(graph, node)
    checked = lowered(call.op, call.variant)
    width = max((graph.value[name].dtype.bytes for name in node.outputs), default=1)
    return int(evaluate(work_of(checked.lowered.kernel, machine).operations, checked.values(call.environment))) // width


def plan_text(graph: Graph, program: Program) -> str:
    """Where everything lies, step by step."""
    kernels = len({launch.kernel for launch in program.entry.launches})
    head = [
        f"{count(len(program.nodes), 'step')} by {count(kernels, 'kernel')}; {count(len(program.views), 'view')}",
        f"arena {program.arena} bytes and {program.part} for each thread; {program.bound} bytes at once at most",
        "",
        *(f"input {i}: {v}" for i, v in enumerate(program.inputs)),
        *(f"weight {i}: {v}" for i, v in enumerate(program.weights)),
        *(f"output {i}: {v}" for i, v in enumerate(program.outputs)),
        "",
    ]
    return "\n".join([*head, *_steps(graph, program)]) + "\n"


def _steps(graph: Graph, program: Program) -> Iterable[str]:
    launches = dict(zip(program.nodes, program.entry.launches, strict=True))
    for row in rows(graph, program):
        made = ", ".join(str(graph.value[name]) for name in row.node.outputs)
        launch = launches.get(row.number)
        if launch is None:
            yield f"{row.number} {row.node.name}: {made} is a view of {row.node.inputs[0]}"
            continue
        cut = len(row.places) - len(row.node.outputs)
        reads, writes = ", ".join(row.places[:cut]), ", ".join(row.places[cut:])
        room = "" if launch.room is None else f", room at arena {launch.room[0]}"
        shared = "" if launch.shared else ", by one thread"
        over = "".join(f"; {y} is written over {x}" for x, y in _over(row.node, program.in_place.get(row.number, ())))
        yield f"{row.number} {row.node.name}: {made} by kernel {row.kernel}: {reads} -> {writes}{room}{shared}{over}"
    for moved in program.entry.moved:
        yield f"copy {moved.bytes} bytes: {moved.source} -> {moved.target}"


def _over(node: Node, pairs: Pairs) -> list[tuple[str, str]]:
    """The operands that results are written over, by name, each with its result."""
    return [(node.inputs[k], node.outputs[r]) for k, r in pairs]


def explained(report: Report, graph: Graph, program: Program, threads: int, seconds: Taken | None = None) -> str:
    """All of it: what passes did, memory, nodes."""
    parts = (notes_text(report), "\n".join(memory(program, threads)) + "\n", nodes_text(graph, program, seconds))
    return "\n".join(part for part in parts if part)


def notes_text(report: Report, most: int = 10) -> str:
    """What each pass did, the first notes of each."""
    lines: list[str] = []
    for work in dict.fromkeys(note.work for note in report.notes):
        found = report.of(work)
        lines.append(f"{work}: {count(len(found), 'note')}")
        lines += [f"  {note.about}: {note.text}" for note in found[:most]]
        if len(found) > most:
            lines.append(f"  and {len(found) - most} more")
    return "\n".join(lines) + "\n" if lines else ""


def nodes_text(graph: Graph, program: Program, seconds: Taken | None = None) -> str:
    """A table of the nodes that run: their work, and how long each took if that was measured (by step)."""
    taken = {} if seconds is None else dict(zip(program.nodes, seconds.steps, strict=True))
    lines = [
        "MMAC: million multiply-adds, or other operations on elements; KiB: what is read and written",
        f"{'node':>5} {'MMAC':>9} {'KiB':>9} {'us':>9}  op, results",
    ]
    for row in rows(graph, program):
        made = ", ".join(str(graph.value[name]) for name in row.node.outputs)
        over = _over(row.node, program.in_place.get(row.number, ()))
        name = f"{row.node.op.spec.name} -> {made}" + "".join(f", over {x}" for x, _ in over)
        if row.kernel is None:
            lines.append(f"{row.number:5} {'':>9} {'':>9} {'view':>9}  {name}")
            continue
        time = f"{taken[row.number] * 1e6:.1f}" if taken else ""
        lines.append(f"{row.number:5} {row.operations / 1e6:9.3f} {row.bytes / UNIT:9.1f} {time:>9}  {name}")
    if seconds is not None:
        lines.append(f"{'sum':>5} {'':>19} {sum(seconds.steps) * 1e6:9.1f}  by one thread, the least time of each node")
        lines.append(f"{'run':>5} {'':>19} {seconds.whole * 1e6:9.1f}  by one thread, all nodes (median)")
    return "\n".join(lines) + "\n"
