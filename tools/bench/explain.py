"""Bounds of one row: its work, the bytes at each level, the time by the machine's numbers, and the measured one."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from opgen.compiler import machines, toolchain
from opgen.compiler.cost import Limit, nearest, of_work
from opgen.compiler.make import artifact
from opgen.loop.analysis.movement import Executed, Movement
from opgen.machine.describe import Described, lines
from opgen.machine.fields import flatten, unflatten
from opgen.runtime.measuring.rates import measure
from tools.bench.kernels import request_of
from tools.bench.layers import Case
from tools.bench.report import duration


@dataclass(frozen=True)
class Explanation:
    case: Case
    threads: int
    machine: Described
    schedule: str
    limits: tuple[Limit, ...]
    executed: Executed

    @property
    def binding(self) -> Limit:
        """Return the resource that takes longest."""
        return nearest(self.limits)


def explain(case: Case, threads: int = 1) -> Explanation:
    """Return the explanation by the numbers of this machine."""
    made = artifact(request_of(case))
    machine = measured_machine()
    movement = Movement(made.legal, machine.machine.vector_bytes)
    found = of_work(movement, machine.machine, threads)
    return Explanation(case, threads, machine, str(made.schedule), found, movement.executed())


def measured_machine() -> Described:
    """Return this machine's numbers; rates that schedules assume are measured now, for the statements about times."""
    described = machines.describe(toolchain.host())
    assumed = {name for name, source in described.sources.items() if source == "assumed"}
    if not assumed:
        return described
    now = {name: value for name, value in measure(described.machine).items() if name in assumed}
    sources = {**described.sources, **dict.fromkeys(now, "measured now")}
    return Described(unflatten({**flatten(described.machine), **now}), sources, described.assumption)


def show(console: Console, found: Explanation, measured: float | None) -> None:
    """Print for people: the machine, the schedule, each resource's time, the bound, and the measured time."""
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
    for r in sorted(found.limits, key=lambda r: -r.seconds):
        part = "" if measured is None else f"{100 * r.seconds / measured:.0f}%"
        table.add_row(
            r.name, f"{r.amount / 1e6:.3f} M{r.unit}", f"{r.rate / 1e9:.1f} G{r.unit}", duration(r.seconds), part
        )
    console.print(table)
    for sentence in sentences(found, measured):
        console.print(sentence, markup=False, highlight=False, soft_wrap=True)


def sentences(found: Explanation, measured: float | None) -> list[str]:
    """Return the meaning of the table."""
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
