"""`opgen cache`: the kernels that were built and kept."""

from __future__ import annotations

import click


@click.group("cache")
def command() -> None:
    """Shows or clears the cache of built kernels (OPGEN_CACHE_DIR moves it, OPGEN_CACHE=off turns it off)."""


@command.command("info")
def info() -> None:
    """Says where the cache is and what it holds."""
    from opgen.cache import entries as cache

    place = cache.location()
    if place is None:
        click.echo("the cache is off")
        return
    stats = cache.stats()
    click.echo(f"{place}\n{count(stats.entries)}, {stats.bytes / 2**20:.1f} MiB")


@command.command("clear")
def clear() -> None:
    """Removes every kernel in the cache; they are built again when they are called."""
    from opgen.cache import entries as cache

    click.echo(f"removed {count(cache.clear())}")


def count(kernels: int) -> str:
    return f"{kernels} kernel{'' if kernels == 1 else 's'}"
