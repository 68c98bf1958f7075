"""The limits of kernels as C: tables of steps that `checks.c` runs before a kernel, as `opgen.loop.analysis.reach`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opgen.bindings.c.expressions import integer
from opgen.bindings.c.text import string
from opgen.lower.limits import Limits, expected


@dataclass(frozen=True)
class LimitsView:
    """The tables of an op: `lines` declare them, `numbers` are, variant by variant, the one that its kernel has."""

    lines: tuple[str, ...]
    numbers: tuple[int, ...]


def limits_view(helper: str, static: str, found: Sequence[Limits], floats: Sequence[Sequence[bool]]) -> LimitsView:
    """Return the tables for the limits of an op's variants; `floats` marks a kernel's floating parameters."""
    numbers: dict[tuple[Limits, tuple[bool, ...]], int] = {}
    chosen = [numbers.setdefault((x, tuple(f)), len(numbers)) for x, f in zip(found, floats, strict=True)]
    lines: list[str] = []
    for (limits, floating), number in numbers.items():
        lines += _tables(helper, f"{static}_{number}", limits, floating)
    rows = [f"    {_row(f'{static}_{number}', limits)}," for (limits, _), number in numbers.items()]
    lines += [f"static const {helper}_limits {static}_limits[] = {{", *rows, "};"]
    return LimitsView(tuple(lines), tuple(chosen))


def _tables(helper: str, name: str, limits: Limits, floating: tuple[bool, ...]) -> Iterator[str]:
    steps = [f"    {{{helper}_step_{s.op}, {integer(s.a)}, {s.b}, {s.c}}}," for s in limits.reach.steps]
    yield from (
        f"static const {helper}_step {name}_steps[] = {{",
        *(steps or [f"    {{{helper}_step_number, 0, 0, 0}},"]),
        "};",
    )
    places = [p for c in limits.reach.claims for p in c.parameters]
    yield f"static const int16_t {name}_parameters[] = {{{', '.join(map(str, places)) or '0'}}};"
    yield f"static const {helper}_claim {name}_claims[] = {{"
    first = 0
    for claim in limits.reach.claims:
        yield f"    {{{string(limits.blamed(claim))}, {string(expected(claim))}, {first}, {len(claim.parameters)}}},"
        first += len(claim.parameters)
    yield from ([] if limits.reach.claims else ['    {"", "", 0, 0},'])
    yield "};"
    labels = ["NULL" if f else string(label) for label, f in zip(limits.labels, floating, strict=True)]
    yield f"static const char *const {name}_labels[] = {{{', '.join(labels) or 'NULL'}}};"


def _row(name: str, limits: Limits) -> str:
    reach = limits.reach
    tables = ", ".join(f"{name}_{table}" for table in ("steps", "claims", "parameters", "labels"))
    return f"{{{integer(reach.easy)}, {len(reach.steps)}, {len(limits.labels)}, {tables}}}"
