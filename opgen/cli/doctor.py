"""`opgen doctor`: what was found on this machine."""

from __future__ import annotations

import textwrap

import click

LINE = 100
"""Columns of a line."""


@click.command("doctor")
def command() -> None:
    """Says what this machine offers and what opgen found: CPU, LLVM, threads, CUDA, cache."""
    from opgen.runtime.diagnosis import describe

    findings = describe()
    width = max(len(topic) for topic, _ in findings) + 2
    for topic, finding in findings:
        first, *rest = textwrap.wrap(finding, LINE - width, break_long_words=False) or [""]
        click.echo(click.style(topic.ljust(width), bold=True) + first)
        for line in rest:
            click.echo(" " * width + line)
