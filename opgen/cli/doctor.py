"""`opgen doctor`: what was found on this machine."""

from __future__ import annotations

import textwrap

import click

from opgen.cli.as_json import JSON, print_json

LINE = 100
"""Columns of a line."""


@click.command("doctor")
@click.option("--measure", is_flag=True, help="Measure this machine's rates (half a second) and keep them.")
@JSON
def command(measure: bool, as_json: bool) -> None:
    """Says what this machine offers and what opgen found: CPU, caches and rates, LLVM, threads, CUDA, cache.

    Schedules are made for the rates shown.  They are assumed by the kind of CPU until --measure has measured them; the
    file that OPGEN_MACHINE names replaces any of them.  With --json: {topic: finding}.
    """
    from opgen.runtime.measuring.diagnosis import describe

    if measure:
        click.echo(measured(), err=as_json)
    findings = describe()
    if as_json:
        print_json(dict(findings))
        return
    width = max(len(topic) for topic, _ in findings) + 2
    for topic, finding in findings:
        first, *rest = textwrap.wrap(finding, LINE - width, break_long_words=False) or [""]
        click.echo(click.style(topic.ljust(width), bold=True) + first)
        for line in rest:
            click.echo(" " * width + line)


def measured() -> str:
    """Measure, and return a line with the path of the result."""
    from opgen.runtime.measuring.rates import measure_and_keep

    _, path = measure_and_keep()
    return (
        "measured, but not kept: the cache is off or cannot be written" if path is None else f"measured; kept in {path}"
    )
