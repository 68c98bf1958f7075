"""What bounds one row: its work, the bytes at each level, the time the machine's numbers give, and the measured one."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from opgen.compiler import machines, toolchain
from opgen.machine import Machine
from opgen.machine.describe import Described, lines
from opgen.machine.fields import flatten, unflatten
from opgen.runtime.measuring.rates import measure
from tools.bench.kernels import pipeline_of
from tools.bench.layers import BYTES, Case
from tools.bench.report import duration
from tools.bench.traffic import Executed, Traffic


@dataclass(frozen=True)
class Resource:
    """Something that takes time: how much of it is used, how much there is a second, and the time that follows."""

    name: str
    amount: float
    unit: str
    rate: float

    @property
    def seconds(self) -> float:
        return self.amount / self.rate


@dataclass(frozen=True)
class Explanation:
    case: Case
    threads: int
    machine: Described
    schedule: str
    resources: tuple[Resource, ...]
    executed: Executed

    @property
    def binding(self) -> Resource:
        """The resource that takes longest."""
        return max(self.resources, key=lambda r: r.seconds)


def explain(case: Case, threads: int = 1) -> Explanation:
    """By the numbers of this machine.  Threads have a core and its caches each; memory they share."""
    pipeline = pipeline_of(case)
    traffic = Traffic(pipeline.legal)
    executed = traffic.executed()
    machine = measured_machine()
    found = resources(case, machine.machine, traffic, executed, threads)
    return Explanation(case, threads, machine, str(pipeline.schedule), found, executed)


def measured_machine() -> Described:
    """This machine's numbers; rates that schedules take by assumption are measured now, for what is said of times."""
    described = machines.describe(toolchain.host())
    assumed = {name for name, source in described.sources.items() if source == "assumed"}
    if not assumed:
        return described
    now = {name: value for name, value in measure(described.machine).items() if name in assumed}
    sources = {**described.sources, **dict.fromkeys(now, "measured now")}
    return Described(unflatten({**flatten(described.machine), **now}), sources, described.assumption)


def resources(case: Case, machine: Machine, traffic: Traffic, executed: Executed, threads: int) -> tuple[Resource, ...]:
    """Multiply-adds (but those of a matrix unit, which no load keeps up with), and the bytes that pass between each two
    levels.
    """
    lanes_lost = max(1.0, BYTES[case.dtype] / 4)
    single = executed.multiply_adds - (executed.paired / 2 if machine.pairs else 0)
    single -= executed.tiled if machine.tiles else 0
    flops = Resource("multiply-adds", 2 * single, "flop", threads * machine.flops / lanes_lost)
    levels = (
        ("past the first cache", traffic.between(machine.l1.size), threads * machine.l2.bytes_per_second),
        ("past the second cache", traffic.between(machine.l2.size), threads * machine.l3.bytes_per_second),
        ("past the last cache", traffic.between(machine.l3.size), machine.memory_bytes_per_second),
    )
    accesses = machine.l1.bytes_per_second / machine.vector_bytes
    first = Resource("loads and stores", executed.accesses, "access", threads * accesses)
    return flops, first, *(Resource(name, amount, "byte", rate) for name, amount, rate in levels)


def show(console: Console, found: Explanation, measured: float | None) -> None:
    """For people: the machine, the schedule, each resource's time, what binds, and what was measured."""
    case = found.case
    console.print(f"{case.name}, {found.threads} threads", highlight=False)
    for topic, text in lines(found.machine):
        console.print(f"  {topic}: {text}", markup=False, highlight=False, soft_wrap=True)
    console.print("schedule:", highlight=False)
    for line in found.schedule.strip().split("\n"):
        console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    table = Table(title="what takes time", title_justify="left")
    for column in ("resource", "amount", "a second", "time", "of the measured time"):
        table.add_column(column, justify="left" if column == "resource" else "right")
    for r in sorted(found.resources, key=lambda r: -r.seconds):
        part = "" if measured is None else f"{100 * r.seconds / measured:.0f}%"
        table.add_row(
            r.name, f"{r.amount / 1e6:.3f} M{r.unit}", f"{r.rate / 1e9:.1f} G{r.unit}", duration(r.seconds), part
        )
    console.print(table)
    for sentence in sentences(found, measured):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def sentences(found: Explanation, measured: float | None) -> list[str]:
    """What the table means."""
    case, binding = found.case, found.binding
    needed, done = case.flops, 2 * found.executed.multiply_adds
    said = [
        f"the call is {needed / 1e6:.3f} Mflop on {case.bytes / 1e6:.3f} MB of tensors; the kernel executes "
        f"{done / needed:.2f} times these multiply-adds",
        f"predicted: {duration(binding.seconds)}, bound by: {binding.name}",
    ]
    if measured is not None:
        said.append(
            f"measured: {duration(measured)}, {needed / measured / 1e9:.1f} GFLOP/s; "
            f"the prediction is {100 * binding.seconds / measured:.0f}% of it"
        )
        if binding.seconds > measured:
            said.append("more than 100%: the rate was measured while others used the machine, or reads overlap")
    return said
