"""`python -m tests.verification.attack`: the campaign on the command line."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import click

from tests.verification.attack.campaign import Campaign, Tally
from tests.verification.attack.finding import Finding
from tests.verification.attack.targets import TARGETS

SHOWN = 2000
"""Characters of a finding's detail that are shown."""


@click.command("attack", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, type=click.Choice(sorted(TARGETS)), metavar="[TARGET]...")
@click.option("--minutes", type=click.FloatRange(min=0), default=1.0, show_default=True, help="Time for each target.")
@click.option("--attempts", type=click.IntRange(1), help="So many attempts of each target, however long they take.")
@click.option("--seed", type=int, help="Of the first attempt; the next ones follow.  [default: random]")
@click.option("--list", "listing", is_flag=True, help="Say what the targets are.")
def main(names: tuple[str, ...], minutes: float, attempts: int | None, seed: int | None, listing: bool) -> None:
    """Attacks TARGETs (all if none is named) with what nobody should give them; exits with 1 if one gives way.

    Each attempt follows from a seed alone.  What is found is printed by kind, with the command that makes it again.
    """
    if listing:
        for name, target in sorted(TARGETS.items()):
            print(f"{name:15} {(target.__doc__ or '').splitlines()[0]}")
        return
    first = random.SystemRandom().randrange(1 << 40) if seed is None else seed
    print(f"seed {first}", flush=True)
    found: list[Finding] = []
    for name in names or sorted(TARGETS):
        begin = time.monotonic()
        tally = attack(name, first, minutes * 60, attempts)
        found += tally.findings
        seconds = time.monotonic() - begin
        print(f"{name}: {tally.attempts} attempts in {seconds:.0f} s, {len(tally.findings)} findings", flush=True)
    show(found)
    sys.exit(1 if found else 0)


def attack(name: str, seed: int, seconds: float, attempts: int | None = None) -> Tally:
    """Attack one target."""
    with tempfile.TemporaryDirectory(prefix=f"opgen-attack-{name}-") as folder:
        before = dict(os.environ)
        try:
            for variable in [v for v in os.environ if v.startswith("OPGEN_")]:
                del os.environ[variable]
            os.environ["OPGEN_CACHE_DIR"] = f"{folder}/cache"
            target = TARGETS[name](Path(folder))
            target.prepare()
            return Campaign(target, seed).run(seconds, attempts)
        finally:
            os.environ.clear()
            os.environ.update(before)


def show(found: list[Finding]) -> None:
    """The findings by kind, and for each kind how its first one is made again."""
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in found:
        groups[finding.target, finding.group].append(finding)
    for (target, _), same in sorted(groups.items(), key=lambda item: -len(item[1])):
        first = same[0]
        print(f"\n{target}: {len(same)} times: {first.kind}")
        print(f"    python -m tests.verification.attack {target} --seed {first.seed} --attempts 1")
        print("\n".join(f"    | {line}" for line in first.detail[:SHOWN].splitlines()))


if __name__ == "__main__":
    main(prog_name="python -m tests.verification.attack")
