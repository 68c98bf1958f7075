"""`python -m tests.verification.random_programs`: random programs, judged in their own process; failures by kind."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import click

from tests.verification.random_programs.check import judge
from tests.verification.random_programs.generate import generate

PATIENCE = 180.0
"""Seconds after which a program is given up."""
DETAIL = 300
"""Characters of a failure's detail that are shown."""


@dataclass(frozen=True)
class Outcome:
    """What came of a seed: groups of failures with a detail for each, or the reason why the program was refused."""

    seed: int
    failures: tuple[tuple[str, str], ...] = ()
    refused: str = ""
    compared: int = 0
    unknown: int = 0


def outcome(seed: int, thorough: bool) -> Outcome:
    """The judgement on a seed's program, in this process."""
    try:
        verdict = judge(generate(seed), thorough)
    except Exception as error:
        return Outcome(seed, ((f"the tool itself: {type(error).__name__}", str(error)),))
    failures = tuple((f"{f.kind} [{f.stage}]", f.detail) for f in verdict.failures)
    return Outcome(seed, failures, verdict.refused, verdict.compared, verdict.unknown)


def work(first: int, last: int, thorough: bool) -> None:
    """Judge seeds one after another, each begun and ended with a line on standard output."""
    for seed in range(first, last):
        print(seed, flush=True)
        found = outcome(seed, thorough)
        print(json.dumps([found.failures, found.refused, found.compared, found.unknown]), flush=True)


def outcomes(first: int, last: int, thorough: bool) -> Iterator[Outcome]:
    """Judge seeds in a process of its own, begun again after a program that ends it or never ends."""
    while first < last:
        command = [
            sys.executable,
            "-m",
            "tests.verification.random_programs",
            "--seed",
            str(first),
            "--count",
            str(last - first),
            "--worker",
        ]
        with subprocess.Popen([*command, *(["--thorough"] if thorough else [])], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            while first < last:
                begun, ended = _line(process), _line(process)
                if not begun or not ended:
                    reason = "it does not end" if process.poll() is None and begun else "the process ended"
                    process.kill()
                    yield Outcome(first, ((reason, f"status {process.wait()}"),))
                    first += 1
                    break
                failures, refused, compared, unknown = json.loads(ended)
                yield Outcome(first, tuple(map(tuple, failures)), refused, compared, unknown)
                first += 1


def _line(process: subprocess.Popen[bytes]) -> bytes:
    """The next line of a process; nothing if it ended, or takes too long."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
    return process.stdout.readline() if ready else b""


@click.command("random_programs", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--count", type=click.IntRange(min=1), default=100, show_default=True, help="How many programs.")
@click.option("--seed", type=int, default=0, show_default=True, help="The first seed; the others follow.")
@click.option("--thorough", is_flag=True, help="Every gradient, and the generic kernel of each.")
@click.option("--show", is_flag=True, help="Print the programs and all their failures.")
@click.option("--worker", is_flag=True, hidden=True)
def main(count: int, seed: int, thorough: bool, show: bool, worker: bool) -> None:
    """Compares random programs with an evaluator of their mathematics.

    Each program's kernels, for the sizes of one call and for any, and the loop interpreter of the unscheduled kernel
    must agree with the mathematics in float64, within what their types may round; so must the gradients, whose
    mathematics must agree with the derivative along a random direction.
    """
    os.environ |= {"OPGEN_CACHE": "off", "OPGEN_FALLBACK": "raise"}
    if worker:
        work(seed, seed + count, thorough)
        return
    begin = time.perf_counter()
    groups: dict[str, list[tuple[int, str]]] = {}
    refused: Counter[str] = Counter()
    totals = [0, 0]
    for found in outcomes(seed, seed + count, thorough):
        totals = [totals[0] + found.compared, totals[1] + found.unknown]
        for kind, detail in dict(reversed(found.failures)).items():
            groups.setdefault(kind, []).append((found.seed, detail))
        if found.refused:
            refused[_sentence(found.refused)] += 1
        if show:
            print(f"# seed {found.seed}\n{generate(found.seed).text}")
            print("".join(f"{kind}: {detail}\n" for kind, detail in found.failures) or f"{found.refused or 'right'}\n")
    _report(groups, refused)
    wrong = len({seed for found in groups.values() for seed, _ in found})
    seconds = time.perf_counter() - begin
    print(
        f"{count} programs from seed {seed} in {seconds:.0f} s: {wrong} wrong, {refused.total()} refused;"
        f" {totals[0]} elements compared, {totals[1]} beyond what the bounds can tell"
    )
    sys.exit(1 if wrong else 0)


def _sentence(diagnostic: str) -> str:
    """A diagnostic without its place."""
    return diagnostic.splitlines()[0].split(": ", 1)[-1]


def _report(groups: dict[str, list[tuple[int, str]]], refused: Counter[str]) -> None:
    for kind, found in sorted(groups.items(), key=lambda g: -len(g[1])):
        seed, detail = found[0]
        seeds = ", ".join(str(s) for s, _ in found[:12])
        print(f"{len(found):5} {kind}\n      seeds {seeds}\n      {detail[:DETAIL]}")
        print(f"      python -m tests.verification.random_programs --seed {seed} --count 1 --show\n")
        print("".join(f"      {line}\n" for line in generate(seed).text.splitlines()))
    for sentence, times in refused.most_common():
        print(f"{times:5} refused: {sentence}")


if __name__ == "__main__":
    main(prog_name="python -m tests.verification.random_programs")
