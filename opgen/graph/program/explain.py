"""Explanation of a compiled model, for people: the passes' notes, the nodes with their work and places, the memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from opgen.compiler import toolchain
from opgen.compiler.algorithms import mode
from opgen.compiler.cost import Limit, nearest
from opgen.compiler.make import artifact
from opgen.compiler.request import Compilation, OpVariant
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
from opgen.runtime.measuring.costs import as_measured
from opgen.schedule.cost.memory import Memory


@dataclass(frozen=True)
class Row:
    """A node of a program.

    `kernel` is its kernel's number, None for a view; `places` are the places of its tensors.  `operations` is the
    estimated number of operations on elements.  `bytes` is the size of its inputs and results.  `estimate` is the
    scheduler's estimate in seconds, None if there is none.  `limit` is the slower one of arithmetic and of transferring
    these bytes.
    """

    number: int
    node: Node
    kernel: int | None
    places: tuple[str, ...]
    operations: int
    bytes: int
    estimate: float | None = None
    limit: Limit | None = None


def rows(graph: Graph, program: Program, machine: Machine) -> list[Row]:
    """Return the nodes in order, with the limits of one core of a machine."""
    launches = dict(zip(program.nodes, program.entry.launches, strict=True))
    found = []
    for number, node in enumerate(graph.nodes):
        launch = launches.get(number)
        values = [graph.value[name] for name in dict.fromkeys((*node.inputs, *node.outputs))]
        size = sum(prod(v.shape) * v.dtype.bytes for v in values)
        if launch is None:
            found.append(Row(number, node, None, (), 0, 0))
        else:
            places = tuple(map(str, launch.places))
            executed = operations(graph, node, machine)
            width = max(graph.value[name].dtype.bytes for name in node.outputs)
            limit = _limit(executed, width, size, machine)
            estimate = _estimate(graph, node)
            found.append(Row(number, node, launch.kernel, places, executed, size, estimate, limit))
    return found


def operations(graph: Graph, node: Node, machine: Machine) -> int:
    """Return the approximate number of operations on elements of a node (a multiply-add is one)."""
    call = bound(graph, node)
    checked = lowered(call.op, call.variant)
    width = max((graph.value[name].dtype.bytes for name in node.outputs), default=1)
    return int(evaluate(work_of(checked.lowered.kernel, machine).operations, checked.values(call.environment))) // width


def _estimate(graph: Graph, node: Node) -> float | None:
    """Return the scheduler's estimate for a node by its op's definition or algorithm, in seconds on one core."""
    call = bound(graph, node)
    source = OpVariant(node.op.module, node.op.spec, call.variant)
    return artifact(Compilation(source, toolchain.host(), call.environment, algorithms=mode())).seconds


def _limit(operations: int, width: int, size: int, machine: Machine) -> Limit:
    """Return the slower lower bound: operations in full vectors, or one transfer of the bytes from their memory."""
    lanes = machine.vector_bytes / width
    near = Memory(machine).rate(size)
    levels = {c.bytes_per_second: name for name, c in (("L1", machine.l1), ("L2", machine.l2), ("L3", machine.l3))}
    level = levels.get(near, "memory")
    arithmetic = Limit("arithmetic", operations, "operations", machine.fma_per_second * lanes)
    return nearest((arithmetic, Limit(level, size, "bytes", near)))


def plan_text(graph: Graph, program: Program) -> str:
    """Return the places of all values, step by step."""
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
    for row in rows(graph, program, toolchain.host().machine):
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
    """Return the operands that results are written over, by name, each with its result."""
    return [(node.inputs[k], node.outputs[r]) for k, r in pairs]


def explained(report: Report, graph: Graph, program: Program, threads: int, seconds: Taken | None = None) -> str:
    """Return the whole explanation: notes of passes, memory, nodes."""
    parts = (notes_text(report), "\n".join(memory(program, threads)) + "\n", nodes_text(graph, program, seconds))
    return "\n".join(part for part in parts if part)


def notes_text(report: Report, most: int = 10) -> str:
    """Return the first notes of each pass."""
    lines: list[str] = []
    for work in dict.fromkeys(note.work for note in report.notes):
        found = report.of(work)
        lines.append(f"{work}: {count(len(found), 'note')}")
        lines += [f"  {note.about}: {note.text}" for note in found[:most]]
        if len(found) > most:
            lines.append(f"  and {len(found) - most} more")
    return "\n".join(lines) + "\n" if lines else ""


def nodes_text(graph: Graph, program: Program, seconds: Taken | None = None) -> str:
    """Return a table of the nodes that run.

    It has their work, its estimated time, and the nearest limit of one core with the least time that it allows.  If
    times were measured (by step), it has the time of each node, and the share of the limit that it reached.
    """
    taken = {} if seconds is None else dict(zip(program.nodes, seconds.steps, strict=True))
    lines = [
        "MMAC: million multiply-adds, or other operations on elements; KiB: what is read and written; est: the",
        "scheduler's estimate, in us; limit: what takes longest at least on one core, and how long, in us",
        f"{'node':>5} {'MMAC':>9} {'KiB':>9} {'est':>9} {'limit':>20} {'us':>9} {'reached':>7}  op, results",
    ]
    machine = toolchain.host().machine if seconds is None else as_measured(toolchain.host().machine)
    for row in rows(graph, program, machine):
        made = ", ".join(str(graph.value[name]) for name in row.node.outputs)
        over = _over(row.node, program.in_place.get(row.number, ()))
        name = f"{row.node.op.spec.name} -> {made}" + "".join(f", over {x}" for x, _ in over)
        if row.kernel is None or row.limit is None:
            lines.append(f"{row.number:5} {'':>9} {'':>9} {'':>9} {'':>20} {'view':>9} {'':>7}  {name}")
            continue
        time = f"{taken[row.number] * 1e6:.1f}" if taken else ""
        reached = f"{row.limit.seconds / taken[row.number]:.0%}" if taken.get(row.number) else ""
        estimate = "" if row.estimate is None else f"{row.estimate * 1e6:.1f}"
        limit = f"{row.limit.name} {row.limit.seconds * 1e6:.1f}"
        work = f"{row.operations / 1e6:9.3f} {row.bytes / UNIT:9.1f} {estimate:>9} {limit:>20}"
        lines.append(f"{row.number:5} {work} {time:>9} {reached:>7}  {name}")
    if seconds is not None:
        times = (
            ("sum", sum(seconds.steps), "the least time of each node"),
            ("run", seconds.whole, "all nodes (median)"),
        )
        lines += [f"{what:>5} {'':>50} {s * 1e6:9.1f} {'':>7}  by one thread, {told}" for what, s, told in times]
    return "\n".join(lines) + "\n"
